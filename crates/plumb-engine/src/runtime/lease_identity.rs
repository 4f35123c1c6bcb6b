//! Who holds the lease, so exactly that another process on the same machine can tell whether it still runs.
//!
//! After `kill -9` the lease stays behind. Everyone else has to wait until its time has run out; a process of the
//! same machine, same boot and same process namespace can look instead. That is a proof: a process that ended
//! sends nothing more. Everything else (another host, another container, no `/proc`) proves nothing.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// What this process calls itself in the lease: `host_pid_start_place`. The host is for people to read.
pub fn identity(host: &str) -> String {
    let pid = std::process::id();
    let host = if host.is_empty() { "plumb" } else { host };
    match (started(pid), place()) {
        (Some(started), Some(place)) => format!("{host}_{pid}_{started}_{place}"),
        // A system without these files: then nobody can prove anything.
        _ => format!("{host}_{pid}"),
    }
}

/// Is a holder proved to have ended?
pub(crate) fn is_gone(holder: &str) -> bool {
    let mut parts = holder.rsplit('_');
    let (Some(there), Some(start), Some(pid)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Ok(start), Some(here)) = (pid.parse::<u32>(), start.parse::<u64>(), place()) else {
        return false;
    };
    // Without our own entry the directory is not what it should be, and says nothing about others.
    if there != here || started(std::process::id()).is_none() {
        return false;
    }
    // Another start time: the number was given to another process since.
    started(pid) != Some(start)
}

/// When a process started, in ticks since boot; `None` if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// This boot of this machine and this process namespace, as a short text.
fn place() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let digest = Sha256::digest(format!("{}/{}", boot.trim(), namespace.display()).as_bytes());
    let mut short = String::new();
    for byte in digest.iter().take(6) {
        // Writing to a text cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_is_there_and_one_that_ended_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (start, place) = (started(child.id()).unwrap(), place().unwrap());
        let of_child = format!("some_host_{}_{start}_{place}", child.id());
        assert!(!is_gone(&of_child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&of_child));
        assert!(!is_gone(&identity("host")), "ourselves");
    }

    #[test]
    fn what_proves_nothing_is_waited_for() {
        let pid = std::process::id();
        let (start, place) = (started(pid).unwrap(), place().unwrap());
        assert!(is_gone(&format!("host_{pid}_{}_{place}", start + 1)), "the number was used again");
        for holder in [
            format!("host_{pid}_{}_0123456789ab", start + 1),
            format!("host_{pid}"),
            format!("host_x_{start}_{place}"),
            format!("host_{pid}_x_{place}"),
            "argocd-application-controller-0".to_owned(),
            String::new(),
        ] {
            assert!(!is_gone(&holder), "{holder}");
        }
    }
}
