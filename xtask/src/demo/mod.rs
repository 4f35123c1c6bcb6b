//! `cargo xtask demo`: a real cluster, a troubled repository, plumb at work on it.

mod kubectl;
mod planted;
mod repository;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kubectl::Kubectl;
use plumb_testkit::cluster::{self, AttachedCluster, Layout, Programs};
use repository::{N_APPS, Repository};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::cluster::ensure_programs;
use crate::plumb::{RunningPlumb, build_plumb};

/// How to play it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End when all has settled; the exit code says whether every planted fault was found as planted.
    #[arg(long)]
    once: bool,
    /// Give up when it has not settled after this many seconds.
    #[arg(long, default_value_t = 400)]
    patience: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root().canonicalize().context("find the repository")?;
    let plumb = build_plumb(&root)?;
    let layout = Layout::from_environment()?;
    let programs = ensure_programs(&layout)?;
    say("starting a cluster");
    let stage = Stage::set(&layout, &programs, &root, &plumb)?;
    say(&format!("waiting until {N_APPS} apps have settled"));
    let settled = stage.play(&root, Duration::from_secs(args.patience));
    stage.show(&plumb)?;
    match (&settled, args.once) {
        (Ok(seconds), _) => {
            say(&format!("settled after {seconds:.1} s: every planted fault was found as planted"));
        }
        (Err(_), true) => {}
        (Err(error), false) => say(&format!("not settled: {error:#}")),
    }
    if args.once {
        return settled.map(|_| ExitCode::SUCCESS);
    }
    stage.linger(&plumb)
}

/// The cluster, the repository and plumb, for as long as this value lives.
struct Stage {
    kubectl: Kubectl,
    repository: Repository,
    plumb: RunningPlumb,
    log: PathBuf,
    folder: PathBuf,
    /// Dropping it stops the cluster.
    _cluster: AttachedCluster,
}

impl Stage {
    fn set(layout: &Layout, programs: &Programs, root: &Path, plumb: &Path) -> Result<Self> {
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
        let child = RunningPlumb::start(plumb, &kubeconfig, kubectl.path(), &folder.join("cache"), &log)?;
        Ok(Self { kubectl, repository, plumb: child, log, folder, _cluster: cluster })
    }

    /// Plays the story and waits until everything planted was found. Gives the seconds it took.
    fn play(&self, root: &Path, patience: Duration) -> Result<f64> {
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
                "after {} s this is still missing:\n  {}",
                patience.as_secs(),
                missing.join("\n  ")
            );
            std::thread::sleep(POLL);
        }
    }

    /// What other actors do: a commit switches sub-charts off, a typed client drops zero values, an operator
    /// fills a spec.
    fn trouble(&self, root: &Path) -> Result<()> {
        self.repository.switch_sub_charts_off(&root.join("demo"))?;
        self.kubectl.run(&[
            "-n",
            "argocd",
            "annotate",
            "applications.argoproj.io",
            "gitea",
            "infisical",
            "argocd.argoproj.io/refresh=normal",
        ])?;
        // Only a render that uses no cache shows that a chart prints something else each time.
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

    fn applications(&self) -> Result<Value> {
        self.kubectl.get_json(&["-n", "argocd", "applications.argoproj.io"])
    }

    fn reports(&self) -> Result<Value> {
        self.kubectl.get_json(&["-n", "argocd", "driftreports.plumb.dev"])
    }

    fn until(&self, end: Instant, what: &str, holds: impl Fn() -> bool) -> Result<()> {
        while !holds() {
            if Instant::now() > end {
                bail!("waited in vain until {what}; plumb's log: {}", self.log.display());
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn show(&self, plumb: &Path) -> Result<()> {
        for args in [&["app", "list"][..], &["drift"][..]] {
            say(&format!("\n$ plumb {}", args.join(" ")));
            Command::new(plumb)
                .args(args)
                .arg("--kubeconfig")
                .arg(self.kubectl.kubeconfig())
                .status()
                .with_context(|| format!("run plumb {}", args.join(" ")))?;
        }
        Ok(())
    }

    /// Keeps everything running until Ctrl-C, which ends this process; the cluster and plumb end with it.
    fn linger(mut self, plumb: &Path) -> Result<ExitCode> {
        say(&format!(
            "\nThe cluster keeps running. In another terminal:\n\n  export KUBECONFIG={}\n  {} app list\n  \
             kubectl -n argocd get driftreports\n  kubectl -n cilium scale deploy/cilium --replicas=5   # watch it being put back\n\n\
             The repository is {}; commit to it and see what happens. Ctrl-C ends everything.",
            self.kubectl.kubeconfig().display(),
            plumb.display(),
            self.repository.url(),
        ));
        let status = self.plumb.wait()?;
        bail!("plumb ended by itself ({status}); its log: {}", self.log.display())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.plumb.stop();
        let _ = std::fs::remove_dir_all(self.folder.join("repo"));
        let _ = std::fs::remove_dir_all(self.folder.join("cache"));
    }
}

/// How the folder of a demo is called, before the number of its process.
const FOLDER: &str = "plumb-demo-";

/// Removes what earlier demos left: Ctrl-C ends them where they are.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.parse().ok());
        if pid.and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// There is no event for "all of these together"; asking a few times a second costs nothing.
const POLL: Duration = Duration::from_millis(300);

fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
