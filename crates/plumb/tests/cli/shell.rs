//! Runs commands in an environment that holds nothing of this machine's user, and records their output.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::golden::{Said, Transcript};

/// How long a command may take. Most take a second or two.
const LONGEST: Duration = Duration::from_mins(3);

/// Where commands run. Without further variables they find no cluster.
pub(crate) struct Shell {
    /// HOME of the commands; also where their files are.
    pub(crate) home: TempDir,
    pub(crate) transcript: Transcript,
    variables: Vec<(&'static str, OsString)>,
}

impl Shell {
    pub(crate) fn new() -> Result<Self> {
        let home = TempDir::new()?;
        for name in ["argocd", "kubectl-plumb"] {
            symlink(env!("CARGO_BIN_EXE_plumb"), home.path().join(name))?;
        }
        let mut transcript = Transcript::new();
        transcript.call(&home.path().display().to_string(), "HOME");
        Ok(Self { home, transcript, variables: Vec::new() })
    }

    /// Sets an environment variable of all later commands.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }

    /// Runs `plumb …` as a user would, and records its output.
    pub(crate) fn plumb(&mut self, line: &str) -> Result<Said> {
        self.run(line, &[], "")
    }

    /// Runs a command line whose first word is `plumb`, `argocd` or `kubectl-plumb`, and records its output.
    pub(crate) fn run(&mut self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        let said = self.quietly(line, variables, stdin)?;
        self.transcript.add(line, &said);
        Ok(said)
    }

    /// Runs a command line, and records only the end of its output, from this line on.
    pub(crate) fn run_from(&mut self, line: &str, from: &str) -> Result<Said> {
        let said = self.quietly(line, &[], "")?;
        let tail = said.stdout.find(from).map_or("", |at| said.stdout.get(at..).unwrap_or_default());
        let shown = Said { stdout: format!("…\n{tail}"), stderr: String::new(), code: said.code };
        self.transcript.add(line, &shown);
        Ok(said)
    }

    /// Runs a command line and records nothing.
    pub(crate) fn quietly(&self, line: &str, variables: &[(&str, &str)], stdin: &str) -> Result<Said> {
        let mut command = self.command(line)?;
        command.envs(variables.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // A command that does not read stdin closes the pipe.
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
        command
            .args(rest)
            .env_clear()
            .env("HOME", self.home.path())
            .env("USER", "tester")
            .env("PLUMB_CACHE_DIR", self.home.path().join("cache"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path());
        Ok(command)
    }

    fn program(&self, name: &str) -> PathBuf {
        match name {
            "argocd" | "kubectl-plumb" => self.home.path().join(name),
            _ => PathBuf::from(env!("CARGO_BIN_EXE_plumb")),
        }
    }

    /// Writes a file into the commands' home and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.home.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }
}

/// Waits for a command. It is killed after [`LONGEST`], so that a test fails instead of hanging.
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

/// Splits a line into words; quotes keep blanks together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
