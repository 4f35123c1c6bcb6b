//! Runs the programs that render.
//!
//! plumb starts its own binary as a launcher, in namespaces where the system allows them; the launcher starts the tool.
//! Always: an environment with only the variables that the tool needs, an empty home directory, and limits on time,
//! memory, processes, file sizes and output. No process outlives its run. Where the kernel has Landlock: a tool can open
//! only the system's programs and the scratch directory of its rendering. Where it has seccomp: a tool cannot open
//! sockets, inspect other processes or create namespaces. [`Capabilities::level`] says what that adds up to; sources that
//! would need the network are refused before a tool runs in any case.

mod clock;
mod error;
mod launch_spec;
mod confine;
mod system_calls;
mod process_tree;
mod capabilities;
mod launcher;
mod hidden;
mod run;
mod scratch;
mod supervise;

pub use capabilities::{Capabilities, IsolationLevel, Namespaces};
pub(crate) use clock::{CLOCK_AHEAD_SECONDS, Clock};
pub use error::SandboxError;
pub(crate) use hidden::Hidden;
pub use launcher::tool_launcher;
pub use run::Sandbox;
pub(crate) use run::{ToolRun, flag};
pub(crate) use scratch::{SCRATCH_PREFIX, Scratch};
