//! What the system can restrict, and which isolation that gives.

use std::fmt;
use std::process::{Command, Stdio};

use super::{confine, process_tree, system_calls};

/// What the system can restrict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent feature of the system")]
pub struct Capabilities {
    /// Which namespaces plumb may create.
    pub namespaces: Namespaces,
    /// Landlock restricts files (Linux 5.13 and later, if enabled).
    pub landlock: bool,
    /// Landlock restricts signals (Linux 6.12 and later).
    pub landlock_signals: bool,
    /// Seccomp restricts system calls.
    pub seccomp: bool,
    /// The kernel lists the children of a process.
    pub child_lists: bool,
    /// plumb runs as root.
    pub root: bool,
}

/// Which namespaces plumb may create for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// None. Most pods do not allow them.
    None,
    /// Users, processes and network. `/proc` stays that of plumb, because the container hides parts of it.
    SharedProc,
    /// Users, processes and network, with a `/proc` that shows only the processes of the tool.
    OwnProc,
}

/// What tools are kept away from. The parts are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent part of the isolation")]
pub struct IsolationLevel {
    /// The files of plumb and of other apps.
    pub files: bool,
    /// The network.
    pub network: bool,
    /// Other processes: no process of a tool sees them or outlives its rendering.
    pub processes: bool,
    /// Signals to other processes.
    pub signals: bool,
    /// The rights of root.
    pub privileges: bool,
}

impl Capabilities {
    /// No restriction at all.
    pub const NONE: Self = Self {
        namespaces: Namespaces::None,
        landlock: false,
        landlock_signals: false,
        seccomp: false,
        child_lists: false,
        root: false,
    };

    /// Tries what the system allows.
    pub fn detect() -> Self {
        let namespaces = [Namespaces::OwnProc, Namespaces::SharedProc].into_iter().find(|kind| kind.works());
        Self {
            namespaces: namespaces.unwrap_or(Namespaces::None),
            landlock: confine::restricts_files(),
            landlock_signals: confine::restricts_signals(),
            seccomp: system_calls::are_restrictable(),
            child_lists: process_tree::can_list_children(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// The isolation that this gives.
    pub fn level(&self) -> IsolationLevel {
        let has_namespaces = self.namespaces != Namespaces::None;
        let signals = has_namespaces || (self.landlock && self.landlock_signals);
        IsolationLevel {
            files: self.landlock,
            network: has_namespaces || self.seccomp,
            // Without Landlock a tool could read the command lines of other processes in `/proc`.
            processes: has_namespaces || (signals && self.child_lists),
            signals,
            privileges: has_namespaces || !self.root,
        }
    }
}

impl Namespaces {
    /// The start of a command line that creates them; empty if there are none.
    pub(super) fn command(self, network: bool) -> Vec<&'static str> {
        if self == Self::None {
            return Vec::new();
        }
        let net = (!network).then_some("--net");
        let proc = (self == Self::OwnProc).then_some("--mount-proc");
        ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
            .into_iter()
            .chain(net)
            .chain(proc)
            .chain(["--"])
            .collect()
    }

    fn works(self) -> bool {
        let words = self.command(false);
        let Some((program, arguments)) = words.split_first() else { return true };
        let mut command = Command::new(program);
        command.args(arguments).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl IsolationLevel {
    /// The parts by name, each with what is needed where it is missing.
    fn parts(self) -> [(&'static str, bool, &'static str); 5] {
        [
            ("files", self.files, "the kernel has no Landlock (Linux 5.13 and later, if enabled)"),
            (
                "network",
                self.network,
                "the system allows neither unprivileged namespaces nor seccomp filters",
            ),
            (
                "processes",
                self.processes,
                "the system allows no unprivileged namespaces, and the kernel's Landlock does not restrict signals \
                 (Linux 6.12 and later)",
            ),
            (
                "signals",
                self.signals,
                "the system allows no unprivileged namespaces, and the kernel's Landlock does not restrict signals \
                 (Linux 6.12 and later)",
            ),
            (
                "privileges",
                self.privileges,
                "plumb runs as root and the system allows no unprivileged namespaces",
            ),
        ]
    }

    /// What tools are not kept away from: each part with the reason.
    pub fn missing(self) -> Vec<(&'static str, &'static str)> {
        let parts = self.parts().into_iter();
        parts.filter(|(_, has, _)| !has).map(|(name, _, reason)| (name, reason)).collect()
    }

    /// What keeps plugins from running. A plugin is a program of an administrator that works on files of a repository,
    /// and repositories are hostile: it needs every part.
    pub(crate) fn missing_for_plugins(self) -> Vec<(&'static str, &'static str)> {
        self.missing().into_iter().filter(|(name, _)| *name != "signals").collect()
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.parts().into_iter().filter(|(_, has, _)| *has).map(|(name, ..)| name).collect();
        if names.is_empty() { f.write_str("nothing") } else { f.write_str(&names.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_follows_from_what_the_system_can_restrict() {
        let all = Capabilities {
            namespaces: Namespaces::OwnProc,
            landlock: true,
            landlock_signals: true,
            seccomp: true,
            child_lists: true,
            root: false,
        };
        let pod = Capabilities { namespaces: Namespaces::None, ..all };
        let cases = [
            ("a laptop", all, "files, network, processes, signals, privileges", true),
            (
                "root on a laptop",
                Capabilities { root: true, ..all },
                "files, network, processes, signals, privileges",
                true,
            ),
            ("a pod", pod, "files, network, processes, signals, privileges", true),
            (
                "root in a pod",
                Capabilities { root: true, ..pod },
                "files, network, processes, signals",
                false,
            ),
            (
                "an older kernel",
                Capabilities { landlock_signals: false, ..pod },
                "files, network, privileges",
                false,
            ),
            (
                "a kernel without child lists",
                Capabilities { child_lists: false, ..pod },
                "files, network, signals, privileges",
                false,
            ),
            (
                "no filters",
                Capabilities { seccomp: false, ..pod },
                "files, processes, signals, privileges",
                false,
            ),
            ("no Landlock", Capabilities { landlock: false, ..pod }, "network, privileges", false),
            (
                "namespaces only",
                Capabilities { namespaces: Namespaces::SharedProc, root: true, ..Capabilities::NONE },
                "network, processes, signals, privileges",
                false,
            ),
            ("nothing, as root", Capabilities { root: true, ..Capabilities::NONE }, "nothing", false),
        ];
        for (name, capabilities, level, runs_plugins) in cases {
            assert_eq!(capabilities.level().to_string(), level, "{name}");
            assert_eq!(capabilities.level().missing_for_plugins().is_empty(), runs_plugins, "{name}");
        }
    }
}
