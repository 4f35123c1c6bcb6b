//! The clusters of this user: where they are, how they are, how they end.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::{Layout, Process, process};

/// A supervisor gets this long to stop its children in order.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// What is killed outright is gone within this time.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// A cluster that was started by this user and not yet removed.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its data, keys and logs.
    pub directory: PathBuf,
    /// What its supervisor last wrote; none if it got no further than being started.
    pub state: Option<State>,
    /// What runs of it now.
    pub processes: Vec<Process>,
}

/// What a supervisor writes about its cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Name of the cluster.
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// Why it failed.
    #[serde(default)]
    pub reason: String,
    /// Whether it lives only as long as its caller.
    pub attached: bool,
    /// Port of the API server on 127.0.0.1.
    #[serde(default)]
    pub port: u16,
    /// For a user who may do everything.
    pub kubeconfig: PathBuf,
    /// Every request that the API server answered, but for the control plane's own reading.
    pub audit_log: PathBuf,
}

/// The phase of a cluster, as its supervisor reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// On its way.
    Starting,
    /// Usable.
    Ready,
    /// Stopped as asked.
    Stopped,
    /// A part of it died.
    Failed,
}

/// How a cluster is, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// On its way.
    Starting,
    /// Usable.
    Ready,
    /// Nothing runs; its data is there.
    Stopped,
    /// The supervisor ended without a report, and may have left processes.
    Abandoned,
}

impl Cluster {
    /// How the cluster is, from what its supervisor wrote and what really runs.
    pub fn condition(&self) -> Condition {
        let supervised = self.processes.iter().any(Process::is_supervisor);
        let phase = self.state.as_ref().map(|state| state.phase);
        match (supervised, phase) {
            (true, Some(Phase::Ready)) => Condition::Ready,
            (true, _) => Condition::Starting,
            (false, Some(Phase::Stopped | Phase::Failed)) if self.processes.is_empty() => Condition::Stopped,
            (false, _) => Condition::Abandoned,
        }
    }
}

/// `<name>.json` in the clusters' directory.
#[derive(Serialize, Deserialize)]
struct Entry {
    directory: PathBuf,
}

/// Makes a cluster known before it is started, so that whatever happens then, it is found.
pub(super) fn register(layout: &Layout, name: &str, directory: &Path) -> Result<()> {
    let path = entry_path(layout, name);
    fs::create_dir_all(layout.clusters())
        .with_context(|| format!("create {}", layout.clusters().display()))?;
    let unfinished = path.with_extension("json.tmp");
    let content = serde_json::to_vec(&Entry { directory: directory.to_path_buf() })?;
    fs::write(&unfinished, content).with_context(|| format!("write {}", unfinished.display()))?;
    fs::rename(&unfinished, &path).with_context(|| format!("write {}", path.display()))
}

/// All clusters, by name.
pub fn list(layout: &Layout) -> Result<Vec<Cluster>> {
    let entries = match fs::read_dir(layout.clusters()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", layout.clusters().display())),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            found.extend(find(layout, name)?);
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// One cluster, if there is one of that name.
pub fn find(layout: &Layout, name: &str) -> Result<Option<Cluster>> {
    let path = entry_path(layout, name);
    let Some(content) = read_if_there(&path)? else { return Ok(None) };
    let Entry { directory } =
        serde_json::from_slice(&content).with_context(|| format!("read {}", path.display()))?;
    let processes = process::of_cluster(&directory)?;
    let state_path = directory.join("state.json");
    let state = match read_if_there(&state_path)? {
        Some(content) => {
            Some(serde_json::from_slice(&content).with_context(|| format!("read {}", state_path.display()))?)
        }
        None => None,
    };
    if processes.is_empty() && !directory.exists() {
        // An attached cluster removed itself.
        remove_file(&path)?;
        return Ok(None);
    }
    Ok(Some(Cluster { name: name.to_owned(), directory, state, processes }))
}

/// Stops whatever runs of the cluster and removes its data.
pub fn stop(layout: &Layout, cluster: &Cluster) -> Result<()> {
    end_processes(&cluster.directory)?;
    remove_data(&cluster.directory)?;
    remove_file(&entry_path(layout, &cluster.name))
}

/// Removes what attached clusters left whose supervisor was killed. Their callers have ended too.
pub fn sweep(layout: &Layout) -> Result<()> {
    for cluster in list(layout)? {
        let attached = cluster.state.as_ref().is_some_and(|state| state.attached);
        if attached && matches!(cluster.condition(), Condition::Abandoned | Condition::Stopped) {
            stop(layout, &cluster)?;
        }
    }
    Ok(())
}

/// Stops whatever runs of the cluster in that directory; its data stays, and
/// [`up`](super::up) goes on with it.
pub fn end_processes(directory: &Path) -> Result<()> {
    let running = process::of_cluster(directory)?;
    // The supervisor ends its children in the order in which they need each other.
    if let Some(supervisor) = running.iter().find(|process| process.is_supervisor()) {
        process::signal(supervisor, directory, Signal::TERM)?;
        process::wait_until_gone(directory, STOP_LIMIT)?;
    }
    for left in process::of_cluster(directory)? {
        process::signal(&left, directory, Signal::KILL)?;
    }
    let left = process::wait_until_gone(directory, KILL_LIMIT)?;
    if let Some(process) = left.first() {
        bail!("{} (pid {}) does not end", process.part, process.pid);
    }
    Ok(())
}

/// Removes what a cluster puts into its directory, and the directory if nothing else is there:
/// a user may have named one that holds more.
fn remove_data(directory: &Path) -> Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("read {}", directory.display())),
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let ours = match entry.file_name().to_str() {
            Some("etcd" | "pki" | "logs" | "lock" | "state.json" | "stages.yaml" | "audit-policy.yaml") => {
                true
            }
            Some(name) => name.ends_with(".kubeconfig"),
            None => false,
        };
        if ours {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            // Its owner and another process that found it dead may remove it at the same time.
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("remove {}", path.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
    match fs::remove_dir(directory) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
            Err(error).with_context(|| format!("remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

fn entry_path(layout: &Layout, name: &str) -> PathBuf {
    layout.clusters().join(format!("{name}.json"))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
