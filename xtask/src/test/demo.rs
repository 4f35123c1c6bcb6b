//! The demo as a user starts it: in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use plumb_testkit::cluster::Layout;
use rustix::process::{Pid, Signal, kill_process};

use super::counts::Counts;
use super::steps::say;
use crate::cluster::ensure_programs;

/// How long the demo and its cluster may take to end after the signal.
const END: Duration = Duration::from_secs(15);

/// `demo --once --walk` exits with 0: every planted fault was found as planted, and the commands of the doctor lead from
/// there to a list without noise.
pub(super) fn settles(root: &Path) -> Result<Counts> {
    Ok(counted(demo(root).args(["--once", "--walk"]).status().context("cannot run the demo")?.success()))
}

/// `demo` keeps running when all apps have settled, still reverts a live edit, and leaves no process behind when
/// it is terminated.
pub(super) fn stays(root: &Path) -> Result<Counts> {
    let mut running = Running(demo(root).stdout(Stdio::piped()).spawn().context("cannot start the demo")?);
    let lived = running.lived();
    running.interrupt()?;
    let held = lived.and_then(|kubeconfig| running.ended(&kubeconfig));
    if let Err(error) = &held {
        say(&format!("{error:#}"));
    }
    Ok(counted(held.is_ok()))
}

fn demo(root: &Path) -> Command {
    let mut demo = Command::new(std::env::current_exe().unwrap_or_else(|_| "cargo-xtask".into()));
    demo.arg("demo").current_dir(root).stdin(Stdio::null());
    demo
}

fn counted(is_fine: bool) -> Counts {
    if is_fine { Counts::one_passed() } else { Counts::one_failed() }
}

/// A demo that is killed when this value is dropped.
struct Running(Child);

impl Running {
    /// Waits until it says that it keeps running, and that it reverts a live edit. Returns its kubeconfig.
    fn lived(&mut self) -> Result<PathBuf> {
        let stdout = self.0.stdout.take().context("the demo has no output")?;
        let kubeconfig = read_until_settled(stdout)?;
        let path = crate::programs::path_with(&ensure_programs(&Layout::from_environment()?)?);
        let kubectl = |args: &[&str]| -> Result<String> {
            let output = Command::new("kubectl")
                .env("PATH", &path)
                .env("KUBECONFIG", &kubeconfig)
                .args(args)
                .output()?;
            let stderr = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "kubectl {}: {stderr}", args.join(" "));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        // The command that the demo suggests.
        let deployment = ["-n", "cilium", "deploy/cilium"];
        let [flag, namespace, object] = deployment;
        let replicas = kubectl(&[flag, namespace, "get", object, "-o", "jsonpath={.spec.replicas}"])?;
        ensure!(!replicas.is_empty() && replicas != "5", "{object} has {replicas:?} replicas");
        kubectl(&[flag, namespace, "scale", object, "--replicas=5"])?;
        let back = format!("--for=jsonpath={{.spec.replicas}}={replicas}");
        kubectl(&[flag, namespace, "wait", object, &back, "--timeout=60s"])?;
        ensure!(self.0.try_wait()?.is_none(), "the demo exited");
        Ok(kubeconfig)
    }

    /// Ends the process without cleanup, as Ctrl-C does. Not with SIGINT: a shell that runs this in the background
    /// makes its children ignore it.
    fn interrupt(&self) -> Result<()> {
        let pid = i32::try_from(self.0.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("cannot convert the process id")?;
        // It may have exited already, which was reported.
        let _ = kill_process(pid, Signal::TERM);
        Ok(())
    }

    /// Waits until everything that it started is gone. The cluster's directory is removed with its last process.
    fn ended(&mut self, kubeconfig: &Path) -> Result<()> {
        let end = Instant::now() + END;
        while self.0.try_wait()?.is_none() || kubeconfig.exists() {
            if Instant::now() > end {
                bail!("the demo or the cluster of {} is still running", kubeconfig.display());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the demo's output until it says that it keeps running. Returns the kubeconfig that it names.
fn read_until_settled(stdout: ChildStdout) -> Result<PathBuf> {
    let mut settled = false;
    let mut kubeconfig = None;
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot read the demo's output")?;
        settled |= line.contains("every planted fault was found as planted");
        kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from).or(kubeconfig);
        if line.contains("Ctrl-C ends everything") {
            ensure!(settled, "the demo keeps running without having settled");
            return kubeconfig.context("the demo names no cluster");
        }
    }
    bail!("the demo exited")
}
