//! Runs the image as a kubelet with containerd would: as the Deployment says, under runc, in the network of this machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::builder::Checked as _;
use super::seccomp;

/// How long plumb may take to stop: what the Deployment gives it.
const GRACE: Duration = Duration::from_secs(30);
/// `fsGroup` of the Deployment.
const GROUP: u32 = 65532;

/// What a container is started with.
pub(super) struct Pod<'a> {
    /// The files of the image.
    pub(super) files: &'a Path,
    /// The configuration of the image.
    pub(super) image: &'a Value,
    /// `spec.template.spec` of the Deployment.
    pub(super) spec: &'a Value,
    /// More variables, such as those that the kubelet sets.
    pub(super) environment: &'a [(&'a str, String)],
    /// Folders of this machine, and where the container sees them. They are read-only.
    pub(super) folders: &'a [(PathBuf, &'a str)],
}

impl Pod<'_> {
    /// The container as runc reads it.
    fn config(&self, bundle: &Path) -> Result<Value> {
        let container = &self.spec["containers"][0];
        let security = &container["securityContext"];
        ensure!(security["capabilities"]["drop"] == json!(["ALL"]), "the Deployment keeps capabilities");
        let words = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
        let mut args = words(&self.image["Entrypoint"]);
        args.extend(words(&container["args"]));
        // It ends with this process, however this process ends.
        args.push(json!("--until-stdin-closes"));
        let user = |name: &str| self.spec["securityContext"][name].clone();
        Ok(json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": {"uid": user("runAsUser"), "gid": user("runAsGroup")},
                "args": args,
                "env": self.environment(container),
                "cwd": self.image["WorkingDir"],
                "capabilities": {},
                "noNewPrivileges": security["allowPrivilegeEscalation"] == false,
            },
            "root": {"path": self.files, "readonly": security["readOnlyRootFilesystem"] == true},
            "hostname": "plumb",
            "mounts": self.mounts(container, bundle)?,
            "linux": {
                "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}],
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/sys/firmware"],
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
                "seccomp": seccomp::default_filter()?,
            },
        }))
    }

    /// The image's variables, then the Deployment's, then those of the kubelet.
    fn environment(&self, container: &Value) -> Vec<String> {
        let mut all = BTreeMap::new();
        for variable in self.image["Env"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            all.insert(name.to_owned(), value.to_owned());
        }
        for variable in container["env"].as_array().into_iter().flatten() {
            // A key that is not there leaves its variable out.
            if variable["valueFrom"]["configMapKeyRef"]["optional"] == true {
                continue;
            }
            let text = |key: &str| variable[key].as_str().unwrap_or_default().to_owned();
            all.insert(text("name"), text("value"));
        }
        all.extend(self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        all.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    fn mounts(&self, container: &Value, bundle: &Path) -> Result<Vec<Value>> {
        let place = |kind: &str, to: &str, options: &[&str]| json!({"destination": to, "type": kind, "source": kind, "options": options});
        let mut mounts = vec![
            place("proc", "/proc", &[]),
            place("tmpfs", "/dev", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            place("tmpfs", "/dev/shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
        ];
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let text = |key: &str| mount[key].as_str().unwrap_or_default();
            let volume = empty_dir(&bundle.join("volumes").join(text("name")))?;
            mounts.push(json!({
                "destination": text("mountPath"), "type": "bind", "source": volume,
                "options": ["rbind", "rw", "nosuid", "nodev"],
            }));
        }
        let resolver = [
            (PathBuf::from("/etc/resolv.conf"), "/etc/resolv.conf"),
            (PathBuf::from("/etc/hosts"), "/etc/hosts"),
        ];
        for (from, to) in resolver.iter().chain(self.folders) {
            mounts.push(json!({
                "destination": to, "type": "bind", "source": from, "options": ["rbind", "ro", "nosuid", "nodev"],
            }));
        }
        Ok(mounts)
    }
}

/// A folder as the kubelet makes it for an `emptyDir`: it belongs to the group of the pod.
fn empty_dir(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    std::os::unix::fs::chown(folder, Some(0), Some(GROUP))?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o2777))?;
    Ok(folder.to_owned())
}

/// A container that is killed when this value is dropped.
pub(super) struct Container {
    name: String,
    folder: PathBuf,
    child: Child,
    pub(super) log: PathBuf,
}

impl Container {
    /// Starts it. What it prints goes to a file in `folder`.
    pub(super) fn start(folder: &Path, name: &str, pod: &Pod<'_>) -> Result<Self> {
        let bundle = folder.join(name);
        fs::create_dir_all(&bundle).with_context(|| format!("cannot create {}", bundle.display()))?;
        fs::write(bundle.join("config.json"), pod.config(&bundle)?.to_string())?;
        let log = bundle.join("plumb.log");
        let child = runc(folder)
            .args(["run", "--bundle"])
            .arg(&bundle)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?)
            .spawn()
            .context("cannot run runc")?;
        Ok(Self { name: name.to_owned(), folder: folder.to_owned(), child, log })
    }

    /// The first process of the container, by its number outside of it.
    fn first_process(&self) -> Result<u64> {
        let state = runc(&self.folder).args(["state", &self.name]).checked()?;
        let state: Value = serde_json::from_str(&state).context("cannot read runc's answer")?;
        state["pid"].as_u64().context("runc names no process")
    }

    /// Runs commands in the container, as `kubectl exec` does.
    pub(super) fn inside(&self) -> Inside {
        Inside { folder: self.folder.clone(), name: self.name.clone() }
    }

    /// `/proc` as the container has it.
    pub(super) fn proc_folder(&self) -> Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}", self.first_process()?)).join("root").join("proc"))
    }

    /// What the kernel says about the process of plumb: user, capabilities, filter; and whether its root is read-only.
    pub(super) fn confinement(&self) -> Result<String> {
        let pid = self.first_process()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let wanted = ["Uid:", "Gid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"];
        let lines = status.lines().filter(|line| wanted.iter().any(|name| line.starts_with(name)));
        let mut lines: Vec<String> =
            lines.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
        let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo"))?;
        let root = mounts.lines().find_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words.get(4) == Some(&"/")).then(|| words.get(5).copied().unwrap_or_default().to_owned())
        });
        let is_read_only = root.is_some_and(|options| options.split(',').any(|option| option == "ro"));
        lines.push(format!("root: {}", if is_read_only { "read-only" } else { "writable" }));
        Ok(lines.join(", "))
    }

    /// Fails if it has ended.
    pub(super) fn ensure_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the container ended with {status}:\n{}", self.log_text()),
        }
    }

    pub(super) fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to stop, as the kubelet does, and returns how it ended.
    pub(super) fn stop(mut self) -> Result<ExitStatus> {
        runc(&self.folder).args(["kill", &self.name, "TERM"]).checked()?;
        let end = Instant::now() + GRACE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < end, "plumb did not stop in time:\n{}", self.log_text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The inside of a container that runs.
pub(super) struct Inside {
    folder: PathBuf,
    name: String,
}

impl Inside {
    /// Runs a command to its end, and returns what it printed.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        runc(&self.folder).arg("exec").arg(&self.name).args(words).checked()
    }
}

/// The processes of a container: state and name.
pub(super) fn processes(proc_folder: &Path) -> Result<Vec<(char, String)>> {
    let entries =
        fs::read_dir(proc_folder).with_context(|| format!("cannot read {}", proc_folder.display()))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        // Something else than a process, or one that ended meanwhile.
        let Ok(status) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((before, after)) = status.rsplit_once(") ") else { continue };
        let name = before.split_once('(').map_or(before, |(_, name)| name);
        found.extend(after.chars().next().map(|state| (state, name.to_owned())));
    }
    Ok(found)
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = runc(&self.folder).args(["delete", "--force", &self.name]).output();
        let _ = self.child.wait();
    }
}

fn runc(folder: &Path) -> Command {
    let mut command = Command::new("runc");
    command.arg("--root").arg(folder.join("runc")).stdin(Stdio::null());
    command
}
