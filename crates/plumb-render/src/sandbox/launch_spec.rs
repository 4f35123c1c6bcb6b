//! What plumb tells the launcher about one run of a tool.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first argument of the launcher, as JSON. The tool and its arguments follow it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent restriction")]
pub(super) struct LaunchSpec {
    /// The private directory of the rendering: the only one that the tool may write to.
    pub(super) scratch: PathBuf,
    /// Programs outside the system's directories that the tool may read and start.
    pub(super) programs: Vec<PathBuf>,
    /// Whether the tool may use the network.
    pub(super) network: bool,
    /// Restrict files with Landlock.
    pub(super) landlock: bool,
    /// Restrict system calls with seccomp.
    pub(super) system_calls: bool,
    /// `/proc` shows only the processes of this run.
    pub(super) own_proc: bool,
    /// The process that the tool must not signal, where no other mechanism prevents it.
    pub(super) protected: Option<i32>,
    /// Most memory of the tool and of all processes that it starts, in bytes.
    pub(super) memory: u64,
    /// Most bytes of one file.
    pub(super) file_bytes: u64,
    /// Most seconds of processor time of one process.
    pub(super) cpu_seconds: u64,
    /// Most bytes in the scratch directory.
    pub(super) scratch_bytes: u64,
    /// Most processes at the same time.
    pub(super) processes: usize,
}

/// Why the launcher stopped a tool. The launcher prints the word as its last line, and exits with [`STOPPED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Memory,
    Disk,
    Processes,
    /// plumb closed the launcher's input: the run is over.
    Cancelled,
}

/// The exit code of the launcher after it stopped a tool.
pub(super) const STOPPED: u8 = 124;

/// The exit code of the launcher when it could not confine or start the tool, as shells have it.
pub(super) const NOT_STARTED: u8 = 126;

/// Starts the launcher's last line.
pub(super) const MARK: &str = "plumb tool-launcher: ";

impl StopReason {
    const ALL: [Self; 4] = [Self::Memory, Self::Disk, Self::Processes, Self::Cancelled];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Processes => "processes",
            Self::Cancelled => "cancelled",
        }
    }

    /// The reason in the launcher's error output, if its last line is one.
    pub(super) fn of(stderr: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(stderr);
        let word = text.trim_end().lines().next_back()?.strip_prefix(MARK)?.to_owned();
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}
