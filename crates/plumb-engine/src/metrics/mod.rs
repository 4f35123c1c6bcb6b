//! Counters, histograms and gauges, and the text that Prometheus scrapes.

pub(crate) mod counters;
pub(crate) mod process;
pub(crate) mod series;
