//! The metrics that Prometheus scrapes: counters, histograms and gauges.

pub(crate) mod counters;
pub(crate) mod process;
pub(crate) mod series;
