//! How much memory plumb may use: the limit of its container, else the memory of the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Used if the system tells nothing.
const ASSUMED: u64 = 2 << 30;

/// The memory of plumb's container, in bytes. `root` is the root of the file system.
pub(crate) fn container_memory(root: &Path) -> u64 {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limit_files(root, line));
    let limits = limits.filter_map(|file| number(&fs::read_to_string(file).ok()?));
    limits.chain(machine_memory(root)).min().unwrap_or(ASSUMED)
}

/// The files with the limits of a control group and of those above it. A line of `/proc/self/cgroup` is
/// `number:controllers:path`. The path is that of the host where the container has no view of its own; the limit is
/// then in the root of the mounted directory.
fn limit_files(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (base, file) = if controllers.is_empty() {
        (root.join("sys/fs/cgroup"), "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        (root.join("sys/fs/cgroup/memory"), "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    let below = Path::new(path.trim_start_matches('/'));
    below.ancestors().map(|group| base.join(group).join(file)).collect()
}

/// `max` and the largest numbers of the first version mean that there is no limit.
fn number(text: &str) -> Option<u64> {
    const UNLIMITED: u64 = 1 << 60;
    text.trim().parse().ok().filter(|limit| *limit < UNLIMITED)
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths and contents.
    type Files<'a> = &'a [(&'a str, &'a str)];

    fn memory(files: Files<'_>) -> u64 {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        container_memory(root.path())
    }

    #[test]
    fn the_smallest_limit_counts() {
        let machine = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16777216 kB\n");
        let cases: [(&str, Files<'_>, u64); 7] = [
            ("no limit", &[machine], 16 << 30),
            ("nothing known", &[], ASSUMED),
            (
                "a container with a view of its own",
                &[machine, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "2147483648\n")],
                2 << 30,
            ),
            (
                "a limit of the pod",
                &[
                    machine,
                    ("proc/self/cgroup", "0::/kubepods/pod1/c1\n"),
                    ("sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n"),
                    ("sys/fs/cgroup/kubepods/pod1/memory.max", "1073741824\n"),
                ],
                1 << 30,
            ),
            (
                "the first version",
                &[
                    machine,
                    ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/x\n"),
                    ("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "536870912\n"),
                ],
                512 << 20,
            ),
            (
                "the first version, with the path of the host",
                &[
                    machine,
                    ("proc/self/cgroup", "4:memory:/docker/x\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
                ],
                512 << 20,
            ),
            (
                "no limit in the first version",
                &[
                    machine,
                    ("proc/self/cgroup", "4:memory:/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                16 << 30,
            ),
        ];
        for (name, files, expected) in cases {
            assert_eq!(memory(files), expected, "{name}");
        }
    }
}
