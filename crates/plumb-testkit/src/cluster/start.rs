//! Starts a supervisor and waits for its one line: ready, or why not.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, bail};

use super::{
    Condition, Layout, Programs,
    registry::{self, Phase, State},
};

/// How a cluster is to be started.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// Port of the API server on 127.0.0.1; a free one if none.
    pub port: Option<u16>,
    /// Directory for data, keys and logs; one in the cache if none.
    pub directory: Option<PathBuf>,
}

/// Starts a cluster that outlives this process, or goes on with one of that name that was
/// stopped. Until it is ready it depends on this process: a caller that dies leaves nothing.
pub fn up(layout: &Layout, programs: &Programs, name: &str, options: &StartOptions) -> Result<State> {
    check_name(name)?;
    let known = registry::find(layout, name)?;
    if let Some(cluster) = &known {
        match cluster.condition() {
            Condition::Ready | Condition::Starting => {
                bail!("cluster `{name}` is already up; `cargo xtask cluster down {name}` stops it")
            }
            Condition::Abandoned if !cluster.processes.is_empty() => bail!(
                "cluster `{name}` left {} processes behind; `cargo xtask cluster down {name}` removes them",
                cluster.processes.len()
            ),
            Condition::Abandoned | Condition::Stopped => {}
        }
    }
    if let Some(port) = options.port {
        // The supervisor checks it too; here it is noticed before anything is made.
        TcpListener::bind(("127.0.0.1", port))
            .with_context(|| format!("port {port} on 127.0.0.1 is taken"))?;
    }
    let directory = match (&options.directory, known) {
        (Some(directory), _) => std::path::absolute(directory)?,
        (None, Some(known)) => known.directory,
        (None, None) => layout.clusters().join(name),
    };
    let mut supervisor = Supervisor::start(layout, programs, name, &directory, options.port, Mode::Detached)?;
    supervisor.wait_until_ready()
}

/// Starts a cluster that lives as long as the returned value and this process, whichever ends
/// first, and leaves nothing on disk.
pub fn attach(layout: &Layout, programs: &Programs) -> Result<AttachedCluster> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    registry::sweep(layout)?;
    let name = format!("attached-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let directory = layout.clusters().join(&name);
    let mut supervisor = Supervisor::start(layout, programs, &name, &directory, None, Mode::Attached)?;
    let state = supervisor.wait_until_ready()?;
    Ok(AttachedCluster { state, supervisor })
}

/// Starts a cluster in a directory of the caller's, or goes on with the one that is there. It lives as long as the returned
/// value and this process, and leaves its data in the directory. No list has it.
pub fn attach_in(
    layout: &Layout,
    programs: &Programs,
    directory: &Path,
    port: Option<u16>,
) -> Result<AttachedCluster> {
    let mut supervisor = Supervisor::start(layout, programs, "private", directory, port, Mode::Private)?;
    let state = supervisor.wait_until_ready()?;
    Ok(AttachedCluster { state, supervisor })
}

/// A cluster of this process. Dropping it stops it and waits for the end; so does the end of
/// this process, however it comes, without the waiting.
#[derive(Debug)]
pub struct AttachedCluster {
    state: State,
    supervisor: Supervisor,
}

impl AttachedCluster {
    /// What the supervisor said when the cluster was ready.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The supervisor's pid.
    pub fn supervisor(&self) -> u32 {
        self.supervisor.child.id()
    }
}

impl Drop for AttachedCluster {
    fn drop(&mut self) {
        self.supervisor.lifeline = None;
        // It stops by itself within seconds; if it cannot be waited for it is gone already.
        let _ = self.supervisor.child.wait();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Detached,
    Attached,
    /// As attached, but its data stays, and only its owner knows it.
    Private,
}

#[derive(Debug)]
struct Supervisor {
    child: Child,
    log: PathBuf,
    /// Its end tells the supervisor that the caller is gone.
    lifeline: Option<ChildStdin>,
}

impl Supervisor {
    fn start(
        layout: &Layout,
        programs: &Programs,
        name: &str,
        directory: &Path,
        port: Option<u16>,
        mode: Mode,
    ) -> Result<Self> {
        check_directory(directory)?;
        let logs = directory.join("logs");
        fs::create_dir_all(&logs).with_context(|| format!("create {}", logs.display()))?;
        if mode != Mode::Private {
            registry::register(layout, name, directory)?;
        }
        let log = logs.join("supervisor.log");
        let log_file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let mut command = Command::new(&programs.cluster);
        command.arg("supervise").args(["--name", name]);
        command.arg("--dir").arg(directory);
        command.arg("--ports-dir").arg(layout.ports());
        command.arg("--kwok").arg(&programs.kwok);
        if let Some(port) = port {
            command.args(["--port", &port.to_string()]);
        }
        match mode {
            Mode::Detached => {}
            Mode::Attached => drop(command.args(["--attached", "--remove-dir"])),
            Mode::Private => drop(command.arg("--attached")),
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("start {}", programs.cluster.display()))?;
        let lifeline = child.stdin.take();
        Ok(Self { child, log, lifeline })
    }

    /// Reads the supervisor's line on how the start ended.
    fn wait_until_ready(&mut self) -> Result<State> {
        let output = self.child.stdout.take().context("the supervisor has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).context("read the supervisor's line")?;
        if line.is_empty() {
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            bail!("the supervisor ended without a line; its log:\n{}", said.trim_end());
        }
        let state: State = serde_json::from_str(&line).context("read the supervisor's line")?;
        if state.phase == Phase::Ready {
            return Ok(state);
        }
        bail!("cluster `{}` did not start: {}", state.name, state.reason)
    }
}

/// Names become file names and parts of kubeconfig contexts.
fn check_name(name: &str) -> Result<()> {
    let valid = !name.is_empty()
        && name.len() <= 63
        && !name.starts_with('-')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !valid {
        bail!("`{name}` is not a name for a cluster: lower-case letters, digits and `-`, at most 63");
    }
    Ok(())
}

/// A directory must be new, empty, or a cluster's.
fn check_directory(directory: &Path) -> Result<()> {
    let Ok(mut entries) = fs::read_dir(directory) else { return Ok(()) };
    if entries.next().is_some() && !directory.join("state.json").exists() {
        bail!("{} is not empty and holds no cluster", directory.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_file_names() {
        for name in ["default", "a", "test-2"] {
            check_name(name).unwrap();
        }
        for name in ["", "-x", "a/b", "..", "A", "a b", &"x".repeat(64)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
