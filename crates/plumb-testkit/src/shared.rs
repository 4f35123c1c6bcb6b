//! The one cluster of a test run.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result, anyhow};
use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use serde_json::{Value, json};

use crate::cluster::{AttachedCluster, Layout, Programs, attach};

/// A caller with a cluster at hand (`cargo xtask test` has one for all test programs) names its
/// kubeconfig here.
const KUBECONFIG_VARIABLE: &str = "PLUMB_TEST_KUBECONFIG";

/// The cluster that all tests of this process share.
#[derive(Debug)]
pub struct SharedCluster {
    kubeconfig: PathBuf,
    /// The process's own cluster, which ends with the process.
    _own: Option<AttachedCluster>,
}

impl SharedCluster {
    /// A cluster that another part of this crate runs.
    pub(crate) fn at(kubeconfig: PathBuf) -> Self {
        Self { kubeconfig, _own: None }
    }

    /// For a user who may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Port of its API server on 127.0.0.1.
    pub fn port(&self) -> Result<u16> {
        let server = self.cluster_entry("server")?;
        let port = server.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
        port.with_context(|| format!("{server} has no port"))
    }

    /// What a cluster Secret says to get in with a client certificate: the JSON of its `config`.
    pub fn certificate_config(&self) -> Result<Value> {
        Ok(json!({"tlsClientConfig": {
            "caData": self.cluster_entry("certificate-authority-data")?,
            "certData": self.user_entry("client-certificate-data")?,
            "keyData": self.user_entry("client-key-data")?,
        }}))
    }

    fn cluster_entry(&self, key: &str) -> Result<String> {
        self.entry("clusters", "cluster", key)
    }

    fn user_entry(&self, key: &str) -> Result<String> {
        self.entry("users", "user", key)
    }

    /// A value of the current context's cluster or user.
    fn entry(&self, list: &str, inner: &str, key: &str) -> Result<String> {
        let config = Kubeconfig::read_from(&self.kubeconfig)
            .with_context(|| format!("read {}", self.kubeconfig.display()))?;
        let config = serde_json::to_value(&config).context("read the kubeconfig")?;
        let of = |list: &str, name: &Value| {
            let entries = config[list].as_array().into_iter().flatten();
            entries.into_iter().find(|entry| entry["name"] == *name).cloned().unwrap_or_default()
        };
        let context = of("contexts", &config["current-context"]);
        let found = &of(list, &context["context"][inner])[inner][key];
        found.as_str().map(str::to_owned).with_context(|| format!("the kubeconfig has no {list} {key}"))
    }

    /// Every request that the API server answered, but for the control plane's own reading.
    pub fn audit_log(&self) -> PathBuf {
        self.kubeconfig.with_file_name("logs").join("audit.log")
    }
}

/// The cluster named by the caller, or else this process's own, started on first use. Blocks
/// while it starts; from async code use [`TestNamespace::new`](crate::TestNamespace::new).
pub fn shared_cluster() -> Result<&'static SharedCluster> {
    static SHARED: OnceLock<Result<SharedCluster, String>> = OnceLock::new();
    SHARED
        .get_or_init(|| start().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("no cluster for the tests: {error}"))
}

/// A second cluster for all tests of this process that want two, started on first use. Blocks while it starts.
pub fn another_cluster() -> Result<&'static SharedCluster> {
    static ANOTHER: OnceLock<Result<SharedCluster, String>> = OnceLock::new();
    ANOTHER
        .get_or_init(|| start_own().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("no second cluster for the tests: {error}"))
}

/// The programs that clusters and renderers use, built on first use.
pub fn programs() -> Result<&'static Programs> {
    static PROGRAMS: OnceLock<Result<Programs, String>> = OnceLock::new();
    PROGRAMS
        .get_or_init(|| {
            let layout = Layout::from_environment().map_err(|error| format!("{error:#}"))?;
            Programs::ensure(&layout, &mut |line| {
                // Straight to the terminal: the test program would hold it back until the end.
                let _ = writeln!(io::stderr(), "{line}");
            })
            .map_err(|error| format!("{error:#}"))
        })
        .as_ref()
        .map_err(|error| anyhow!("no programs for the test cluster: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "the one setting of the test harness")]
fn start() -> Result<SharedCluster> {
    if let Some(kubeconfig) = env::var_os(KUBECONFIG_VARIABLE) {
        return Ok(SharedCluster { kubeconfig: PathBuf::from(kubeconfig), _own: None });
    }
    start_own()
}

fn start_own() -> Result<SharedCluster> {
    let own = attach(&Layout::from_environment()?, programs()?)?;
    Ok(SharedCluster { kubeconfig: own.state().kubeconfig.clone(), _own: Some(own) })
}

/// A client of the runtime that calls this, which names itself in the audit log. It tries
/// nothing twice: a test sees each answer.
pub async fn client_for(kubeconfig: &Path, user_agent: &str) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("use {}", kubeconfig.display()))?;
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_str(user_agent).context("a user agent is a header")?));
    Client::try_from(config).with_context(|| format!("use {}", kubeconfig.display()))
}
