//! Starting a proxy, giving it rules, and asking what it saw.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use super::rules::{Fault, Recorded, Requests, Rules, Times};
use super::server::{self, Shared};
use super::watches::{Ending, Watches};
use crate::shared::client_for;

/// A running proxy. Dropping it closes every connection through it.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    directory: TempDir,
    server: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy on a free port, before the API server that the kubeconfig names.
    pub async fn start(kubeconfig: &Path) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("listen on 127.0.0.1")?;
        let address = listener.local_addr().context("listen on 127.0.0.1")?;
        let shared = Arc::new(Shared {
            upstream: upstream(kubeconfig).await?,
            rules: Rules::default(),
            watches: Watches::default(),
        });
        let directory =
            tempfile::Builder::new().prefix("plumb-proxy-").tempdir().context("make a directory")?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        });
        std::fs::write(directory.path().join("kubeconfig"), config.to_string())
            .context("write a kubeconfig")?;
        let server = tokio::spawn(server::serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, directory, server })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The file to give to the program under test.
    pub fn kubeconfig(&self) -> std::path::PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// A client that goes through the proxy and tries nothing twice.
    pub async fn client(&self) -> Result<Client> {
        client_for(&self.kubeconfig(), "plumb-test-through-proxy").await
    }

    /// From now on, does this to these requests, so many times. Rules are tried in the order in
    /// which they were given; the first that fits and is not used up is the one.
    pub fn inject(&self, fault: Fault, requests: Requests, times: Times) {
        self.shared.rules.add(fault, requests, times);
    }

    /// Forgets all rules.
    pub fn heal(&self) {
        self.shared.rules.clear();
    }

    /// Every request so far, in the order of arrival.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.rules.recorded()
    }

    /// How many requests of that kind came so far.
    pub fn count(&self, requests: &Requests) -> usize {
        self.recorded().iter().filter(|recorded| requests.fits(recorded)).count()
    }

    /// How many watches of that kind are running now.
    pub fn running_watches(&self, requests: &Requests) -> usize {
        self.shared.watches.count(requests)
    }

    /// Ends the running watches of that kind, in the given way, and returns how many there were.
    pub fn end_watches(&self, requests: &Requests, ending: Ending) -> usize {
        self.shared.watches.end(requests, ending)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A client that changes nothing on the way: no retries, no decompression.
async fn upstream(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("use {}", kubeconfig.display()))?;
    config.default_retry = false;
    config.disable_compression = true;
    config.read_timeout = None;
    Client::try_from(config).with_context(|| format!("use {}", kubeconfig.display()))
}
