//! What every story stands on: a namespace, a repository, a running plumb.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::git::GitRepo;
use plumb_testkit::proxy::FaultProxy;
use plumb_testkit::{TestNamespace, objects, programs, wait};
use serde_json::{Value, json};
use tempfile::TempDir;

/// One story's cluster corner, repository and plumb.
pub(crate) struct Stage {
    pub(crate) place: TestNamespace,
    pub(crate) repo: GitRepo,
    /// Passed to plumb, besides what every story needs.
    pub(crate) arguments: Vec<String>,
    cache: TempDir,
    plumb: Option<Child>,
    /// The way to the cluster that plumb takes, if not the straight one.
    detour: Option<PathBuf>,
}

impl Stage {
    /// A namespace, an empty repository, and plumb at work.
    pub(crate) async fn set() -> Result<Self> {
        let mut stage = Self::bare().await?;
        stage.begin().await?;
        Ok(stage)
    }

    /// A namespace and an empty repository.
    pub(crate) async fn bare() -> Result<Self> {
        let place = TestNamespace::new().await?;
        Self::bare_at(place, None)
    }

    /// The same, with a plumb that reaches the cluster through the proxy.
    pub(crate) async fn set_behind_proxy() -> Result<(Self, FaultProxy)> {
        let place = TestNamespace::new().await?;
        let proxy = FaultProxy::start(place.kubeconfig()).await?;
        let mut stage = Self::bare_at(place, Some(proxy.kubeconfig()))?;
        stage.begin().await?;
        Ok((stage, proxy))
    }

    fn bare_at(place: TestNamespace, detour: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            place,
            repo: GitRepo::new()?,
            arguments: Vec::new(),
            cache: TempDir::new()?,
            plumb: None,
            detour,
        })
    }

    /// Starts plumb and waits until it has installed its kinds.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        self.start_plumb()?;
        let stage = self;
        // The kinds are served a moment after their definitions were applied, which no watch tells.
        let project = objects::app_project("default");
        let report =
            json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "none"}});
        let installed = async || {
            matches!((stage.place.get(&project).await, stage.place.get(&report).await), (Ok(Some(_)), Ok(_)))
        };
        wait::until_seen(Duration::from_mins(1), "plumb has installed its kinds", installed, |done| *done)
            .await?;
        Ok(())
    }

    /// Starts plumb. It ends with this process, however this process ends: its standard input closes.
    pub(crate) fn start_plumb(&mut self) -> Result<()> {
        let tools = programs()?;
        let child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["run", "--install", "--until-stdin-closes", "--namespace", self.place.name()])
            // Many run at the same time.
            .args(["--metrics-address=127.0.0.1:0", "--web-address=127.0.0.1:0"])
            .args(&self.arguments)
            .arg("--kubeconfig")
            .arg(self.detour.as_deref().unwrap_or(self.place.kubeconfig()))
            .arg("--cache-dir")
            .arg(self.cache.path())
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(
                std::fs::File::options()
                    .create(true)
                    .append(true)
                    .open(self.cache.path().join("plumb.log"))?,
            )
            .spawn()
            .context("start plumb")?;
        self.plumb = Some(child);
        Ok(())
    }

    /// `kill -9`: plumb gets no chance to say goodbye.
    pub(crate) fn kill_plumb(&mut self) -> Result<()> {
        if let Some(mut child) = self.plumb.take() {
            child.kill().context("kill plumb")?;
            child.wait().context("wait for plumb")?;
        }
        Ok(())
    }

    /// Asks plumb to stop, and waits until it has.
    pub(crate) fn stop_plumb(&mut self) -> Result<ExitStatus> {
        let mut child = self.plumb.take().context("plumb does not run")?;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).context("ask plumb to stop")?;
        child.wait().context("wait for plumb")
    }

    /// Waits until plumb ends by itself.
    pub(crate) fn wait_for_plumb(&mut self) -> Result<ExitStatus> {
        let mut child = self.plumb.take().context("plumb does not run")?;
        child.wait().context("wait for plumb")
    }

    /// Everything that plumb has said so far.
    pub(crate) fn log(&self) -> Result<String> {
        std::fs::read_to_string(self.cache.path().join("plumb.log")).context("read plumb's log")
    }

    /// Where plumb listens, as its log says it.
    pub(crate) async fn address(&self, side: &str) -> Result<SocketAddr> {
        let find = || -> Option<SocketAddr> {
            let log = self.log().ok()?;
            let line = log.lines().find(|line| line.contains("listening") && line.contains(side))?;
            line.split("address=").nth(1)?.trim_matches('"').trim().trim_matches('"').parse().ok()
        };
        let what = format!("plumb listens for {side}");
        let found =
            wait::until_seen(Duration::from_secs(30), &what, async || find(), Option::is_some).await?;
        found.context("it does not listen")
    }

    /// An Application of the repository's folder `app`, changed as the story wants it.
    pub(crate) async fn application(&self, name: &str, change: impl FnOnce(&mut Value)) -> Result<Value> {
        let mut application = objects::application(name, &self.repo.url(), "app", self.place.name());
        application["metadata"]["namespace"] = json!(self.place.name());
        change(&mut application);
        self.place.apply(&application).await?;
        Ok(application)
    }

    /// Waits until the Application's sync status is this, and returns the Application.
    pub(crate) async fn until_sync(&self, application: &Value, status: &str) -> Result<Value> {
        let what = format!("is {status}");
        self.place.wait(application, &what, |live| live["status"]["sync"]["status"] == status).await
    }

    /// Waits until the app's report has a finding of this class on this object, and returns the finding.
    pub(crate) async fn finding(
        &self,
        application: &Value,
        kind: &str,
        name: &str,
        class: &str,
    ) -> Result<Value> {
        let report = json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": application["metadata"]["name"]}});
        let is_it =
            |finding: &Value| finding["kind"] == kind && finding["name"] == name && finding["class"] == class;
        let find = |report: &Value| {
            report["findings"].as_array().into_iter().flatten().find(|finding| is_it(finding)).cloned()
        };
        let what = format!("has a finding {class} on {kind} {name}");
        let report = self.place.wait(&report, &what, |report| find(report).is_some()).await?;
        find(&report).context("the finding is gone again")
    }

    /// Asks for a comparison with the newest commit.
    pub(crate) async fn refresh(&self, application: &Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
        self.place.patch_as("a-person", application, &patch).await?;
        let done = |live: &Value| live["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_null();
        self.place.wait(application, "the refresh was answered", done).await?;
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(log) = std::fs::read_to_string(self.cache.path().join("plumb.log"))
        {
            let _ = writeln!(std::io::stdout(), "plumb's log:\n{log}");
        }
        let _ = self.kill_plumb();
    }
}

fn path_with<'a>(folders: impl Iterator<Item = &'a Path>) -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "PATH is passed on to the program under test")]
    let before = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<_> = folders.map(Path::to_path_buf).chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(all).unwrap_or(before)
}
