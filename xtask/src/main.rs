//! The repository's own tasks. `cargo xtask --help` lists them.

fn main() {}
