//! Starts tools.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::error::SandboxError;
use super::supervise::{ProcessGroup, failure, supervise};
use super::{clock, confine};
use crate::limits::Limits;

/// Runs tools in isolation, as far as the system supports it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    isolation: NetworkIsolation,
    files: FileIsolation,
}

/// What restricts the files that a tool can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileIsolation {
    /// The kernel refuses to open any other file.
    Landlock,
    /// Nothing but inspection: files are written to the scratch directory without links, and paths that leave the
    /// repository are refused before a tool runs.
    InspectionOnly,
}

/// What restricts the network of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkIsolation {
    /// An empty network namespace.
    Namespace,
    /// Proxy settings that lead nowhere; sources that need the network are refused before a tool runs.
    InspectionOnly,
}

/// One run of a tool.
pub(crate) struct ToolRun<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: &'a Path,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Another program that the tool starts.
    pub(crate) helper: Option<&'a Path>,
    /// The private directory of this rendering. Its path is removed from messages.
    pub(crate) scratch: &'a Path,
    pub(crate) network: bool,
    pub(crate) limits: &'a Limits,
}

impl Sandbox {
    /// Detects what the system supports.
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

    /// The same with this restriction of files. If the kernel does not support it, no tool starts.
    #[must_use]
    pub fn with_file_isolation(self, files: FileIsolation) -> Self {
        Self { files, ..self }
    }

    /// What restricts the files of tools on this system.
    pub fn file_isolation(&self) -> FileIsolation {
        self.files
    }

    /// What restricts the network of tools on this system.
    pub fn isolation(&self) -> NetworkIsolation {
        self.isolation
    }

    /// Runs a tool and returns what it printed.
    pub(crate) fn run(&self, run: &ToolRun<'_>) -> Result<Vec<u8>, SandboxError> {
        let started = Instant::now();
        let mut child = self
            .spawn(run)
            .map_err(|reason| SandboxError::Start { program: run.program.display().to_string(), reason })?;
        let group = ProcessGroup::of(&child);
        let outcome = supervise(&mut child, run.limits, started);
        // Processes that the tool left behind are killed with it.
        drop(group);
        let _ = child.wait();
        let (status, stdout, stderr) = outcome?;
        if status.success() {
            return Ok(stdout);
        }
        Err(failure(status, &stderr, run))
    }

    fn spawn(&self, run: &ToolRun<'_>) -> Result<Child, String> {
        let mut command = self.command(run);
        if self.files == FileIsolation::InspectionOnly {
            return command.spawn().map_err(|error| error.to_string());
        }
        let programs = [run.program.to_owned(), run.helper.map(Path::to_owned).unwrap_or_default()];
        // Landlock rules cannot be removed from a thread, so a short-lived thread starts the tool.
        let spawned = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let is_confined = confine::confine_thread(&programs, run.scratch, run.network)
                    .map_err(|error| error.to_string())?;
                if !is_confined {
                    return Err("the kernel does not enforce Landlock rules".to_owned());
                }
                command.spawn().map_err(|error| error.to_string())
            });
            thread.join()
        });
        spawned.unwrap_or_else(|_| Err("the thread that starts the tool panicked".to_owned()))
    }

    fn command(&self, run: &ToolRun<'_>) -> Command {
        // The shell sets the limits and then replaces itself with the tool, so the tool never runs without limits.
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

/// `--name=value`, so that a value is never parsed as an option.
pub(crate) fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(format!("--{name}="));
    flag.push(value);
    flag
}
