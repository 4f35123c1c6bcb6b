//! The process between plumb and a tool. It sets the limits, confines and starts the tool, watches what the tool and
//! its children use, and leaves no process behind.
//!
//! plumb starts it in namespaces of its own where the system allows them. There it is the first process, so that the
//! kernel ends all others with it. Elsewhere it adopts the processes that the tool leaves, and kills them. Its input is
//! a pipe from plumb: when plumb closes it or dies, the run ends.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, setrlimit, wait,
};

use super::launch_spec::{LaunchSpec, MARK, NOT_STARTED, STOPPED, StopReason};
use super::system_calls::Calls;
use super::{confine, process_tree, system_calls};

/// How often the memory and the processes of a tool are counted.
const COUNT_EVERY: Duration = Duration::from_millis(20);

/// How often the files in the scratch directory are counted.
const COUNT_FILES_EVERY: Duration = Duration::from_secs(1);

/// Address space and data beyond the memory limit: programs in Go reserve much more than they use. What they use is
/// counted; these limits stop a tool that grows faster than that.
const UNUSED_ADDRESSES: u64 = 4 << 30;
const UNUSED_DATA: u64 = 512 << 20;

/// Most processes of plumb's user while a tool runs. Counting them stops a tool much earlier; this stops one that starts
/// thousands between two counts.
const MAX_PROCESSES: u64 = 4096;

/// What the shell says when a program cannot be found.
const NOT_FOUND: u8 = 127;

/// Runs a tool for [`super::Sandbox`]. Arguments: a description of the run, the program, its arguments. Returns the exit
/// code for the process. It is called by the program in [`crate::Tools::launcher`].
pub fn tool_launcher(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let spec = arguments.next().and_then(|text| serde_json::from_str::<LaunchSpec>(text.to_str()?).ok());
    let (Some(spec), Some(program)) = (spec, arguments.next()) else {
        return failed("this command is for plumb's own use", NOT_STARTED);
    };
    if let Err(reason) = prepare(&spec) {
        return failed(&reason, NOT_STARTED);
    }
    let mut command = Command::new(&program);
    // A group of its own, so that a tool that signals its group does not signal this process.
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    match start(&spec, &mut command) {
        Ok(tool) => watch(spec, &tool),
        Err(Failure::NotFound(reason)) => failed(&reason, NOT_FOUND),
        Err(Failure::Other(reason)) => failed(&reason, NOT_STARTED),
    }
}

enum Failure {
    NotFound(String),
    Other(String),
}

fn failed(reason: &str, code: u8) -> u8 {
    // If this fails, there is no other way to report it.
    let _ = writeln!(std::io::stderr(), "{reason}");
    code
}

/// Limits of this process, which the tool inherits.
fn prepare(spec: &LaunchSpec) -> Result<(), String> {
    // When memory runs out, the kernel ends the tool and not plumb. Raising the value is always allowed.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    set_child_subreaper(Some(getpid())).map_err(|error| format!("cannot adopt processes: {error}"))?;
    for (resource, most) in [
        (Resource::Data, spec.memory.saturating_add(UNUSED_DATA)),
        (Resource::As, spec.memory.saturating_add(UNUSED_ADDRESSES)),
        (Resource::Fsize, spec.file_bytes),
        (Resource::Cpu, spec.cpu_seconds),
        (Resource::Core, 0),
        (Resource::Nproc, MAX_PROCESSES),
    ] {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        // A lower limit of the system itself stays.
        if rustix::process::getrlimit(resource).maximum.is_none_or(|maximum| most <= maximum) {
            setrlimit(resource, limit).map_err(|error| format!("cannot limit {resource:?}: {error}"))?;
        }
    }
    Ok(())
}

/// Starts the tool from a thread that is confined, so that this process itself is not.
fn start(spec: &LaunchSpec, command: &mut Command) -> Result<Child, Failure> {
    let spawn = || {
        if spec.landlock {
            let is_confined =
                confine::confine_thread(spec).map_err(|error| Failure::Other(error.to_string()))?;
            if !is_confined {
                return Err(Failure::Other("the kernel does not enforce Landlock rules".to_owned()));
            }
        }
        if spec.system_calls {
            let calls = Calls { network: spec.network, protected: spec.protected };
            system_calls::restrict_thread(calls).map_err(Failure::Other)?;
        }
        command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::NotFound(error.to_string()),
            _ => Failure::Other(error.to_string()),
        })
    };
    let started = std::thread::scope(|scope| scope.spawn(spawn).join());
    started.unwrap_or_else(|_| Err(Failure::Other("the thread that starts the tool panicked".to_owned())))
}

/// Waits for the tool, and then ends what it left behind. Returns the exit code.
fn watch(spec: LaunchSpec, tool: &Child) -> u8 {
    let Some(process) = i32::try_from(tool.id()).ok().and_then(Pid::from_raw) else { return NOT_STARTED };
    let stopped: Arc<OnceLock<StopReason>> = Arc::default();
    let stop = move |reason: StopReason, stopped: &OnceLock<StopReason>| {
        let _ = stopped.set(reason);
        let _ = kill_process(process, Signal::KILL);
    };
    let by_plumb = Arc::clone(&stopped);
    std::thread::spawn(move || {
        // plumb writes nothing: the read returns when plumb closes the pipe or dies.
        let _ = std::io::stdin().read(&mut [0]);
        stop(StopReason::Cancelled, &by_plumb);
    });
    let by_use = Arc::clone(&stopped);
    std::thread::spawn(move || {
        stop(wait_for_excess(&spec), &by_use);
    });
    let status = wait_for(process);
    if getpid().as_raw_nonzero().get() != 1 {
        process_tree::kill_descendants();
    }
    match (stopped.get(), status) {
        (Some(reason), _) => failed(&format!("\n{MARK}{}", reason.word()), STOPPED),
        (None, Some(status)) => exit_code(status),
        (None, None) => NOT_STARTED,
    }
}

/// Waits until the tool ends, and reaps the processes that it leaves.
fn wait_for(tool: Pid) -> Option<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == tool => {
                return Some(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// As a shell has it: a signal is 128 and its number.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED)
}

/// Returns when the tool uses too much.
fn wait_for_excess(spec: &LaunchSpec) -> StopReason {
    let mut counted_files = Instant::now();
    loop {
        std::thread::sleep(COUNT_EVERY);
        let usage = process_tree::usage();
        if usage.memory > spec.memory {
            return StopReason::Memory;
        }
        if usage.processes > spec.processes {
            return StopReason::Processes;
        }
        if counted_files.elapsed() >= COUNT_FILES_EVERY {
            if bytes_below(&spec.scratch) > spec.scratch_bytes {
                return StopReason::Disk;
            }
            counted_files = Instant::now();
        }
    }
}

/// The bytes that the files below a directory take on disk.
fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut n_bytes = 0_u64;
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            // The metadata of a link, not of its target.
            let Ok(metadata) = entry.metadata() else { continue };
            n_bytes = n_bytes.saturating_add(metadata.blocks().saturating_mul(512));
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    n_bytes
}
