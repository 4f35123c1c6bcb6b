//! Tasks use their cluster through kubectl, as a user does.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::Programs;
use serde_json::Value;

/// kubectl, with the kubeconfig of one cluster.
#[derive(Debug)]
pub(crate) struct Kubectl {
    kubeconfig: PathBuf,
    path: OsString,
}

impl Kubectl {
    pub(crate) fn new(programs: &Programs, kubeconfig: &Path) -> Self {
        let path = crate::programs::path_with(programs);
        Self { kubeconfig: kubeconfig.to_path_buf(), path }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A PATH on which kubectl, helm and kustomize are found.
    pub(crate) fn path(&self) -> &OsString {
        &self.path
    }

    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        self.with_input(args, None)
    }

    pub(crate) fn get_json(&self, args: &[&str]) -> Result<Value> {
        let args = [args, &["-o", "json"]].concat();
        let (namespace, rest) = if args.first() == Some(&"-n") { args.split_at(2) } else { args.split_at(0) };
        let text = self.run(&[namespace, &["get"], rest].concat())?;
        serde_json::from_str(&text).context("cannot read kubectl's output")
    }

    /// Applies client-side, as a bootstrap script does.
    pub(crate) fn apply_files(&self, files: &[PathBuf]) -> Result<()> {
        for file in files {
            self.run(&["apply", "-f", &file.display().to_string()])?;
        }
        Ok(())
    }

    pub(crate) fn apply_text(&self, text: &str) -> Result<()> {
        self.with_input(&["apply", "-f", "-"], Some(text)).map(drop)
    }

    /// Applies server-side, as another field manager.
    pub(crate) fn apply_as(&self, object: &Value, manager: &str) -> Result<()> {
        let args = ["apply", "--server-side", "--field-manager", manager, "-f", "-"];
        self.with_input(&args, Some(&object.to_string())).map(drop)
    }

    /// Replaces the whole object, as a typed client does.
    pub(crate) fn replace(&self, object: &Value, path: &str) -> Result<()> {
        self.with_input(&["replace", "--raw", path, "-f", "-"], Some(&object.to_string())).map(drop)
    }

    fn with_input(&self, args: &[&str], input: Option<&str>) -> Result<String> {
        let mut child = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(args)
            .env("PATH", &self.path)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run kubectl")?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes()).context("cannot write to kubectl")?;
        }
        let output = child.wait_with_output().context("cannot wait for kubectl")?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        String::from_utf8(output.stdout).context("cannot read kubectl's output: not UTF-8")
    }
}
