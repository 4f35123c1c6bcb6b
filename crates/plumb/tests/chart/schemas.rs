//! `plumb schema` as CI uses it: kubeconform accepts what is right and names what is wrong.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use plumb_testkit::cluster::{Layout, kubeconform};
use tempfile::TempDir;

/// What is checked, and a piece of the message; without one it is valid.
const CASES: &[(&str, &str, Option<&str>)] = &[
    (
        "an Application",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {project: default, \
         destination: {name: in-cluster, namespace: a}, source: {repoURL: 'https://x/y', path: a, targetRevision: main}}\n",
        None,
    ),
    (
        "a misspelled field",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {project: default, \
         destination: {name: in-cluster}, source: {repoURL: 'https://x/y', path: a, targetRevison: main}}\n",
        Some("targetRevison"),
    ),
    (
        "a project with a list in place of a text",
        "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: a}\nspec: {description: [a]}\n",
        Some("/spec/description"),
    ),
    (
        "settings",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {timeout.reconciliation: 1h30m, helm.enable: \
         'false', any.other: text, resource.exclusions: '[]'}\n",
        None,
    ),
    (
        "a duration without a unit",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata: {timeout.reconciliation: '60'}\n",
        Some("timeout.reconciliation"),
    ),
    (
        "a number that is no text",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cmd-params-cm}\ndata: {controller.status.processors: 30}\n",
        Some("controller.status.processors"),
    ),
    (
        "the same keys in a ConfigMap that holds no settings",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndata: {timeout.reconciliation: '60'}\n",
        None,
    ),
    (
        "a plugin",
        "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\nmetadata: {name: cue}\nspec: {generate: {command: \
         [cue, export], args: [a]}, discover: {fileName: '*.cue'}, preserveFileMode: true}\n",
        None,
    ),
    (
        "a plugin that generates nothing",
        "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\nmetadata: {name: cue}\nspec: {init: {command: \
         [cue]}}\n",
        Some("generate"),
    ),
];

struct Checker {
    program: std::path::PathBuf,
    folder: TempDir,
}

impl Checker {
    fn check(&self, files: &[&Path]) -> Result<(bool, String)> {
        let schemas = "{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json";
        let output = Command::new(&self.program)
            .args(["-strict", "-schema-location"])
            .arg(self.folder.path().join("schemas").join(schemas))
            .args(files)
            .stdin(Stdio::null())
            .output()
            .context("cannot run kubeconform")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.success(), said + &String::from_utf8_lossy(&output.stderr)))
    }
}

#[test]
fn kubeconform_reads_the_schemas_and_finds_mistakes() -> Result<()> {
    let mut note = |line: &str| {
        let _ = writeln!(std::io::stderr(), "{line}");
    };
    let program = kubeconform(&Layout::from_environment()?, &mut note)?;
    let checker = Checker { program, folder: TempDir::new()? };
    let written = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["schema", "--to"])
        .arg(checker.folder.path().join("schemas"))
        .status()?;
    ensure!(written.success(), "plumb schema --to ended with {written}");
    let file = checker.folder.path().join("manifest.yaml");
    for (name, manifest, mistake) in CASES {
        std::fs::write(&file, manifest)?;
        let (is_valid, said) = checker.check(&[&file])?;
        ensure!(is_valid == mistake.is_none(), "{name}: {said}");
        ensure!(mistake.is_none_or(|mistake| said.contains(mistake)), "{name}: {said}");
    }
    // The examples of this repository.
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(&examples)?.flatten() {
        for name in ["application.yaml", "applicationset.yaml", "project.yaml"] {
            files.extend(Some(folder.path().join(name)).filter(|file| file.is_file()));
        }
    }
    ensure!(files.len() >= 8, "{files:?}");
    let (is_valid, said) = checker.check(&files.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
    ensure!(is_valid, "{said}");
    Ok(())
}
