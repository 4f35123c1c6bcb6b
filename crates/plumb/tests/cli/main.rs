//! The whole output of every command, in a hermetic environment.
//!
//! The output and the exit code of a command are compared with a file in `golden/`. Names, times and hashes that differ
//! from run to run are replaced first. `UPDATE=1 cargo test -p plumb --test cli` writes the files again.
//!
//! The tests in `offline` need no cluster: `cargo test -p plumb --test cli offline`. All others use a real one.

mod app;
mod assistant;
mod bench;
mod completion;
mod errors;
mod fix_tools;
mod flags;
mod golden;
mod logs;
mod offline;
mod pauses;
mod plan;
mod readme;
mod registry;
mod rollback;
mod runbooks;
mod shell;
mod terminal;
mod things;
mod watch;
