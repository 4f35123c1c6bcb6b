//! Restricts the files that a tool can open and the processes that it can signal, by Landlock: the kernel refuses
//! everything that is not listed here.
//!
//! The rules apply to a thread, and a process started from that thread inherits them.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::launch_spec::LaunchSpec;

/// What programs need to run. It excludes home directories, `/etc/passwd`, service account tokens and caches.
const SYSTEM: [&str; 17] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/opt",
    "/nix/store",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/dev/urandom",
];

/// Devices that a tool may write to.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/zero"];

/// All of `/proc`, where it shows only the processes of the run.
const OWN_PROC: [&str; 1] = ["/proc"];

/// The files of `/proc` that describe the machine, where it also shows other processes.
const SHARED_PROC: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
];

/// The rights of Landlock that plumb uses. The kernel enforces those that it has.
const RIGHTS: ABI = ABI::V6;

/// Restricts the calling thread and its children. Returns false if the kernel does not enforce it.
pub(super) fn confine_thread(spec: &LaunchSpec) -> Result<bool, RulesetError> {
    let proc: &[&str] = if spec.own_proc { &OWN_PROC } else { &SHARED_PROC };
    let programs: Vec<&PathBuf> = spec.programs.iter().collect();
    restrict(&programs, &spec.scratch, proc, spec.network)
}

fn restrict(
    programs: &[&PathBuf],
    scratch: &Path,
    proc: &[&str],
    network: bool,
) -> Result<bool, RulesetError> {
    let read = AccessFs::from_read(RIGHTS);
    // A device file in the scratch directory would be a way to the machine's disks and memory.
    let write = AccessFs::from_all(RIGHTS) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(RIGHTS))?;
    }
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(programs, read))?
        .add_rules(path_beneath_rules(proc, read))?
        .add_rules(path_beneath_rules(DEVICES, write))?
        .add_rules(path_beneath_rules([scratch], write))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// True if the kernel enforces Landlock rules on files.
pub(super) fn restricts_files() -> bool {
    let tried = std::thread::spawn(|| restrict(&[], Path::new("/tmp"), &[], true));
    tried.join().is_ok_and(|result| result.unwrap_or(false))
}

/// True if the kernel can keep a process from signalling others (Linux 6.12 and later).
pub(super) fn restricts_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal);
    ruleset.and_then(Ruleset::create).is_ok()
}
