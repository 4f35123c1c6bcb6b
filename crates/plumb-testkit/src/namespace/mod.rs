//! A fresh namespace per test, and what a test does to objects in it.

mod kinds;
mod test_namespace;
mod access;

pub use test_namespace::TestNamespace;
