//! The environment of the tests with a cluster: a namespace, a repository, a running plumb, and a shell.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_testkit::git::GitRepo;
use plumb_testkit::{TestNamespace, objects, programs, wait};
use serde_json::{Value, json};

use crate::golden::Said;
use crate::shell::Shell;

/// A namespace, a repository, and a shell whose commands use them.
pub(crate) struct Bench {
    pub(crate) place: TestNamespace,
    pub(crate) repo: GitRepo,
    pub(crate) shell: Shell,
    engine: Option<Child>,
}

impl Bench {
    /// With plumb's CRDs and the default project, but without a running plumb.
    pub(crate) async fn new() -> Result<Self> {
        let mut bench = Self::with_engine().await?;
        bench.stop_engine()?;
        Ok(bench)
    }

    /// The same with a running plumb.
    pub(crate) async fn with_engine() -> Result<Self> {
        let place = TestNamespace::new().await?;
        let mut bench = Self { repo: GitRepo::new()?, shell: Shell::new()?, engine: None, place };
        let tools = programs()?;
        bench.shell.set("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)));
        bench.shell.set("KUBECONFIG", bench.place.kubeconfig());
        bench.shell.set("PLUMB_NAMESPACE", bench.place.name());
        bench.start_engine()?;
        let project = objects::app_project("default");
        let installed = async || matches!(bench.place.get(&project).await, Ok(Some(_)));
        wait::until_seen(Duration::from_mins(1), "plumb's kinds are served", installed, |done| *done).await?;
        let report =
            json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "none"}});
        let served = async || bench.place.get(&report).await.is_ok();
        wait::until_seen(Duration::from_mins(1), "reports are served", served, |done| *done).await?;
        bench.shell.transcript.call(&bench.place.kubeconfig().display().to_string(), "KUBECONFIG");
        bench.shell.transcript.call(&bench.repo.url(), "REPO");
        bench.shell.transcript.call(bench.place.name(), "NAMESPACE");
        Ok(bench)
    }

    fn start_engine(&mut self) -> Result<()> {
        let tools = programs()?;
        let log = std::fs::File::create(self.shell.home.path().join("engine.log"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["run", "--install", "--until-stdin-closes", "--namespace", self.place.name()])
            // Many tests run at the same time.
            .args(["--metrics-address=off", "--web-address=off"])
            .arg("--kubeconfig")
            .arg(self.place.kubeconfig())
            .arg("--cache-dir")
            .arg(self.shell.home.path().join("engine-cache"))
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start plumb")?;
        self.engine = Some(child);
        Ok(())
    }

    /// Stops plumb.
    pub(crate) fn stop_engine(&mut self) -> Result<()> {
        if let Some(mut engine) = self.engine.take() {
            engine.kill().context("stop plumb")?;
            engine.wait().context("wait for plumb")?;
        }
        Ok(())
    }

    /// Runs `plumb …` as a user would, and records its output.
    pub(crate) fn plumb(&mut self, line: &str) -> Result<Said> {
        self.shell.plumb(line)
    }

    /// Runs a command line whose first word is `plumb`, `argocd` or `kubectl-plumb`, and records its output.
    pub(crate) fn run(&mut self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        self.shell.run(line, variables, stdin)
    }

    /// Runs a command line, and records only the end of its output, from this line on.
    pub(crate) fn run_from(&mut self, line: &str, from: &str) -> Result<Said> {
        self.shell.run_from(line, from)
    }

    /// Runs a command line and records nothing.
    pub(crate) fn quietly(&self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        self.shell.quietly(line, variables, stdin)
    }

    /// A command line, ready to run.
    pub(crate) fn command(&self, line: &str) -> Result<Command> {
        self.shell.command(line)
    }

    /// An Application of the repository's folder `app`, in the control plane's namespace.
    pub(crate) async fn application(&self, name: &str, change: impl FnOnce(&mut Value)) -> Result<Value> {
        let mut application = objects::application(name, &self.repo.url(), "app", self.place.name());
        application["metadata"]["namespace"] = json!(self.place.name());
        change(&mut application);
        self.place.apply(&application).await?;
        Ok(application)
    }

    /// Waits until the Application has this sync and health status.
    pub(crate) async fn until(&self, application: &Value, sync: &str, health: &str) -> Result<Value> {
        let what = format!("is {sync} and {health}");
        let check = |live: &Value| {
            live["status"]["sync"]["status"] == sync
                && live["status"]["health"]["status"] == health
                && live["operation"].is_null()
        };
        self.place.wait(application, &what, check).await
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.stop_engine();
        if std::thread::panicking()
            && let Ok(log) = std::fs::read_to_string(self.shell.home.path().join("engine.log"))
        {
            let _ = writeln!(std::io::stdout(), "plumb's log:\n{log}");
        }
    }
}

pub(crate) fn path_with<'a>(folders: impl Iterator<Item = &'a Path>) -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "PATH is passed on to the program under test")]
    let before = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<_> = folders.map(Path::to_path_buf).chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(all).unwrap_or(before)
}
