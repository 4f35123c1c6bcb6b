//! What is asked.

/// What a caller asks to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of thing: `applications`, `clusters` …
    pub resource: &'a str,
    /// What is done with it: `get`, `sync`, `delete//Pod/ns/name` …
    pub action: &'a str,
    /// Which one: `project/app`, a server's address …
    pub object: &'a str,
}
