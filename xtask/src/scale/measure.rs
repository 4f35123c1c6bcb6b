//! The measurements: install, idle, and two starts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::audit::{self, Audit};
use super::process::{self, Usage};
use super::workload::{self, Workload};
use crate::plumb::{READY_MESSAGE, RunningPlumb};

/// Limits of the figures.
const IDLE_MEMORY_MIB: f64 = 150.0;
const IDLE_CORE_PERCENT: f64 = 1.0;
const START_SECONDS: f64 = 10.0;
const INSTALL_LIMIT: Duration = Duration::from_mins(40);
const QUIET_FOR: Duration = Duration::from_secs(15);
const START_LIMIT: Duration = Duration::from_mins(5);

/// What every measurement needs.
pub(super) struct Bench {
    pub(super) plumb: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) path: OsString,
    pub(super) cache: PathBuf,
    pub(super) logs: PathBuf,
    pub(super) audit: Audit,
    pub(super) n_apps: usize,
}

impl Bench {
    /// Measures everything. Returns the figures that are over their limits.
    pub(super) fn measure(&self, workload: &Workload, idle: Duration) -> Result<Vec<String>> {
        let mut missed = Vec::new();
        let began = Instant::now();
        let mut running = self.start("install")?;
        self.until_at_work("install", began)?;
        workload.apply(self)?;
        self.until_all_synced(began)?;
        say(&format!("installed {} apps in {:.0} s", self.n_apps, began.elapsed().as_secs_f64()));
        // Pods become ready a little later.
        self.until_quiet()?;
        self.idle("after installing", running.id(), idle, &mut missed)?;
        running.stop();

        for (name, edits) in [("start", 0), ("start-after-edits", 10)] {
            workload.edit(self, edits)?;
            let mark = self.audit.position()?;
            let began = Instant::now();
            let mut running = self.start(name)?;
            let all = self.until_all_reconciled(name, began)?;
            let seconds = all.as_secs_f64();
            say(&format!("{name}: all {} apps reconciled {seconds:.1} s after the start", self.n_apps));
            if seconds > START_SECONDS {
                missed.push(format!("{name}: {seconds:.1} s, not {START_SECONDS} s"));
            }
            self.until_quiet()?;
            let writes =
                self.audit.since(mark)?.into_iter().filter(audit::Event::is_write).collect::<Vec<_>>();
            // The witness has a new address. An app that somebody edited gets a status, a report and an event.
            let needed = 1 + 3 * edits;
            say(&format!("{name}: {} writes for {edits} edits: {}", writes.len(), audit::summary(&writes)));
            if writes.len() > needed {
                missed.push(format!("{name}: {} writes, not {needed}", writes.len()));
            }
            let wrong = workload::wrong_statuses(self, edits)?;
            if !wrong.is_empty() {
                missed.push(format!("{name}: wrong status of {}", wrong.join(", ")));
            }
            self.idle(&format!("after {name}"), running.id(), idle, &mut missed)?;
            running.stop();
        }
        Ok(missed)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    fn start(&self, name: &str) -> Result<RunningPlumb> {
        let log = self.log(name);
        let more = ["--log-level", "info,plumb_engine=debug", "--log-format", "json"];
        RunningPlumb::start_with(&self.plumb, &self.kubeconfig, &self.path, &self.cache, &log, &more)
    }

    /// Waits until plumb's log says that it has listed the Applications.
    fn until_at_work(&self, name: &str, began: Instant) -> Result<()> {
        let log = self.log(name);
        while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains(READY_MESSAGE)) {
            if began.elapsed() > START_LIMIT {
                bail!("plumb did not start to reconcile; see {}", log.display());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn until_all_synced(&self, began: Instant) -> Result<()> {
        loop {
            let n_well = workload::count_well(self)?;
            if n_well == self.n_apps {
                return Ok(());
            }
            if began.elapsed() > INSTALL_LIMIT {
                bail!("{n_well} of {} apps are synced and healthy", self.n_apps);
            }
            std::thread::sleep(Duration::from_secs(2));
        }
    }

    /// Waits until plumb's log says that every app was reconciled. Returns the time since the start.
    fn until_all_reconciled(&self, name: &str, began: Instant) -> Result<Duration> {
        loop {
            if process::n_reconciled(&self.log(name))? >= self.n_apps {
                return Ok(began.elapsed());
            }
            if began.elapsed() > START_LIMIT {
                bail!("only {} apps were reconciled", process::n_reconciled(&self.log(name))?);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until plumb has sent no request for a while.
    fn until_quiet(&self) -> Result<()> {
        let began = Instant::now();
        let (mut mark, mut since) = (self.audit.position()?, Instant::now());
        while since.elapsed() < QUIET_FOR {
            std::thread::sleep(Duration::from_secs(1));
            if !self.audit.since(mark)?.is_empty() {
                (mark, since) = (self.audit.position()?, Instant::now());
            }
            if began.elapsed() > START_LIMIT {
                bail!("plumb does not stop sending requests");
            }
        }
        Ok(())
    }

    fn idle(&self, when: &str, pid: u32, idle: Duration, missed: &mut Vec<String>) -> Result<()> {
        self.until_quiet()?;
        let (mark, before) = (self.audit.position()?, Usage::of(pid)?);
        std::thread::sleep(idle);
        let after = Usage::of(pid)?;
        let requests = self.audit.since(mark)?;
        let percent = after.cpu.saturating_sub(before.cpu).as_secs_f64() / idle.as_secs_f64() * 100.0;
        say(&format!(
            "idle {when}: {} requests in {} s, {percent:.2} % of a core, {:.1} MiB (peak {:.1} MiB){}",
            requests.len(),
            idle.as_secs(),
            after.resident_mib,
            after.peak_mib,
            if requests.is_empty() { String::new() } else { format!(": {}", audit::summary(&requests)) },
        ));
        if !requests.is_empty() {
            missed.push(format!("idle {when}: {} requests", requests.len()));
        }
        if percent > IDLE_CORE_PERCENT {
            missed.push(format!("idle {when}: {percent:.2} % of a core, not {IDLE_CORE_PERCENT} %"));
        }
        if after.resident_mib > IDLE_MEMORY_MIB {
            missed.push(format!("idle {when}: {:.1} MiB, not {IDLE_MEMORY_MIB} MiB", after.resident_mib));
        }
        Ok(())
    }

    /// Runs kubectl, with this file if one is given, and returns its output.
    pub(super) fn kubectl(&self, arguments: &[&str], input: Option<&Path>) -> Result<Vec<u8>> {
        process::kubectl(&self.kubeconfig, &self.path, arguments, input)
    }
}

#[expect(clippy::print_stdout, reason = "the figures are this task's output")]
pub(super) fn say(line: &str) {
    println!("{line}");
}
