//! What an engine costs: processor time, memory, requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plumb_testkit::audit;

/// Looks at one process and at what it asks of the API server.
pub(crate) struct Meter {
    pid: u32,
    audit_log: PathBuf,
    user_agent: String,
}

/// What a phase cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) took: Duration,
    /// Of the engine and of the programs that it started.
    pub(crate) cpu: Duration,
    /// Requests that the engine made, without watches.
    pub(crate) n_requests: usize,
    /// The most memory that the process had so far, in MiB.
    pub(crate) peak_mib: u64,
}

/// The memory of a process, in MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) resident_mib: u64,
    /// The most so far.
    pub(crate) peak_mib: u64,
}

/// A phase under way.
pub(crate) struct Running<'meter> {
    meter: &'meter Meter,
    start: Instant,
    cpu: Duration,
    audit_position: u64,
}

impl Meter {
    pub(crate) fn new(pid: u32, audit_log: &Path, user_agent: &str) -> Self {
        Self { pid, audit_log: audit_log.to_owned(), user_agent: user_agent.to_owned() }
    }

    pub(crate) fn start(&self) -> Result<Running<'_>> {
        let audit_position =
            fs::metadata(&self.audit_log).with_context(|| self.audit_log.display().to_string())?.len();
        Ok(Running { meter: self, cpu: self.cpu()?, audit_position, start: Instant::now() })
    }

    /// User and system time of the process and of those of its children that ended.
    fn cpu(&self) -> Result<Duration> {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.pid)).context("read the engine's times")?;
        // The name of the program may hold anything, and ends with the last parenthesis.
        let (_, fields) = stat.rsplit_once(')').context("the process has no times")?;
        let ticks: u64 =
            fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        // Linux counts these in hundredths of a second on every machine that Rust runs on.
        Ok(Duration::from_millis(ticks * 10))
    }

    /// When the process started, in ticks of the machine. Fails if it has ended.
    pub(crate) fn started(&self) -> Result<String> {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.pid)).context("read when the engine started")?;
        let (_, fields) = stat.rsplit_once(')').context("the process has no times")?;
        fields.split_whitespace().nth(19).map(str::to_owned).context("the process has no start")
    }

    /// The memory of the process, without the programs that it started.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.pid)).context("read the engine's memory")?;
        let mib = |key: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).context("it has no memory")?;
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("read the engine's memory")?;
            Ok(kib / 1024)
        };
        Ok(Memory { resident_mib: mib("VmRSS:")?, peak_mib: mib("VmHWM:")? })
    }
}

impl Running<'_> {
    pub(crate) fn done(self) -> Result<Cost> {
        Ok(self.done_with_events()?.0)
    }

    /// The cost, and the requests of the engine without watches.
    pub(crate) fn done_with_events(self) -> Result<(Cost, Vec<audit::AuditEvent>)> {
        let took = self.start.elapsed();
        let meter = self.meter;
        let mut events = audit::read_after(&meter.audit_log, self.audit_position)?;
        events.retain(|event| event.user_agent.starts_with(&meter.user_agent) && event.verb != "watch");
        let cost = Cost {
            took,
            cpu: meter.cpu()?.saturating_sub(self.cpu),
            n_requests: events.len(),
            peak_mib: meter.memory()?.peak_mib,
        };
        Ok((cost, events))
    }
}
