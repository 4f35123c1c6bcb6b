//! The processes that a process has started, from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// How long [`kill_descendants`] tries.
const MAX_KILL_TIME: Duration = Duration::from_secs(5);

/// What the processes below this one use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeUsage {
    pub(super) processes: usize,
    /// Memory in use, in bytes. Memory that several processes share counts once for each.
    pub(super) memory: u64,
}

/// True if the kernel lists the children of a process.
pub(super) fn can_list_children() -> bool {
    !children_files(Path::new("/proc/self")).is_empty()
}

/// What the processes below this one use now.
pub(super) fn usage() -> TreeUsage {
    let mut usage = TreeUsage::default();
    for process in descendants() {
        usage.processes += 1;
        usage.memory += resident_bytes(&process);
    }
    usage
}

/// Kills all processes below this one. Each that ends leaves its children to this process, which must be a subreaper.
pub(super) fn kill_descendants() {
    let started = Instant::now();
    while started.elapsed() < MAX_KILL_TIME {
        let found = descendants();
        if found.is_empty() {
            return;
        }
        for process in found.iter().filter_map(|path| pid_of(path)) {
            // An error means that the process has already ended.
            let _ = kill_process(process, Signal::KILL);
        }
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The directories in `/proc` of all processes below this one.
fn descendants() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut waiting = vec![PathBuf::from("/proc/self")];
    while let Some(process) = waiting.pop() {
        for file in children_files(&process) {
            let text = fs::read_to_string(file).unwrap_or_default();
            let children = text.split_whitespace().map(|id| Path::new("/proc").join(id));
            for child in children {
                waiting.push(child.clone());
                found.push(child);
            }
        }
    }
    found
}

/// One file with children for each thread.
fn children_files(process: &Path) -> Vec<PathBuf> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path().join("children")).filter(|file| file.exists()).collect()
}

fn pid_of(process: &Path) -> Option<Pid> {
    Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?)
}

/// Memory that the kernel cannot get back by dropping pages of files, such as programs.
fn resident_bytes(process: &Path) -> u64 {
    let text = fs::read_to_string(process.join("status")).unwrap_or_default();
    let kilobytes = ["RssAnon:", "RssShmem:"].into_iter().filter_map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    kilobytes.sum::<u64>().saturating_mul(1024)
}
