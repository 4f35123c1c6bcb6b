//! The nouns and pure functions of plumb.
//!
//! Everything here is synchronous and has no effects: no clock, no files, no network, no processes, no
//! logging. The same inputs give the same outputs, byte for byte. Explanations are values, not log lines.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

pub mod error_chain;
pub mod text;
pub mod peers;
pub mod turns;
pub mod object;
pub mod report;
pub mod glob;
pub mod duration;
pub mod source;
pub mod version;
pub mod tool_version;
pub mod app;
pub mod yaml;
pub mod project;
pub mod rbac;
pub mod tracking;
pub mod references;
pub mod witness;
pub mod desired;
pub mod live;
pub mod schema;
pub mod fields;
pub mod ignore;
pub mod normalize;
pub mod compare;
pub mod health;
pub mod change;
pub mod drift;
pub mod fix;
pub mod secrets;
pub mod lint;
pub mod plan;
pub mod orphans;
pub mod sync;
pub mod status;
pub mod doctor;
pub mod migrate;
pub mod dump;
pub mod writes;
pub mod automation;
