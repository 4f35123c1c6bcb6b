//! How much a test run covers.

/// An environment variable.
#[expect(clippy::disallowed_methods, reason = "the coverage of a test run is set in the environment")]
pub fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
