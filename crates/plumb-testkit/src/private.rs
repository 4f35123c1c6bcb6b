//! A cluster of one test, which may be stopped, set back to an earlier state, and started again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::cluster::{AttachedCluster, Layout, attach_in, signal_part};
use crate::shared::{SharedCluster, programs};

/// A cluster of one test. Its address, keys and kubeconfig stay the same over every start. All functions block.
pub struct PrivateCluster {
    directory: TempDir,
    port: u16,
    shared: &'static SharedCluster,
    running: Mutex<Option<AttachedCluster>>,
}

impl PrivateCluster {
    /// Starts a new cluster.
    pub fn start() -> Result<Self> {
        let directory = TempDir::new().context("make a directory")?;
        let running =
            attach_in(&Layout::from_environment()?, programs()?, &directory.path().join("cluster"), None)?;
        let state = running.state();
        // Namespaces of tests refer to it until the process ends.
        let shared = Box::leak(Box::new(SharedCluster::at(state.kubeconfig.clone())));
        Ok(Self { port: state.port, shared, running: Mutex::new(Some(running)), directory })
    }

    /// The cluster, as namespaces of tests want it.
    pub fn shared(&self) -> &'static SharedCluster {
        self.shared
    }

    /// Stops every process of it. Its data stays.
    pub fn stop(&self) {
        drop(self.running.lock().take());
    }

    /// Starts it again at the same address.
    pub fn start_again(&self) -> Result<()> {
        let directory = self.directory.path().join("cluster");
        let running = attach_in(&Layout::from_environment()?, programs()?, &directory, Some(self.port))?;
        *self.running.lock() = Some(running);
        Ok(())
    }

    /// Stops one process of it in the middle of what it does, such as `kube-apiserver` or `etcd`. Its connections stay open.
    pub fn freeze(&self, part: &str) -> Result<()> {
        self.signal(part, Signal::STOP)
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self, part: &str) -> Result<()> {
        self.signal(part, Signal::CONT)
    }

    /// Kills one process of it. The others end with it.
    pub fn kill(&self, part: &str) -> Result<()> {
        self.signal(part, Signal::KILL)?;
        self.stop();
        Ok(())
    }

    fn signal(&self, part: &str, signal: Signal) -> Result<()> {
        signal_part(&self.directory.path().join("cluster"), part, signal)
    }

    /// Copies the data of etcd, while the cluster is stopped.
    pub fn back_up(&self) -> Result<()> {
        let backup = self.directory.path().join("backup");
        copy(&self.directory.path().join("cluster/etcd"), &backup).context("back up etcd")
    }

    /// Replaces the data of etcd by the backup, while the cluster is stopped.
    pub fn restore(&self) -> Result<()> {
        let data = self.directory.path().join("cluster/etcd");
        fs::remove_dir_all(&data).context("remove the data of etcd")?;
        copy(&self.directory.path().join("backup"), &data).context("restore etcd")
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
