//! Which processes belong to a cluster. A pid alone proves nothing, for numbers are used
//! again: what counts is that the process runs one of our programs on the cluster's directory.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process},
};

/// A running process of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Which part of the cluster it is: `supervise`, `etcd`, `kube-apiserver`, `kwok`…
    pub part: String,
}

impl Process {
    /// Whether this is the supervisor, which stops the others in order.
    pub(super) fn is_supervisor(&self) -> bool {
        self.part == "supervise"
    }
}

/// All running processes of the cluster in that directory.
pub(super) fn of_cluster(directory: &Path) -> Result<Vec<Process>> {
    let mut found: Vec<Process> = command_lines()?
        .into_iter()
        .filter_map(|(pid, args)| Some(Process { pid, part: part_of(&args, directory)? }))
        .collect();
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

/// Sends a signal to a process, if it still is what it was.
pub(super) fn signal(process: &Process, directory: &Path, signal: Signal) -> Result<()> {
    if !of_cluster(directory)?.contains(process) {
        return Ok(());
    }
    let pid = Pid::from_raw(process.pid).context("a pid is never 0")?;
    match kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("stop {} (pid {})", process.part, process.pid)),
    }
}

/// Sends a signal to the one process that is this part of the cluster.
pub fn signal_part(directory: &Path, part: &str, what: Signal) -> Result<()> {
    let processes = of_cluster(directory)?;
    let process = processes.iter().find(|process| process.part == part);
    signal(process.with_context(|| format!("the cluster has no {part}"))?, directory, what)
}

/// Waits until no process of the cluster is left, and returns those that outlast the limit.
pub(super) fn wait_until_gone(directory: &Path, limit: Duration) -> Result<Vec<Process>> {
    let deadline = Instant::now() + limit;
    loop {
        let left = of_cluster(directory)?;
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Which part of the directory's cluster a command line is, if any.
fn part_of(args: &[String], directory: &Path) -> Option<String> {
    let program = Path::new(args.first()?).file_name()?.to_str()?;
    let part = match program {
        "plumb-cluster" => args.get(1)?.clone(),
        "kwok" => program.to_owned(),
        _ => return None,
    };
    args.iter()
        .skip(1)
        .map(|arg| arg.split_once('=').map_or(arg.as_str(), |(_, value)| value))
        .any(|value| Path::new(value).starts_with(directory))
        .then_some(part)
}

#[cfg(target_os = "linux")]
fn command_lines() -> Result<Vec<(i32, Vec<String>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").context("read /proc")? {
        let entry = entry.context("read /proc")?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end at any moment; one that cannot be read is not ours.
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let args =
            line.split(|byte| *byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect();
        found.push((pid, args));
    }
    Ok(found)
}

#[cfg(not(target_os = "linux"))]
fn command_lines() -> Result<Vec<(i32, Vec<String>)>> {
    let output = std::process::Command::new("ps")
        .args(["-axww", "-o", "pid=,command="])
        .output()
        .context("run `ps`")?;
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.map(str::to_owned).collect()))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: &str, directory: &str) -> Option<String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        part_of(&args, Path::new(directory))
    }

    #[test]
    fn only_our_programs_on_that_directory_are_ours() {
        let etcd = "/c/plumb-cluster etcd --name=plumb --data-dir=/x/a/etcd";
        assert_eq!(part(etcd, "/x/a").as_deref(), Some("etcd"));
        assert_eq!(part("/c/kwok --kubeconfig=/x/a/k", "/x/a").as_deref(), Some("kwok"));
        assert_eq!(part("/c/plumb-cluster supervise --dir /x/a", "/x/a").as_deref(), Some("supervise"));
        for line in [
            "/c/plumb-cluster etcd --data-dir=/x/ab/etcd",
            "/c/plumb-cluster etcd --data-dir=/y/x/a/etcd",
            "/usr/bin/tail -f /x/a/logs/etcd.log",
            "/bin/bash -c plumb-cluster /x/a",
            "",
        ] {
            assert_eq!(part(line, "/x/a"), None, "{line}");
        }
    }
}
