//! The harness itself, against real clusters.

mod clusters;
mod faults;
mod namespaces;
mod stages;
