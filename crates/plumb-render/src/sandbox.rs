//! Runs the programs that render.
//!
//! What holds always: an environment with nothing but what the tool needs, an empty home, a process group of its
//! own that is ended as a whole, limits on time, memory, file sizes and output. Where the kernel has Landlock
//! (Linux 5.13 and later, unless switched off): no file but the system's programs and the rendering's own scratch
//! directory can be opened. Where unprivileged namespaces are allowed: no network at all. Without them the tools
//! get proxies that lead nowhere, and what they could fetch is refused before they run.

mod clock;
mod confine;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) use clock::Clock;

use crate::{Limits, RenderError, Tools};

/// How a run ended badly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The program is not there, or cannot be run.
    #[error("run `{program}`: {reason}; install it, or name its path in the settings")]
    Start {
        /// Which program.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// It ran for too long.
    #[error("it did not finish within {} s and was ended", .limit.as_secs())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It printed too much.
    #[error("it printed more than {limit} bytes and was ended")]
    Output {
        /// The limit.
        limit: usize,
    },
    /// It was ended by a signal: the limits on memory, time or file size.
    #[error("it was ended by signal {signal}, most likely for using too much memory{said}")]
    Signal {
        /// Which signal.
        signal: i32,
        /// What it said before.
        said: String,
    },
    /// It said no.
    #[error("{message}")]
    Failed {
        /// The exit code.
        code: i32,
        /// What it said, with temporary paths taken out.
        message: String,
    },
}

/// Runs tools.
#[derive(Clone, Debug)]
pub struct Sandbox {
    isolation: NetworkIsolation,
    files: FileIsolation,
}

/// What keeps tools from files that are not theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIsolation {
    /// The kernel refuses to open them.
    Landlock,
    /// Only what is written to the scratch directory is of the repository, without links; paths that leave it are
    /// refused before a tool runs.
    InspectionOnly,
}

/// What keeps tools from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkIsolation {
    /// A network namespace of their own, with nothing in it.
    Namespace,
    /// Proxies that lead nowhere, and refusing beforehand what would need the network.
    InspectionOnly,
}

/// One run.
pub(crate) struct Run<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Another program that the tool runs.
    pub(crate) helper: Option<&'a Path>,
    /// Private directory of this rendering; its path is taken out of messages.
    pub(crate) scratch: &'a Path,
    pub(crate) network: bool,
    pub(crate) limits: &'a Limits,
}

impl Sandbox {
    /// Finds out what the system allows.
    pub fn detect() -> Self {
        let works = Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        let isolation = if works { NetworkIsolation::Namespace } else { NetworkIsolation::InspectionOnly };
        let files =
            if confine::is_available() { FileIsolation::Landlock } else { FileIsolation::InspectionOnly };
        Self { isolation, files }
    }

    /// The same, as if the kernel kept tools from files in this way. It cannot give what the kernel does not have:
    /// then no tool starts.
    #[must_use]
    pub fn with_file_isolation(self, files: FileIsolation) -> Self {
        Self { files, ..self }
    }

    /// What keeps tools from files that are not theirs, here.
    pub fn file_isolation(&self) -> FileIsolation {
        self.files
    }

    /// What keeps tools from the network here.
    pub fn isolation(&self) -> NetworkIsolation {
        self.isolation
    }

    /// Runs a tool to its end and gives back what it printed.
    pub(crate) fn run(&self, run: &Run<'_>) -> Result<Vec<u8>, SandboxError> {
        let started = Instant::now();
        let mut child = self
            .spawn(run)
            .map_err(|reason| SandboxError::Start { program: run.program.display().to_string(), reason })?;
        let group = Group::of(&child);
        let outcome = supervise(&mut child, run.limits, started);
        // Children that the tool left behind end with it.
        drop(group);
        let _ = child.wait();
        let (status, stdout, stderr) = outcome?;
        if status.success() {
            return Ok(stdout);
        }
        Err(failure(status, &stderr, run))
    }

    fn spawn(&self, run: &Run<'_>) -> Result<Child, String> {
        let mut command = self.command(run);
        if self.files == FileIsolation::InspectionOnly {
            return command.spawn().map_err(|error| error.to_string());
        }
        let programs = [run.program.to_owned(), run.helper.map(Path::to_owned).unwrap_or_default()];
        // The rules stay with the thread, so it must be one that ends.
        let spawned = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let is_confined = confine::confine_thread(&programs, run.scratch, run.network)
                    .map_err(|error| error.to_string())?;
                if !is_confined {
                    return Err("the kernel does not confine it".to_owned());
                }
                command.spawn().map_err(|error| error.to_string())
            });
            thread.join()
        });
        spawned.unwrap_or_else(|_| Err("the thread that starts it failed".to_owned()))
    }

    fn command(&self, run: &Run<'_>) -> Command {
        // The shell sets the limits and is then replaced by the tool, so there is no moment without them.
        const LIMITS: &str = "ulimit -v \"$1\" && ulimit -f \"$2\" && ulimit -t \"$3\" && ulimit -c 0 \
                              && shift 3 && exec \"$@\"";
        let isolated = !run.network && self.isolation == NetworkIsolation::Namespace;
        let mut command = if isolated {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--net", "--", "/bin/sh"]);
            command
        } else {
            Command::new("/bin/sh")
        };
        command
            .args(["-c", LIMITS, "sh"])
            .arg((run.limits.memory / 1024).to_string())
            .arg((run.limits.export_bytes / 512).to_string())
            .arg((run.limits.time.as_secs() * 4).to_string())
            .arg(run.program)
            .args(&run.arguments)
            .current_dir(run.directory)
            .env_clear()
            .envs(base_environment(run.scratch, run.network))
            .envs(run.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }
}

fn base_environment(scratch: &Path, network: bool) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("TZ".into(), clock::zone(scratch)),
        ("HOME".into(), scratch.join("home").into()),
        ("TMPDIR".into(), scratch.join("tmp").into()),
    ];
    if !network {
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment.push((name.into(), "http://127.0.0.1:1".into()));
        }
    }
    environment
}

type Finished = (ExitStatus, Vec<u8>, Vec<u8>);

/// Reads both outputs until they end, or a limit is reached.
fn supervise(child: &mut Child, limits: &Limits, started: Instant) -> Result<Finished, SandboxError> {
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
    // A tool that closed its outputs is about to end; if it is not, time will tell.
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
    // A read error ends the output; the exit status tells the rest.
    let _ = pipe.take(limit as u64 + 1).read_to_end(&mut bytes);
    let over = bytes.len() > limit;
    bytes.truncate(limit);
    (bytes, over)
}

fn failure(status: ExitStatus, stderr: &[u8], run: &Run<'_>) -> SandboxError {
    let message = last_words(stderr, run.scratch);
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        return SandboxError::Signal { signal, said };
    }
    let code = status.code().unwrap_or(-1);
    if code == 127 || code == 126 {
        return SandboxError::Start { program: run.program.display().to_string(), reason: message };
    }
    let message = if message.is_empty() { format!("it ended with exit code {code}") } else { message };
    SandboxError::Failed { code, message }
}

/// What the tool said, without temporary paths and control characters. Of a long text the start and the end:
/// programs that crash say why first, those that complain say it last.
fn last_words(stderr: &[u8], scratch: &Path) -> String {
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

/// Ends the whole process group when it goes out of scope.
struct Group(Option<rustix::process::Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Already gone is fine.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Everything that a settled rendering needs to run.
pub(crate) struct Workshop<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) tools: &'a Tools,
    pub(crate) limits: &'a Limits,
    /// Where scratch directories are made.
    pub(crate) root: &'a Path,
    /// The time that the tools see.
    pub(crate) clock: Clock,
}

impl Workshop<'_> {
    /// A new scratch directory.
    pub(crate) fn scratch(&self) -> Result<Scratch, RenderError> {
        let scratch = Scratch::new(self.root).map_err(|error| RenderError::scratch(&error))?;
        self.clock.set(scratch.path()).map_err(|error| RenderError::scratch(&error))?;
        Ok(scratch)
    }
}

/// A private directory for one rendering, gone when it is dropped.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
}

/// How the names of scratch directories begin.
pub(crate) const SCRATCH: &str = "render-";

impl Scratch {
    pub(crate) fn new(root: &Path) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(root)?;
        let scratch = Self { directory };
        for name in ["home", "tmp"] {
            std::fs::create_dir(scratch.path().join(name))?;
        }
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the main source's files go.
    pub(crate) fn repository(&self) -> PathBuf {
        self.path().join("repo")
    }
}

/// `--name=value`, so that no value can be taken for an option.
pub(crate) fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}
