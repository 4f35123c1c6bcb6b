//! Placeholder until the judge is measured.
fn main() {}
