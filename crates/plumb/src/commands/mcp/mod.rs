//! `plumb mcp`: a server of the Model Context Protocol, for assistants.

mod protocol;
mod run;
mod tools;

pub(crate) use run::{Args, run};
