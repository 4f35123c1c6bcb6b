//! Faults that a real API server shows only on bad days, from a scripted one.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod faults;
mod leases;
mod limits;
mod port_forward;
mod server;
