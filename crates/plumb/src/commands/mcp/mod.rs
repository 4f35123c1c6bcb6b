//! `plumb mcp`: a server of the Model Context Protocol, for assistants.

mod tools;
mod server;
mod run;

pub(crate) use run::{Args, run};
