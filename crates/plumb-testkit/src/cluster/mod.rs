//! Clusters on 127.0.0.1: build their programs once, start, list, stop.
//!
//! The Go side (`tools/cluster`) does the supervising: keys, children, readiness, an end
//! that leaves nothing behind. This side builds it, finds it, and holds the pipe whose end
//! tells the supervisor that its caller is gone.

mod layout;
mod requirements;
mod pinned;
mod compile;
mod programs;
mod process;
mod registry;
mod start;

pub use layout::Layout;
pub use process::{Process, signal_part};
pub use programs::{
    ClientProgram, Programs, SealedSecretsPrograms, external_secrets_definitions, kubeconform,
};
pub use registry::{Cluster, Condition, Phase, State, end_processes, find, list, stop, sweep};
pub use start::{AttachedCluster, StartOptions, attach, attach_in, up};
