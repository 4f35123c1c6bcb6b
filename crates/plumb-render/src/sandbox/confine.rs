//! Restricts the files that a tool can open, by Landlock: the kernel refuses every path that is not listed here.
//!
//! The rules apply to a thread, and a process started from that thread inherits them.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, path_beneath_rules,
};

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

/// `/proc` for the maps of a user namespace; the kernel protects the entries of other processes.
const SHARED: [&str; 3] = ["/dev/null", "/dev/zero", "/proc"];

/// Restricts the calling thread and its children to the system's programs, these programs and one directory. Returns
/// false if the kernel does not enforce it.
pub(super) fn confine_thread(
    programs: &[PathBuf],
    scratch: &Path,
    network: bool,
) -> Result<bool, RulesetError> {
    let abi = ABI::V4;
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(abi))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(programs, AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules(SHARED, AccessFs::from_all(abi)))?
        .add_rules(path_beneath_rules([scratch], AccessFs::from_all(abi)))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// True if the kernel enforces Landlock rules.
pub(super) fn is_available() -> bool {
    let tried = std::thread::spawn(|| confine_thread(&[], Path::new("/tmp"), true));
    tried.join().is_ok_and(|result| result.unwrap_or(false))
}
