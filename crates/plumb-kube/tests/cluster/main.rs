//! Tests against a real API server. `PLUMB_TEST_KUBECONFIG` names its kubeconfig; without it every test prints
//! that it was skipped. Each test works in a namespace of its own.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a failed expectation is a failed test"
)]

mod lab;
mod discovery;
mod gate;
mod lease;
mod store;
mod streams;
