//! CPU and memory of a process, the apps in plumb's log, and kubectl.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::plumb::RUN_MESSAGE;

/// What a process has used so far.
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) resident_mib: f64,
    pub(super) peak_mib: f64,
}

impl Usage {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let stat = read("stat")?;
        // The program's name, in parentheses, may contain spaces.
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let field =
            |at: usize| after_name.split_whitespace().nth(at).and_then(|text| text.parse::<u64>().ok());
        let ticks = field(11).zip(field(12)).map(|(user, system)| user + system);
        let ticks = ticks.context("cannot read /proc/PID/stat: unexpected format")?;
        let status = read("status")?;
        let mib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.split_whitespace().next().and_then(|text| text.parse::<f64>().ok()).unwrap_or_default()
                / 1024.0
        };
        // A tick is 10 ms on every Linux that plumb runs on.
        Ok(Self {
            cpu: Duration::from_millis(10 * ticks),
            resident_mib: mib("VmRSS:"),
            peak_mib: mib("VmHWM:"),
        })
    }
}

/// The number of apps that plumb reconciled, from its log (JSON lines at debug level).
pub(super) fn n_reconciled(log: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let apps: BTreeSet<String> = text
        .lines()
        .filter(|line| line.contains(RUN_MESSAGE))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["fields"]["message"] == RUN_MESSAGE)
        .filter_map(|line| line["span"]["app"].as_str().map(str::to_owned))
        .collect();
    Ok(apps.len())
}

/// Runs kubectl and returns its output.
pub(super) fn kubectl(
    kubeconfig: &Path,
    path: &OsStr,
    arguments: &[&str],
    input: Option<&Path>,
) -> Result<Vec<u8>> {
    let mut command = Command::new("kubectl");
    command.arg("--kubeconfig").arg(kubeconfig).args(arguments).env("PATH", path).stderr(Stdio::inherit());
    if let Some(input) = input {
        command.arg("--filename").arg(input);
    }
    let output = command.output().context("cannot run kubectl")?;
    ensure!(output.status.success(), "kubectl {} failed", arguments.join(" "));
    Ok(output.stdout)
}
