//! Restricts the system calls of a tool, by seccomp.
//!
//! This is what keeps a tool off the network where network namespaces are not allowed, as in most pods. It also
//! refuses the calls that inspect other processes, and those with the largest record of kernel faults.
//!
//! The filter applies to a thread, and a process started from that thread inherits it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Calls that no rendering needs.
const REFUSED: [i64; 47] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // A second way to most calls, which this filter does not see.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Keys of the kernel, programs in the kernel, and measurements of it.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_lookup_dcookie,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
];

/// Flags of `clone` that create a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The address families of a tool that may use the network.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Calls that send a signal to the process in their first argument.
const SIGNALS: [i64; 5] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
];

/// On `x86_64` the kernel may take each call under a second number, which the filter must refuse too.
#[cfg(target_arch = "x86_64")]
const ALIASES: [i64; 2] = [0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const ALIASES: [i64; 1] = [0];

/// Which calls a tool may make.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    pub(super) network: bool,
    /// A process that must not be signalled.
    pub(super) protected: Option<i32>,
}

/// Restricts the calling thread and its children.
pub(super) fn restrict_thread(calls: Calls) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    for program in [refusals(calls), without_clone3()] {
        let program = program.map_err(|error| text(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| text(&error))?;
    }
    Ok(())
}

/// True if the kernel takes such a filter.
pub(super) fn are_restrictable() -> bool {
    let tried = std::thread::spawn(|| restrict_thread(Calls { network: false, protected: None }).is_ok());
    tried.join().unwrap_or(false)
}

fn refusals(calls: Calls) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, sockets(calls.network)?);
    rules.insert(libc::SYS_clone, namespaces()?);
    if let Some(process) = calls.protected {
        for call in SIGNALS {
            rules.insert(call, signals(process)?);
        }
        rules.insert(libc::SYS_pidfd_send_signal, Vec::new());
    }
    compile(&rules, libc::EPERM)
}

/// The arguments of `clone3` are in memory, where a filter cannot see them. Programs fall back to `clone`.
fn without_clone3() -> Result<BpfProgram, seccompiler::BackendError> {
    compile(&[(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)
}

fn compile(
    rules: &BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let rules = ALIASES
        .into_iter()
        .flat_map(|alias| rules.iter().map(move |(call, rules)| (call + alias, rules.clone())))
        .collect();
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(error.unsigned_abs()),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

/// Without network no socket at all: a socket of the file system may belong to a container runtime. Pairs of connected
/// sockets are made by another call.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    if !network {
        return Ok(Vec::new());
    }
    let other = FAMILIES
        .into_iter()
        .map(|family| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(other)?])
}

fn namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    NAMESPACES
        .into_iter()
        .map(|flag| {
            let flag = u64::from(flag.cast_unsigned());
            SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(flag), flag)?])
        })
        .collect()
}

/// Signals to one process, or to a process group that the number names.
fn signals(process: i32) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const NEGATIVE: u64 = 1 << 31;
    let process = u64::from(process.unsigned_abs());
    Ok(vec![
        SeccompRule::new(vec![condition(0, SeccompCmpOp::Eq, process)?])?,
        SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(NEGATIVE), NEGATIVE)?])?,
    ])
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_of_calls_is_a_valid_program() {
        for network in [false, true] {
            for protected in [None, Some(7)] {
                let program = refusals(Calls { network, protected }).unwrap();
                assert!(program.len() > REFUSED.len(), "{network} {protected:?}");
            }
        }
        assert!(without_clone3().is_ok());
    }
}
