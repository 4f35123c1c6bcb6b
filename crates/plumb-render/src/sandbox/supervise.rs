//! Waits for a tool under its limits, and explains how it failed.

use std::io::Read;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::SandboxError;
use super::run::ToolRun;
use crate::limits::Limits;

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
    // The threads end with the pipes, which end with the process group.
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
    let message = error_message(stderr, run.scratch);
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        return SandboxError::Signal { signal, said };
    }
    let code = status.code().unwrap_or(-1);
    if code == 127 || code == 126 {
        return SandboxError::Start { program: run.program.display().to_string(), reason: message };
    }
    let message = if message.is_empty() { format!("exit code {code} without a message") } else { message };
    SandboxError::Failed { code, message }
}

/// The tool's error output without temporary paths and control characters. A long text is cut to its start and its
/// end: a crash is explained at the start, an error message is at the end.
fn error_message(stderr: &[u8], scratch: &Path) -> String {
    const START: usize = 1500;
    const END: usize = 2500;
    let text = String::from_utf8_lossy(stderr);
    let mut message = text.replace(&format!("{}/repo/", scratch.display()), "");
    message = message.replace(&format!("{}/", scratch.display()), "");
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

/// Kills the whole process group on drop.
pub(super) struct ProcessGroup(Option<rustix::process::Pid>);

impl ProcessGroup {
    pub(super) fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // An error means that the group has already ended.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
