//! CPU time, memory and open files of this process, under the standard Prometheus names. They are read from
//! `/proc`, so they exist only on Linux.

use std::path::Path;

use super::series::{Family, number};

/// The unit of the times in `/proc/PID/stat`. It is the same on every Linux that plumb runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The resource usage of this process now.
pub(crate) fn families() -> Vec<Family> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let usage = Usage::parse(&read("/proc/self/stat"), &read("/proc/self/status"), &read("/proc/stat"));
    let mut families = usage.map(Usage::families).unwrap_or_default();
    if let Ok(open) = std::fs::read_dir(Path::new("/proc/self/fd")) {
        let count = number(u64::try_from(open.count()).unwrap_or(u64::MAX));
        families.push(Family::gauge("process_open_fds", "Number of open file descriptors.").with(&[], count));
    }
    families
}

#[derive(Debug, PartialEq)]
struct Usage {
    cpu_seconds: f64,
    /// Seconds since 1970.
    started: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
}

impl Usage {
    fn parse(stat: &str, status: &str, machine: &str) -> Option<Self> {
        // The second field is the program's name in parentheses and may contain anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
        let kib = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let booted =
            machine.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok())?;
        Some(Self {
            cpu_seconds: (field(11)? + field(12)?) / TICKS_PER_SECOND,
            started: booted + field(19)? / TICKS_PER_SECOND,
            resident_bytes: kib("VmRSS")? * 1024.0,
            virtual_bytes: kib("VmSize")? * 1024.0,
        })
    }

    fn families(self) -> Vec<Family> {
        let gauge = |name, help, value| Family::gauge(name, help).with(&[], value);
        vec![
            Family::counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.")
                .with(&[], self.cpu_seconds),
            gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                self.started,
            ),
            gauge("process_resident_memory_bytes", "Resident memory size in bytes.", self.resident_bytes),
            gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", self.virtual_bytes),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_for_any_program_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 1200 99 88";
        let status = "Name:\ta\nVmSize:\t  2048 kB\nVmRSS:\t    1024 kB\n";
        let machine = "cpu 1 2\nbtime 1700000000\n";
        let usage = Usage {
            cpu_seconds: 3.0,
            started: 1_700_000_012.0,
            resident_bytes: 1_048_576.0,
            virtual_bytes: 2_097_152.0,
        };
        assert_eq!(Usage::parse(stat, status, machine), Some(usage));
        assert_eq!(Usage::parse("", status, machine), None);
    }

    #[test]
    fn this_process_uses_memory_and_files() {
        let families = families();
        let value = |name: &str| {
            families.iter().find(|family| family.name == name).map(|family| family.samples[0].value)
        };
        assert!(value("process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));
        assert!(value("process_open_fds").is_some_and(|count| count >= 3.0));
    }
}
