//! The cluster, the repository and plumb of a demo.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plumb_testkit::cluster::{self, AttachedCluster, Layout, Programs};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::planted;
use super::repository::{N_APPS, Repository};
use crate::kubectl::Kubectl;
use crate::plumb::RunningPlumb;
use crate::say::say;

/// They run for as long as this value exists.
pub(super) struct Stage {
    pub(super) kubectl: Kubectl,
    pub(super) repository: Repository,
    plumb: RunningPlumb,
    log: PathBuf,
    folder: PathBuf,
    /// Dropping it stops the cluster.
    _cluster: AttachedCluster,
}

impl Stage {
    pub(super) fn start(layout: &Layout, programs: &Programs, root: &Path, plumb: &Path) -> Result<Self> {
        let cluster = cluster::attach(layout, programs)?;
        let kubeconfig = cluster.state().kubeconfig.clone();
        let kubectl = Kubectl::new(programs, &kubeconfig);
        sweep(&std::env::temp_dir());
        let folder = std::env::temp_dir().join(format!("{FOLDER}{}", std::process::id()));
        let repository = Repository::create(&folder.join("repo"), &root.join("demo"))?;
        kubectl.apply_files(&[
            root.join("demo/bootstrap"),
            root.join("demo/repo/apps/tekton-pipelines"),
            root.join("demo/repo/apps/tekton-dashboard"),
        ])?;
        let log = folder.join("plumb.log");
        let cache = folder.join("cache");
        let child = RunningPlumb::start_with(plumb, &kubeconfig, kubectl.path(), &cache, &log, &PAGE)?;
        Ok(Self { kubectl, repository, plumb: child, log, folder, _cluster: cluster })
    }

    /// Installs the apps, makes the trouble, and waits until every planted fault was found. Returns the seconds that it took.
    pub(super) fn play(&self, root: &Path, patience: Duration) -> Result<f64> {
        let started = Instant::now();
        let end = started + patience;
        self.until(end, "plumb has installed its kinds", || {
            self.kubectl.get_json(&["crd", "applications.argoproj.io"]).is_ok()
                && self.kubectl.get_json(&["-n", "argocd", "appproject", "default"]).is_ok()
        })?;
        self.kubectl.apply_text(&self.repository.root_application())?;
        self.until(end, "the first syncs have ended", || self.n_synced_once() >= N_APPS - 2)?;
        self.trouble(root)?;
        loop {
            let missing = planted::missing(&self.applications()?, &self.reports()?, N_APPS);
            if missing.is_empty() {
                return Ok(started.elapsed().as_secs_f64());
            }
            ensure!(
                Instant::now() < end,
                "not settled after {} s:\n  {}",
                patience.as_secs(),
                missing.join("\n  ")
            );
            std::thread::sleep(POLL);
        }
    }

    /// Acts as other writers: a commit disables sub-charts, a typed client drops zero values, an operator fills
    /// in a spec.
    fn trouble(&self, root: &Path) -> Result<()> {
        self.repository.disable_sub_charts(&root.join("demo"))?;
        self.kubectl.run(&[
            "-n",
            "argocd",
            "annotate",
            "applications.argoproj.io",
            "gitea",
            "infisical",
            "argocd.argoproj.io/refresh=normal",
        ])?;
        // Only a render without the cache shows that a chart's output differs each time.
        self.kubectl.run(&[
            "-n",
            "argocd",
            "annotate",
            "applications.argoproj.io",
            "victoria-metrics",
            "grafana-alerting",
            "argocd.argoproj.io/refresh=hard",
        ])?;
        let mut child = self.kubectl.get_json(&["-n", "argocd", "applications.argoproj.io", "cilium"])?;
        if let Some(automated) =
            child.pointer_mut("/spec/syncPolicy/automated").and_then(Value::as_object_mut)
        {
            automated.remove("prune");
        }
        if let Some(rule) = child.pointer_mut("/spec/ignoreDifferences/0").and_then(Value::as_object_mut) {
            rule.remove("group");
        }
        self.kubectl.replace(&child, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/cilium?fieldManager=argocd-application-controller")?;
        let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"},
            "spec": {"dcgm": {"enabled": true}, "gfd": {"enabled": true}, "operator": {"defaultRuntime": "containerd"}}});
        self.kubectl.apply_as(&policy, "gpu-operator")
    }

    fn n_synced_once(&self) -> usize {
        let ended = |item: &&Value| item["status"]["operationState"]["phase"] == "Succeeded";
        self.applications()
            .ok()
            .and_then(|list| Some(list["items"].as_array()?.iter().filter(ended).count()))
            .unwrap_or(0)
    }

    pub(super) fn applications(&self) -> Result<Value> {
        self.kubectl.get_json(&["-n", "argocd", "applications.argoproj.io"])
    }

    pub(super) fn reports(&self) -> Result<Value> {
        self.kubectl.get_json(&["-n", "argocd", "driftreports.plumb.dev"])
    }

    pub(super) fn until(&self, end: Instant, what: &str, holds: impl Fn() -> bool) -> Result<()> {
        while !holds() {
            if Instant::now() > end {
                bail!("timed out waiting until {what}; plumb's log: {}", self.log.display());
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    pub(super) fn show(&self, plumb: &Path) -> Result<()> {
        for args in [&["app", "list"][..], &["drift"][..]] {
            say(&format!("\n$ plumb {}", args.join(" ")));
            Command::new(plumb)
                .args(args)
                .arg("--kubeconfig")
                .arg(self.kubectl.kubeconfig())
                .status()
                .with_context(|| format!("cannot run plumb {}", args.join(" ")))?;
        }
        Ok(())
    }

    /// Where the page is and how to log in, if it is served.
    fn page(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        let address = page_address(&log)?;
        let secret =
            self.kubectl.get_json(&["-n", "argocd", "secret", "argocd-initial-admin-secret"]).ok()?;
        let password = BASE64.decode(secret["data"]["password"].as_str()?).ok()?;
        let password = String::from_utf8(password).ok()?;
        Some(format!("The page: http://{address} (admin, {password})"))
    }

    /// Keeps everything running until Ctrl-C ends this process. The cluster and plumb end with it.
    pub(super) fn linger(mut self, plumb: &Path) -> Result<ExitCode> {
        let (plumb, repository) = (plumb.display(), self.repository.folder().display());
        if let Some(page) = self.page() {
            say(&format!("\n{page}"));
        }
        say(&format!(
            "\nThe cluster keeps running. What to type next, in another terminal:\n\n  \
             export KUBECONFIG={}\n  \
             {plumb} app list\n  \
             {plumb} doctor                 # what to look at first\n  \
             {plumb} fix --repo {repository} --for argocd --yes --branch less-noise\n  \
             git -C {repository} merge less-noise\n  \
             {plumb} adopt --all            # objects that no app tracks yet\n  \
             {plumb} orphans --delete       # objects that Git no longer has, one at a time\n  \
             {plumb} doctor                 # what is left: the crash loop\n  \
             kubectl -n argocd get driftreports\n  \
             kubectl -n cilium scale deploy/cilium --replicas=5   # plumb reverts it\n\n\
             The repository is {}; commit to it and see what happens. Ctrl-C ends everything.",
            self.kubectl.kubeconfig().display(),
            self.repository.url(),
        ));
        let status = self.plumb.wait()?;
        bail!("plumb exited ({status}); its log: {}", self.log.display())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.plumb.stop();
        let _ = std::fs::remove_dir_all(self.folder.join("repo"));
        let _ = std::fs::remove_dir_all(self.folder.join("cache"));
    }
}

/// Without TLS a browser shows the page without a warning; the listener is on loopback. Another plumb may have the usual
/// port.
const PAGE: [&str; 3] = ["--insecure", "--web-address", "127.0.0.1:0"];

/// The address of the API in plumb's log.
fn page_address(log: &str) -> Option<&str> {
    let line = log.lines().find(|line| line.contains("listening") && line.contains("API"))?;
    let (_, rest) = line.split_once("address=")?;
    rest.trim_start_matches('"').split(['"', ' ']).next().filter(|address| !address.is_empty())
}

/// The name of a demo's folder, without the process id that follows.
const FOLDER: &str = "plumb-demo-";

/// Removes the folders of earlier demos, which Ctrl-C ends without cleaning up.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse().ok());
        if pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// There is no watch event for "all apps have settled", so the demo polls.
const POLL: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_page_is_in_the_log() {
        let log = "INFO listening side=\"metrics and health\" address=\"127.0.0.1:8082\"\n\
                   INFO listening side=\"API and webhooks\" address=\"127.0.0.1:8080\"\n";
        assert_eq!(page_address(log), Some("127.0.0.1:8080"));
        assert_eq!(page_address("INFO started"), None);
    }
}
