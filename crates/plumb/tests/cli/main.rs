//! The whole output of every command, in a hermetic environment against a real cluster.
//!
//! What a command said and how it ended is compared with a file in `golden/`; names, times and hashes that differ
//! from run to run are replaced first. `UPDATE=1 cargo test -p plumb --test cli` writes the files anew.

mod after;
mod app;
mod bench;
mod errors;
mod flags;
mod golden;
mod held;
mod logs;
mod offline;
mod plan;
mod registry;
mod seeds;
mod terminal;
mod watch;
