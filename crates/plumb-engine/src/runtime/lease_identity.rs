//! The holder identity of the lease, with which a process on the same machine can check whether the holder still runs.
//!
//! After `kill -9` the lease remains. Other processes have to wait until it expires. A process of the same machine,
//! boot and PID namespace can check `/proc` instead, which is a proof: a process that has ended sends no more requests.
//! In all other cases (another host, another container, no `/proc`) nothing is proved.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The identity of this process in the lease: `host_pid_start_namespace`. The host is for human readers.
pub fn identity(host: &str) -> String {
    let pid = std::process::id();
    let host = if host.is_empty() { "plumb" } else { host };
    match (started(pid), pid_namespace()) {
        (Some(started), Some(namespace)) => format!("{host}_{pid}_{started}_{namespace}"),
        // Without `/proc`, no process can prove that this one has ended.
        _ => format!("{host}_{pid}"),
    }
}

/// True if it is proved that a holder has ended.
pub(crate) fn is_gone(holder: &str) -> bool {
    let mut parts = holder.rsplit('_');
    let (Some(there), Some(start), Some(pid)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Ok(start), Some(here)) = (pid.parse::<u32>(), start.parse::<u64>(), pid_namespace()) else {
        return false;
    };
    // If `/proc` does not list even this process, it proves nothing about others.
    if there != here || started(std::process::id()).is_none() {
        return false;
    }
    // Another start time means that the PID was reused.
    started(pid) != Some(start)
}

/// When a process started, in ticks since boot; `None` if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Hash of the boot ID of this machine and the PID namespace of this process.
fn pid_namespace() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let digest = Sha256::digest(format!("{}/{}", boot.trim(), namespace.display()).as_bytes());
    let mut short = String::new();
    for byte in digest.iter().take(6) {
        // Writing to a `String` cannot fail.
        let _ = write!(short, "{byte:02x}");
    }
    Some(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_after_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (start, namespace) = (started(child.id()).unwrap(), pid_namespace().unwrap());
        let of_child = format!("some_host_{}_{start}_{namespace}", child.id());
        assert!(!is_gone(&of_child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&of_child));
        assert!(!is_gone(&identity("host")), "this process still runs");
    }

    #[test]
    fn a_holder_that_cannot_be_checked_is_not_gone() {
        let pid = std::process::id();
        let (start, namespace) = (started(pid).unwrap(), pid_namespace().unwrap());
        assert!(is_gone(&format!("host_{pid}_{}_{namespace}", start + 1)), "the PID was reused");
        for holder in [
            format!("host_{pid}_{}_0123456789ab", start + 1),
            format!("host_{pid}"),
            format!("host_x_{start}_{namespace}"),
            format!("host_{pid}_x_{namespace}"),
            "argocd-application-controller-0".to_owned(),
            String::new(),
        ] {
            assert!(!is_gone(&holder), "{holder}");
        }
    }
}
