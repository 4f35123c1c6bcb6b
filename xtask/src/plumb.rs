//! Builds, starts and stops plumb for a task.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The log message of a plumb that has listed the Applications.
pub(crate) const READY_MESSAGE: &str = "applications known";

/// The log message at debug level after each run of an app.
pub(crate) const RUN_MESSAGE: &str = "reconciled";

/// Builds plumb as it is released, and returns its path.
fn build_plumb(root: &Path) -> Result<PathBuf> {
    build(root, &["--package", "plumb"], "plumb")
}

/// The program that was given, or this repository's plumb, built.
pub(crate) fn given_or_built(given: Option<&Path>, root: &Path) -> Result<PathBuf> {
    given.map_or_else(|| build_plumb(root), |given| Ok(given.to_owned()))
}

/// Builds a program of this repository in release mode, and returns its path.
pub(crate) fn build(root: &Path, what: &[&str], name: &str) -> Result<PathBuf> {
    build_by(Command::new(env!("CARGO")).arg("build"), root, what, name)
}

/// The same with a command that takes the words of `cargo build`.
pub(crate) fn build_by(cargo: &mut Command, root: &Path, what: &[&str], name: &str) -> Result<PathBuf> {
    let output = cargo
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(root)?)
        .args(["--release", "--message-format", "json-render-diagnostics"])
        .args(what)
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(output.status.success(), "cannot build {name}");
    // Cargo prints where the program is, for any target directory.
    let program = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.context("cargo did not print where the program is")
}

/// The user's flags, and those that keep the paths of this machine out of the program: the same sources give the same
/// program in another folder.
#[expect(clippy::disallowed_methods, reason = "the user's flags and folder of crates are variables")]
fn rust_flags(root: &Path) -> Result<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let given = variable("CARGO_ENCODED_RUSTFLAGS").or_else(|| {
        let plain = variable("RUSTFLAGS")?;
        Some(plain.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
    });
    let crates = variable("CARGO_HOME")
        .or_else(|| variable("HOME").map(|home| format!("{home}/.cargo")))
        .context("cannot find the folder of crates: set CARGO_HOME")?;
    let root = root.canonicalize().context("cannot find the repository")?;
    Ok(without_paths(given, &crates, &root.display().to_string()))
}

/// Between flags, so that they may contain spaces.
const SEPARATOR: &str = "\u{1f}";

fn without_paths(given: Option<String>, crates: &str, root: &str) -> String {
    let remap = |from: &str, to: &str| format!("--remap-path-prefix={from}={to}");
    // The last that fits counts: the folder of crates may be inside of the checkout.
    let flags = [remap(root, "/plumb"), remap(crates, "/cargo")];
    given.into_iter().chain(flags).collect::<Vec<_>>().join(SEPARATOR)
}

/// A plumb that stops when this process ends for any reason, because its standard input closes.
#[derive(Debug)]
pub(crate) struct RunningPlumb(Child);

impl RunningPlumb {
    /// Starts it on a cluster. Its standard error goes to `log`.
    pub(crate) fn start(
        plumb: &Path,
        kubeconfig: &Path,
        path: &OsStr,
        cache: &Path,
        log: &Path,
    ) -> Result<Self> {
        Self::start_with(plumb, kubeconfig, path, cache, log, &[])
    }

    /// The same, with more arguments.
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
            .stderr(File::create(log).with_context(|| format!("cannot create {}", log.display()))?)
            .spawn()
            .context("cannot start plumb")?;
        Ok(Self(child))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it exits.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        // Waiting closes the child's standard input, which would stop it: keep it open.
        let _open = self.0.stdin.take();
        self.0.wait().context("cannot wait for plumb")
    }

    /// Asks it to stop, and kills it after 5 s.
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

/// Waits until plumb's log says that it has listed the Applications and reconciles them.
pub(crate) fn wait_until_leading(log: &Path) -> Result<()> {
    let end = Instant::now() + Duration::from_mins(2);
    while Instant::now() < end {
        if std::fs::read_to_string(log).is_ok_and(|text| text.contains(READY_MESSAGE)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("plumb did not start to reconcile; see {}", log.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_replaced_beside_the_users_flags() {
        let flags = without_paths(Some("-C\u{1f}debuginfo=1".to_owned()), "/home/a b/.cargo", "/src/plumb");
        let expected = [
            "-C",
            "debuginfo=1",
            "--remap-path-prefix=/src/plumb=/plumb",
            "--remap-path-prefix=/home/a b/.cargo=/cargo",
        ];
        assert_eq!(flags.split(SEPARATOR).collect::<Vec<_>>(), expected);
        assert!(!without_paths(None, "/c", "/r").starts_with(SEPARATOR));
    }

    /// Tasks wait for these messages: without them they would time out.
    #[test]
    fn the_engine_logs_the_messages_that_tasks_wait_for() {
        let mut text = String::new();
        let mut folders = vec![crate::repository::root().join("crates/plumb-engine/src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    text.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        for message in [READY_MESSAGE, RUN_MESSAGE] {
            assert!(text.contains(&format!("\"{message}\"")), "no log line says {message:?}");
        }
    }
}
