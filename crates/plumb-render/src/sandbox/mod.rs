//! Runs the programs that render.
//!
//! Always: an environment with only the variables that the tool needs, an empty home directory, a process group that
//! is killed as a whole, and limits on time, memory, file sizes and output. Where the kernel has Landlock (Linux 5.13
//! and later, if enabled): a tool can open only the system's programs and the scratch directory of its rendering. Where
//! unprivileged user namespaces are allowed: no network. Elsewhere the tools get proxy settings that lead nowhere, and
//! sources that would need the network are refused before a tool runs.

mod clock;
mod confine;
mod error;
mod run;
mod scratch;
mod supervise;

pub(crate) use clock::{CLOCK_AHEAD_SECONDS, Clock};
pub use error::SandboxError;
pub use run::{FileIsolation, NetworkIsolation, Sandbox};
pub(crate) use run::{ToolRun, flag};
pub(crate) use scratch::{SCRATCH_PREFIX, Scratch};
