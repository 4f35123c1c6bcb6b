//! Starts tools.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::capabilities::{Capabilities, IsolationLevel, Namespaces};
use super::clock;
use super::error::SandboxError;
use super::hidden::Hidden;
use super::launch_spec::LaunchSpec;
use super::supervise::{end, failure, supervise};
use crate::limits::Limits;

/// Runs tools in isolation, as far as the system supports it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    capabilities: Capabilities,
    launcher: Vec<PathBuf>,
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
    /// Collects what the message of a failure must not show. Called after a failure only.
    pub(crate) hides: &'a dyn Fn(&mut Hidden),
}

impl Sandbox {
    /// Detects what the system supports.
    pub fn detect() -> Self {
        Self { capabilities: Capabilities::detect(), launcher: Vec::new() }
    }

    /// The same with these capabilities. If the system lacks one of them, no tool starts.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// The same with the command that calls [`super::tool_launcher`].
    #[must_use]
    pub(crate) fn with_launcher(self, launcher: &[PathBuf]) -> Self {
        Self { launcher: launcher.to_vec(), ..self }
    }

    /// What the system can restrict.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// What tools are kept away from.
    pub fn level(&self) -> IsolationLevel {
        self.capabilities.level()
    }

    /// Runs a tool and returns what it printed.
    pub(crate) fn run(&self, run: &ToolRun<'_>) -> Result<Vec<u8>, SandboxError> {
        let started = Instant::now();
        if let Some(message) = nul_byte(run) {
            return Err(SandboxError::Failed { code: -1, message });
        }
        let mut child = self
            .spawn(run)
            .map_err(|reason| SandboxError::Start { program: run.program.display().to_string(), reason })?;
        let outcome = supervise(&mut child, run.limits, started);
        end(child);
        let (status, stdout, stderr) = outcome?;
        if status.success() {
            return Ok(stdout);
        }
        Err(failure(status, &stderr, run))
    }

    fn spawn(&self, run: &ToolRun<'_>) -> Result<Child, String> {
        if self.launcher.is_empty() {
            return Err("plumb's own launcher is not configured".to_owned());
        }
        let spec = serde_json::to_string(&self.spec(run)).map_err(|error| error.to_string())?;
        let namespaces = self.capabilities.namespaces.command(run.network);
        let mut words =
            namespaces.into_iter().map(OsStr::new).chain(self.launcher.iter().map(|word| word.as_os_str()));
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .arg(spec)
            .arg(run.program)
            .args(&run.arguments)
            .current_dir(run.directory)
            .env_clear()
            .envs(base_environment(run.scratch, run.network))
            .envs(run.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.spawn().map_err(|error| error.to_string())
    }

    fn spec(&self, run: &ToolRun<'_>) -> LaunchSpec {
        let Capabilities { namespaces, landlock, landlock_signals, seccomp, .. } = self.capabilities;
        let signals_are_free = namespaces == Namespaces::None && !(landlock && landlock_signals);
        let programs = [Some(run.program), run.helper].into_iter().flatten();
        LaunchSpec {
            scratch: run.scratch.to_owned(),
            programs: programs.map(Path::to_owned).collect(),
            network: run.network,
            landlock,
            system_calls: seccomp,
            own_proc: namespaces == Namespaces::OwnProc,
            protected: signals_are_free.then(|| rustix::process::getpid().as_raw_nonzero().get()),
            memory: run.limits.memory,
            file_bytes: run.limits.export_bytes,
            cpu_seconds: run.limits.time.as_secs().max(1).saturating_mul(4),
            scratch_bytes: run.limits.export_bytes.saturating_mul(2),
            processes: run.limits.processes,
        }
    }
}

/// A value with a NUL byte cannot be passed to a program.
fn nul_byte(run: &ToolRun<'_>) -> Option<String> {
    let variables = run.environment.iter().flat_map(|(name, value)| [name, value]);
    let mut texts = run.arguments.iter().chain(variables);
    let found = texts.find(|text| text.as_encoded_bytes().contains(&0))?;
    let shown: String =
        found.to_string_lossy().chars().filter(|character| !character.is_control()).take(50).collect();
    Some(format!("a value contains a NUL byte: `{shown}`"))
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
