//! What the tests stand on: a namespace, a repository, a plumb at work, and a way to run commands.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plumb_testkit::git::GitRepo;
use plumb_testkit::{TestNamespace, objects, programs, wait};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::golden::{Said, Transcript};

/// How long a command may take. They are over in a second or two.
const LONGEST: Duration = Duration::from_mins(3);

/// Everything that commands run in.
pub(crate) struct Bench {
    pub(crate) place: TestNamespace,
    pub(crate) repo: GitRepo,
    /// HOME of the commands; also where their files are.
    pub(crate) home: TempDir,
    pub(crate) transcript: Transcript,
    engine: Option<Child>,
}

impl Bench {
    /// A namespace with plumb's kinds and the default project, and nobody at work in it.
    pub(crate) async fn new() -> Result<Self> {
        let mut bench = Self::with_engine().await?;
        bench.stop_engine()?;
        Ok(bench)
    }

    /// The same with plumb at work.
    pub(crate) async fn with_engine() -> Result<Self> {
        let place = TestNamespace::new().await?;
        let mut bench = Self {
            repo: GitRepo::new()?,
            home: TempDir::new()?,
            transcript: Transcript::new(),
            engine: None,
            place,
        };
        for name in ["argocd", "kubectl-plumb"] {
            symlink(env!("CARGO_BIN_EXE_plumb"), bench.home.path().join(name))?;
        }
        bench.start_engine()?;
        let project = objects::app_project("default");
        let installed = async || matches!(bench.place.get(&project).await, Ok(Some(_)));
        wait::until_seen(Duration::from_mins(1), "plumb's kinds are served", installed, |done| *done).await?;
        let report =
            json!({"apiVersion": "plumb.dev/v1alpha1", "kind": "DriftReport", "metadata": {"name": "none"}});
        let served = async || bench.place.get(&report).await.is_ok();
        wait::until_seen(Duration::from_mins(1), "reports are served", served, |done| *done).await?;
        bench.transcript.call(&bench.place.kubeconfig().display().to_string(), "KUBECONFIG");
        bench.transcript.call(&bench.repo.url(), "REPO");
        bench.transcript.call(bench.place.name(), "NAMESPACE");
        bench.transcript.call(&bench.home.path().display().to_string(), "HOME");
        Ok(bench)
    }

    fn start_engine(&mut self) -> Result<()> {
        let tools = programs()?;
        let log = std::fs::File::create(self.home.path().join("engine.log"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(["run", "--install", "--until-stdin-closes", "--namespace", self.place.name()])
            // Many run at the same time.
            .args(["--metrics-address=off", "--web-address=off"])
            .arg("--kubeconfig")
            .arg(self.place.kubeconfig())
            .arg("--cache-dir")
            .arg(self.home.path().join("engine-cache"))
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("start plumb")?;
        self.engine = Some(child);
        Ok(())
    }

    /// Nobody is at work any more.
    pub(crate) fn stop_engine(&mut self) -> Result<()> {
        if let Some(mut engine) = self.engine.take() {
            engine.kill().context("stop plumb")?;
            engine.wait().context("wait for plumb")?;
        }
        Ok(())
    }

    /// Runs `plumb …` as a user would, and notes what it said.
    pub(crate) fn plumb(&mut self, line: &str) -> Result<Said> {
        self.run(line, &[], "")
    }

    /// Runs a command line whose first word is `plumb`, `argocd` or `kubectl-plumb`, and notes what it said.
    pub(crate) fn run(&mut self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        let said = self.quietly(line, variables, stdin)?;
        self.transcript.add(line, &said);
        Ok(said)
    }

    /// Runs a command line, and notes only the end of what it said, from this line on.
    pub(crate) fn run_from(&mut self, line: &str, from: &str) -> Result<Said> {
        let said = self.quietly(line, &[], "")?;
        let tail = said.stdout.find(from).map_or("", |at| said.stdout.get(at..).unwrap_or_default());
        let shown = Said { stdout: format!("…\n{tail}"), stderr: String::new(), code: said.code };
        self.transcript.add(line, &shown);
        Ok(said)
    }

    /// Runs a command line and notes nothing.
    pub(crate) fn quietly(&self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        let mut command = self.command(line)?;
        command.envs(variables.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // A command that reads nothing closes its end.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let output = ended(child).with_context(|| format!("run {line}"))?;
        Ok(Said {
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
            code: output.status.code().context("a signal ended it")?,
        })
    }

    /// A command line, ready to run, in an environment that holds nothing of this machine's user.
    pub(crate) fn command(&self, line: &str) -> Result<Command> {
        let words = words(line);
        let (program, rest) = words.split_first().context("an empty command line")?;
        let mut command = Command::new(self.program(program));
        let tools = programs()?;
        command
            .args(rest)
            .env_clear()
            .env("HOME", self.home.path())
            .env("USER", "tester")
            .env("PATH", path_with(tools.path_additions().iter().map(AsRef::as_ref)))
            .env("KUBECONFIG", self.place.kubeconfig())
            .env("PLUMB_NAMESPACE", self.place.name())
            .env("PLUMB_CACHE_DIR", self.home.path().join("cache"))
            .current_dir(self.home.path());
        Ok(command)
    }

    fn program(&self, name: &str) -> PathBuf {
        match name {
            "argocd" | "kubectl-plumb" => self.home.path().join(name),
            _ => PathBuf::from(env!("CARGO_BIN_EXE_plumb")),
        }
    }

    /// An Application of the repository's folder `app`, in the control plane's namespace.
    pub(crate) async fn application(&self, name: &str, change: impl FnOnce(&mut Value)) -> Result<Value> {
        let mut application = objects::application(name, &self.repo.url(), "app", self.place.name());
        application["metadata"]["namespace"] = json!(self.place.name());
        change(&mut application);
        self.place.apply(&application).await?;
        Ok(application)
    }

    /// Waits until the Application's sync and health are these.
    pub(crate) async fn until(&self, application: &Value, sync: &str, health: &str) -> Result<Value> {
        let what = format!("is {sync} and {health}");
        let check = |live: &Value| {
            live["status"]["sync"]["status"] == sync
                && live["status"]["health"]["status"] == health
                && live["operation"].is_null()
        };
        self.place.wait(application, &what, check).await
    }

    /// Writes a file into the commands' home and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.home.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.stop_engine();
        if std::thread::panicking()
            && let Ok(log) = std::fs::read_to_string(self.home.path().join("engine.log"))
        {
            let _ = writeln!(std::io::stdout(), "plumb's log:\n{log}");
        }
    }
}

/// How a command ended. One that does not come to an end is stopped: a test that fails says more than one that
/// hangs.
fn ended(child: Child) -> Result<std::process::Output> {
    let pid = child.id().to_string();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let Ok(output) = told.recv_timeout(LONGEST) else {
        Command::new("kill").arg(&pid).status().context("stop it")?;
        bail!("it has not ended after {} s", LONGEST.as_secs());
    };
    Ok(output?)
}

/// The words of a line; single quotes keep blanks together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

pub(crate) fn path_with<'a>(folders: impl Iterator<Item = &'a Path>) -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "PATH is passed on to the program under test")]
    let before = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<_> = folders.map(Path::to_path_buf).chain(std::env::split_paths(&before)).collect();
    std::env::join_paths(all).unwrap_or(before)
}
