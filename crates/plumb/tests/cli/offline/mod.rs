//! Commands that need no cluster: help, manuals, and errors of the command line.

mod errors;
mod help;
mod local;
