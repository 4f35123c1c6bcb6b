//! Runs the git program: own environment, own process group, limits on time and output.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use plumb_core::source::AddressRefused;
use tokio::io::AsyncReadExt as _;

use crate::access::Environment;
use crate::retry::Retry;

/// Limits of one run of git.
#[derive(Clone, Debug)]
pub struct GitLimits {
    /// Longest time for one command.
    pub timeout: Duration,
    /// Longest time for fetching objects. It is long because large repositories need it; a server that stalls
    /// is detected earlier.
    pub fetch_timeout: Duration,
    /// Most bytes that are read from its output (a list of refs).
    pub max_output: usize,
    /// Largest file that it may write (a pack).
    pub max_file: u64,
    /// Largest file that is read from a repository.
    pub max_blob: u64,
    /// Most memory of one process (address space).
    pub memory: u64,
    /// Most bytes of all mirrors on disk. One mirror may use half of it.
    pub mirrors: u64,
}

impl GitLimits {
    /// Most bytes of one mirror on disk.
    pub fn mirror(&self) -> u64 {
        self.mirrors / 2
    }
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(90),
            fetch_timeout: Duration::from_mins(15),
            max_output: 64 << 20,
            max_file: 8 << 30,
            max_blob: 64 << 20,
            memory: 1 << 30,
            mirrors: 20 << 30,
        }
    }
}

/// Why a run of git failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommandError {
    /// The program is not installed.
    #[error("cannot run `{program}`: not found; install git, or name its path in the settings")]
    Missing {
        /// Which program.
        program: String,
    },
    /// The cache directory, in which git runs, is missing or cannot be written to.
    #[error(
        "cannot use the cache directory {directory}: {reason}; check its free space and owner, and that it is not \
         mounted read-only"
    )]
    Cache {
        /// Where.
        directory: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system did not start the program.
    #[error("cannot run `{program}`: {reason}")]
    Start {
        /// Which program.
        program: String,
        /// The operating system's error.
        reason: String,
    },
    /// git ran longer than the limit and was killed.
    #[error("git {command} did not finish within {} s", .timeout.as_secs())]
    Timeout {
        /// The sub-command.
        command: String,
        /// The limit.
        timeout: Duration,
    },
    /// git printed more than the limit and was killed.
    #[error("git {command} printed more than {limit} bytes")]
    Output {
        /// The sub-command.
        command: String,
        /// The limit.
        limit: usize,
    },
    /// git needed more memory than the limit.
    #[error(
        "git {command} needs more than {} MiB of memory; does the repository contain very large files?", .limit >> 20
    )]
    Memory {
        /// The sub-command.
        command: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// git exited with an error.
    #[error("git {command}: {message}")]
    Failed {
        /// The sub-command.
        command: String,
        /// The exit code, if it was not ended by a signal.
        code: Option<i32>,
        /// The last lines of its output, without secrets.
        message: String,
    },
    /// The address policy does not permit the server.
    #[error(transparent)]
    Refused(AddressRefused),
    /// Reading a pipe or writing a private file failed.
    #[error("git {command}: {reason}")]
    Io {
        /// The sub-command.
        command: String,
        /// The operating system's error.
        reason: String,
    },
}

impl CommandError {
    /// Can the same command succeed later? A program that ran and failed counts as transient: only its text
    /// would show whether the server was down, and plumb does not decide by text.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Missing { .. } | Self::Output { .. } | Self::Memory { .. } | Self::Refused(_) => {
                Retry::Permanent
            }
            Self::Cache { .. }
            | Self::Start { .. }
            | Self::Timeout { .. }
            | Self::Failed { .. }
            | Self::Io { .. } => Retry::Transient,
        }
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "program",
            Self::Cache { .. } => "cache",
            Self::Start { .. } => "start",
            Self::Timeout { .. } => "timeout",
            Self::Output { .. } => "output",
            Self::Memory { .. } => "memory",
            Self::Failed { .. } => "failed",
            Self::Refused(_) => "address",
            Self::Io { .. } => "io",
        }
    }
}

/// How to run git.
pub(crate) struct Git<'a> {
    pub(crate) program: &'a Path,
    pub(crate) limits: &'a GitLimits,
    /// Longest time for this command.
    pub(crate) timeout: Duration,
    /// Empty directory, used as home.
    pub(crate) home: PathBuf,
    pub(crate) environment: Environment,
    /// The protocols that git may use, for `GIT_ALLOW_PROTOCOL`.
    pub(crate) protocols: &'static str,
    /// Texts that must not be in messages.
    pub(crate) secrets: Vec<String>,
}

impl Git<'_> {
    /// Runs one command and returns its output, if it succeeded.
    pub(crate) async fn run<S: AsRef<OsStr>>(
        self,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Vec<u8>, CommandError> {
        let (secrets, home, memory) = (self.secrets.clone(), self.home.clone(), self.limits.memory);
        let finished = self.finish(directory, arguments).await?;
        if finished.code == Some(0) {
            return Ok(finished.output);
        }
        let message = last_lines(&String::from_utf8_lossy(&finished.errors), &home, &secrets);
        if is_out_of_memory(&message) {
            return Err(CommandError::Memory { command: name_of(arguments), limit: memory });
        }
        Err(CommandError::Failed { command: name_of(arguments), code: finished.code, message })
    }

    /// Runs one command until it exits, with whatever code.
    pub(crate) async fn finish<S: AsRef<OsStr>>(
        self,
        directory: &Path,
        arguments: &[S],
    ) -> Result<Finished, CommandError> {
        let command = name_of(arguments);
        let io =
            |error: std::io::Error| CommandError::Io { command: command.clone(), reason: error.to_string() };
        let blocks = (self.limits.max_file / 512).to_string();
        let memory = (self.limits.memory >> 10).to_string();
        let mut process = tokio::process::Command::new("/bin/sh");
        process
            .args(["-c", LIMITED, "sh", &blocks, &memory])
            .arg(self.program)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .envs(base_environment(&self.home, self.protocols))
            .envs(self.environment.into_variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let program = || self.program.display().to_string();
        let mut child = process.spawn().map_err(|error| not_started(program(), directory, &error))?;
        let group = ProcessGroup::of(&child);
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let limit = self.limits.max_output;
        let work = async {
            let ((output, over), (errors, _)) = tokio::try_join!(
                read_limited(stdout.as_mut(), limit),
                read_limited(stderr.as_mut(), 1 << 20)
            )?;
            if over {
                return Ok((output, errors, None));
            }
            Ok::<_, std::io::Error>((output, errors, Some(child.wait().await?)))
        };
        let outcome = tokio::time::timeout(self.timeout, work).await;
        drop(group);
        let Ok(outcome) = outcome else {
            return Err(CommandError::Timeout { command, timeout: self.timeout });
        };
        let (output, errors, status) = outcome.map_err(io)?;
        let Some(status) = status else { return Err(CommandError::Output { command, limit }) };
        if status.code() == Some(127) {
            return Err(CommandError::Missing { program: program() });
        }
        Ok(Finished { code: status.code(), output, errors })
    }
}

/// The operating system has one error for a missing program and a missing directory.
fn not_started(program: String, directory: &Path, error: &std::io::Error) -> CommandError {
    if directory.is_dir() {
        return CommandError::Start { program, reason: error.to_string() };
    }
    let directory = directory.display().to_string();
    CommandError::Cache { directory, reason: "it does not exist".to_owned() }
}

/// A shell sets the limits and then executes git in its place, so git never runs without them. If the machine runs out
/// of memory, the kernel ends git rather than plumb.
const LIMITED: &str = "ulimit -f \"$1\" && ulimit -v \"$2\" && ulimit -c 0 && shift 2 || exit 126; \
    { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec \"$@\"";

/// True if git says that it got no memory. Its exit code does not tell.
fn is_out_of_memory(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["out of memory", "cannot allocate memory", "unable to create thread"]
        .iter()
        .any(|words| message.contains(words))
}

/// A command that ran to its end.
pub(crate) struct Finished {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
}

fn name_of<S: AsRef<OsStr>>(arguments: &[S]) -> String {
    arguments.first().map(|name| name.as_ref().to_string_lossy().into_owned()).unwrap_or_default()
}

/// Kills the whole process group (git, ssh, helpers) when dropped.
struct ProcessGroup(Option<rustix::process::Pid>);

impl ProcessGroup {
    fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

fn base_environment(home: &Path, protocols: &str) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("LC_ALL", "C"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("SSH_ASKPASS", "true"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        // An object is what its hash says, and its parents are those that it names.
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_GRAFT_FILE", "/dev/null"),
        ("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""),
        // For the log of branches in a mirror.
        ("GIT_COMMITTER_NAME", "plumb"),
        ("GIT_COMMITTER_EMAIL", "plumb@localhost"),
        ("GIT_ALLOW_PROTOCOL", protocols),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value.into()))
    .collect();
    environment.push(("HOME".into(), home.into()));
    environment.push(("XDG_CONFIG_HOME".into(), home.into()));
    environment
}

async fn read_limited<R: tokio::io::AsyncRead + Unpin>(
    reader: Option<&mut R>,
    limit: usize,
) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let Some(reader) = reader else { return Ok((bytes, false)) };
    reader.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    let over = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, over))
}

/// The end of git's output in one line, without secrets and without the paths of private files, which no
/// longer exist.
fn last_lines(text: &str, home: &Path, secrets: &[String]) -> String {
    let private = home.parent().map(|directory| format!("{}/", directory.display()));
    let text = private.map_or_else(|| text.to_owned(), |directory| text.replace(&directory, ""));
    let mut lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:")).collect();
    if lines.len() > 6 {
        lines.drain(..lines.len() - 6);
    }
    let mut message = lines.join("; ");
    for secret in secrets {
        message = message.replace(secret.as_str(), "***");
    }
    message.chars().map(|character| if character.is_control() { ' ' } else { character }).take(1000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_is_not_a_missing_program() {
        let error = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let here = tempfile::tempdir().unwrap();
        let said = not_started("git".to_owned(), here.path(), &error()).to_string();
        assert!(said.starts_with("cannot run `git`: "), "{said}");
        let gone = here.path().join("mirror");
        let said = not_started("git".to_owned(), &gone, &error()).to_string();
        assert!(said.starts_with("cannot use the cache directory ") && said.contains("/mirror"), "{said}");
        assert!(!said.contains("install"), "{said}");
    }
}
