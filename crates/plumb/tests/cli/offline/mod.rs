//! Commands that need no cluster: help, manuals, errors of the command line, and answers of an API server that a test
//! plays.

mod api;
mod doctor;
mod errors;
mod fix;
mod fix_shared;
mod help;
mod hostile;
mod lint;
mod local;
pub(crate) mod mcp;
mod orphans;
mod reports;
mod seal;
