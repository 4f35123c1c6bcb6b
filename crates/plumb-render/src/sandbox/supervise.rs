//! Waits for a tool under its limits, and explains how it failed.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::SandboxError;
use super::hidden::Hidden;
use super::launch_spec::{STOPPED, StopReason};
use super::run::ToolRun;
use crate::limits::Limits;

/// How long a launcher has to end a tool and its processes.
const MAX_END_TIME: Duration = Duration::from_secs(10);

type Finished = (ExitStatus, Vec<u8>, Vec<u8>);

/// Reads both outputs until they end, or a limit is reached.
pub(super) fn supervise(
    child: &mut Child,
    limits: &Limits,
    started: Instant,
) -> Result<Finished, SandboxError> {
    enum Event {
        Stdout(Vec<u8>, bool),
        Stderr(Vec<u8>),
    }
    let (sender, events) = mpsc::channel();
    let limit = limits.output;
    let pipes = (child.stdout.take(), child.stderr.take());
    let errors = sender.clone();
    // The threads end with the pipes, which end with the launcher.
    std::thread::spawn(move || {
        let (bytes, over) = read_limited(pipes.0, limit);
        let _ = sender.send(Event::Stdout(bytes, over));
    });
    std::thread::spawn(move || {
        let (bytes, _) = read_limited(pipes.1, 256 << 10);
        let _ = errors.send(Event::Stderr(bytes));
    });
    let timeout = || SandboxError::Timeout { limit: limits.time };
    let (mut stdout, mut stderr) = (None, None);
    while stdout.is_none() || stderr.is_none() {
        let left = limits.time.saturating_sub(started.elapsed());
        match events.recv_timeout(left).map_err(|_| timeout())? {
            Event::Stdout(_, true) => return Err(SandboxError::Output { limit }),
            Event::Stdout(bytes, false) => stdout = Some(bytes),
            Event::Stderr(bytes) => stderr = Some(bytes),
        }
    }
    // A tool that closed its outputs usually exits at once. If it does not, the time limit applies.
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status, stdout.unwrap_or_default(), stderr.unwrap_or_default())),
            Ok(None) if started.elapsed() < limits.time => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            Ok(None) => return Err(timeout()),
            Err(error) => {
                return Err(SandboxError::Start { program: String::new(), reason: error.to_string() });
            }
        }
    }
}

fn read_limited(pipe: Option<impl Read>, limit: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let Some(pipe) = pipe else { return (bytes, false) };
    // A read error ends the output; the exit status reports the failure.
    let _ = pipe.take(limit as u64 + 1).read_to_end(&mut bytes);
    let over = bytes.len() > limit;
    bytes.truncate(limit);
    (bytes, over)
}

pub(super) fn failure(status: ExitStatus, stderr: &[u8], run: &ToolRun<'_>) -> SandboxError {
    if let Some(error) = stopped(status, stderr, run.limits) {
        return error;
    }
    let mut hidden = Hidden::default();
    (run.hides)(&mut hidden);
    let message = error_message(stderr, run.scratch, &hidden);
    let code = status.code().unwrap_or(-1);
    // The launcher reports a signal as shells do.
    let signal = status.signal().or_else(|| (129..=192).contains(&code).then(|| code - 128));
    if ran_out_of_memory(&message) {
        return SandboxError::Memory { limit: run.limits.memory };
    }
    if let Some(signal) = signal {
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        return SandboxError::Signal { signal, said };
    }
    if code == 127 || code == 126 {
        return SandboxError::Start { program: run.program.display().to_string(), reason: message };
    }
    let message = if message.is_empty() { format!("exit code {code} without a message") } else { message };
    SandboxError::Failed { code, message }
}

/// Why the launcher stopped the tool.
fn stopped(status: ExitStatus, stderr: &[u8], limits: &Limits) -> Option<SandboxError> {
    if status.code() != Some(i32::from(STOPPED)) {
        return None;
    }
    Some(match StopReason::of(stderr)? {
        StopReason::Memory => SandboxError::Memory { limit: limits.memory },
        StopReason::Disk => SandboxError::Disk { limit: limits.export_bytes.saturating_mul(2) },
        StopReason::Processes => SandboxError::Processes { limit: limits.processes },
        StopReason::Cancelled => SandboxError::Timeout { limit: limits.time },
    })
}

/// What programs in Go and Rust print when the system gives them no more memory.
fn ran_out_of_memory(message: &str) -> bool {
    const SAYINGS: [&str; 5] = [
        "runtime: out of memory",
        "fatal error: out of memory",
        "runtime: cannot allocate memory",
        "failed to create new OS thread",
        "memory allocation of ",
    ];
    SAYINGS.iter().any(|saying| message.contains(saying))
}

/// The tool's error output without values of secrets, temporary paths and control characters. A long text is cut to its start and its
/// end: a crash is explained at the start, an error message is at the end.
fn error_message(stderr: &[u8], scratch: &Path, hidden: &Hidden) -> String {
    const START: usize = 1500;
    const END: usize = 2500;
    let message = hidden.blank(&without_paths(&String::from_utf8_lossy(stderr), scratch));
    let characters: Vec<char> = message
        .trim()
        .chars()
        .map(|character| if character.is_control() && character != '\n' { ' ' } else { character })
        .collect();
    if characters.len() <= START + END {
        return characters.into_iter().collect();
    }
    let (start, end) = (&characters[..START], &characters[characters.len() - END..]);
    start.iter().chain(&[' ', '…', ' ']).chain(end).collect()
}

/// The text with paths relative to the repository. A path that is cut off or that names another scratch directory loses
/// its start too, which would tell where plumb keeps its files.
fn without_paths(text: &str, scratch: &Path) -> String {
    let repository = scratch.join("repo").display().to_string();
    let scratch_text = scratch.display().to_string();
    let mut text = text.replace(&format!("{repository}/"), "");
    text = text.replace(&repository, ".");
    text = text.replace(&format!("{scratch_text}/"), "");
    text = text.replace(&scratch_text, ".");
    match scratch.parent().map(|root| root.display().to_string()) {
        Some(root) if root.len() > 1 => text.replace(&format!("{root}/"), "").replace(&root, "."),
        Some(_) | None => text,
    }
}

/// Ends a run: closes the launcher's input, so that it ends the tool and all its processes. A launcher that does not
/// end is killed with its process group.
pub(super) fn end(mut child: Child) {
    drop(child.stdin.take());
    let started = Instant::now();
    while started.elapsed() < MAX_END_TIME {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // An error means that the group has already ended.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_paths_of_the_repository_only() {
        let scratch = Path::new("/var/cache/plumb/render/scratch/render-a1");
        for (said, shown) in [
            ("open /var/cache/plumb/render/scratch/render-a1/repo/app/x.yaml: no", "open app/x.yaml: no"),
            ("'/var/cache/plumb/render/scratch/render-a1/repo' is bad", "'.' is bad"),
            ("in /var/cache/plumb/render/scratch/render-a1/values.yaml", "in values.yaml"),
            ("below '/var/cache/plumb/render/scratch/render-a1'", "below '.'"),
            ("near /var/cache/plumb/render/scratch/render-b2/repo/y", "near render-b2/repo/y"),
            ("cut /var/cache/plumb/render/scratch", "cut ."),
        ] {
            assert_eq!(error_message(said.as_bytes(), scratch, &Hidden::default()), shown);
        }
    }
}
