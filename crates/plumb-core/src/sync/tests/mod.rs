//! Tests of the sync state machine: scripted cases and random simulation.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them this way")]

mod ends;
mod hooks;
mod script;
mod simulation;
mod waves;
mod world;
