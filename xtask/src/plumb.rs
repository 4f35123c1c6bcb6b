//! plumb under a task's hands: built, started, stopped.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Builds plumb as a user gets it, and says where it is.
pub(crate) fn build_plumb(root: &Path) -> Result<PathBuf> {
    build(root, &["--package", "plumb"], "plumb")
}

/// The plumb that was asked for; without a wish, that of this repository.
pub(crate) fn given_or_built(given: Option<&Path>, root: &Path) -> Result<PathBuf> {
    given.map_or_else(|| build_plumb(root), |given| Ok(given.to_owned()))
}

/// Builds a program of this repository with optimizations, and says where it is.
pub(crate) fn build(root: &Path, what: &[&str], name: &str) -> Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--message-format", "json-render-diagnostics"])
        .args(what)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo build")?;
    ensure!(output.status.success(), "{name} does not build");
    // Cargo says where it put the program, whatever target directory is set.
    let program = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.context("cargo did not say where the program is")
}

/// A plumb that ends with this process, however this process ends: its standard input closes.
#[derive(Debug)]
pub(crate) struct RunningPlumb(Child);

impl RunningPlumb {
    /// Starts it on a cluster; what it says goes to `log`.
    pub(crate) fn start(
        plumb: &Path,
        kubeconfig: &Path,
        path: &OsStr,
        cache: &Path,
        log: &Path,
    ) -> Result<Self> {
        Self::start_with(plumb, kubeconfig, path, cache, log, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(
        plumb: &Path,
        kubeconfig: &Path,
        path: &OsStr,
        cache: &Path,
        log: &Path,
        more: &[&str],
    ) -> Result<Self> {
        let child = Command::new(plumb)
            .args(["run", "--install", "--until-stdin-closes", "--namespace", "argocd", "--kubeconfig"])
            .arg(kubeconfig)
            .arg("--cache-dir")
            .arg(cache)
            .args(more)
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(File::create(log).with_context(|| format!("create {}", log.display()))?)
            .spawn()
            .context("start plumb")?;
        Ok(Self(child))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        // Waiting closes the child's standard input, which would ask it to stop: it is held open here.
        let _open = self.0.stdin.take();
        self.0.wait().context("wait for plumb")
    }

    /// Asks it to stop, and does not take no for an answer.
    pub(crate) fn stop(&mut self) {
        drop(self.0.stdin.take());
        let end = Instant::now() + Duration::from_secs(5);
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for RunningPlumb {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until a plumb's log says that it knows the Applications: from then on it is at work.
pub(crate) fn wait_until_leading(log: &Path) -> Result<()> {
    let end = Instant::now() + Duration::from_mins(2);
    while Instant::now() < end {
        if std::fs::read_to_string(log).is_ok_and(|text| text.contains("applications known")) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("plumb does not get to work; see {}", log.display())
}
