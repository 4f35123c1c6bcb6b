//! The demo, in a process of its own: it must hold as a person would start it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use plumb_testkit::cluster::Layout;
use rustix::process::{Pid, Signal, kill_process};

use super::{Counts, say};
use crate::cluster::ensure_programs;

/// How long what was started may take to end after it was told to.
const END: Duration = Duration::from_secs(15);

/// `demo --once` ends well, so every planted fault was found as planted.
pub(super) fn settles(root: &Path) -> Result<Counts> {
    Ok(counted(demo(root).arg("--once").status().context("run the demo")?.success()))
}

/// `demo` stays when all has settled, is still at work then, and leaves nothing running when it is told to end.
pub(super) fn stays(root: &Path) -> Result<Counts> {
    let mut running = Running(demo(root).stdout(Stdio::piped()).spawn().context("start the demo")?);
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

/// A demo that is ended with this value, whatever happened.
struct Running(Child);

impl Running {
    /// Waits until it says that it stays, and lets it take back a live edit. Gives the cluster that it has.
    fn lived(&mut self) -> Result<PathBuf> {
        let stdout = self.0.stdout.take().context("the demo has no output")?;
        let kubeconfig = told(stdout)?;
        let path = crate::programs::path_with(&ensure_programs(&Layout::from_environment()?)?);
        let kubectl = |args: &[&str]| -> Result<String> {
            let output = Command::new("kubectl")
                .env("PATH", &path)
                .env("KUBECONFIG", &kubeconfig)
                .args(args)
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "kubectl {}: {said}", args.join(" "));
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        // What the demo proposes to try.
        let deployment = ["-n", "cilium", "deploy/cilium"];
        let [flag, namespace, object] = deployment;
        let replicas = kubectl(&[flag, namespace, "get", object, "-o", "jsonpath={.spec.replicas}"])?;
        ensure!(!replicas.is_empty() && replicas != "5", "{object} has {replicas:?} replicas");
        kubectl(&[flag, namespace, "scale", object, "--replicas=5"])?;
        let back = format!("--for=jsonpath={{.spec.replicas}}={replicas}");
        kubectl(&[flag, namespace, "wait", object, &back, "--timeout=60s"])?;
        ensure!(self.0.try_wait()?.is_none(), "the demo ended by itself");
        Ok(kubeconfig)
    }

    /// As Ctrl-C does: no word is said, the process ends where it is. Whoever runs this beside other work may have
    /// SIGINT itself switched off for everything below.
    fn interrupt(&self) -> Result<()> {
        let pid =
            i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).context("a pid is a small number")?;
        // It may have ended by itself, which has been said.
        let _ = kill_process(pid, Signal::TERM);
        Ok(())
    }

    /// Is everything gone that it had started? The cluster's directory goes with its last process.
    fn ended(&mut self, kubeconfig: &Path) -> Result<()> {
        let end = Instant::now() + END;
        while self.0.try_wait()?.is_none() || kubeconfig.exists() {
            if Instant::now() > end {
                bail!("the demo, or the cluster of {}, is still there", kubeconfig.display());
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

/// Reads along until the demo has told everything; the cluster that it names.
fn told(stdout: ChildStdout) -> Result<PathBuf> {
    let mut settled = false;
    let mut kubeconfig = None;
    for line in BufReader::new(stdout).lines() {
        let line = line.context("read what the demo says")?;
        settled |= line.contains("every planted fault was found as planted");
        kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from).or(kubeconfig);
        if line.contains("Ctrl-C ends everything") {
            ensure!(settled, "the demo stays without having settled");
            return kubeconfig.context("the demo names no cluster");
        }
    }
    bail!("the demo ended by itself")
}
