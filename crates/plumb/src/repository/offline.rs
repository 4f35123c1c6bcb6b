//! What generators know without a cluster: files of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_appset::{
    ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Repository, Unanswered,
};
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use plumb_crd::settings::SecretData;
use serde_json::Value;

use crate::error::CommandError;

/// Most files of a directory.
pub(super) const MOST_FILES: usize = 100_000;
/// Longest file of parameters.
const LONGEST_FILE: u64 = 4 << 20;

/// Files instead of a cluster and Git servers.
pub(crate) struct Offline {
    clusters: Vec<ClusterRecord>,
    root: PathBuf,
    tree: GitTree,
}

impl Offline {
    /// `clusters` is a file with cluster Secrets, or with maps of `name`, `server`, `labels` and `annotations`.
    pub(crate) fn new(clusters: Option<&str>, root: &Path) -> Result<Self, CommandError> {
        let mut tree = GitTree::default();
        walk(root, root, &mut tree).map_err(|error| {
            CommandError::because(format!("read the directory {}", root.display()), error)
        })?;
        Ok(Self { clusters: clusters.map_or(Ok(Vec::new()), records)?, root: root.to_owned(), tree })
    }

    /// The clusters of the file.
    pub(crate) fn clusters(&self) -> &[ClusterRecord] {
        &self.clusters
    }
}

/// The clusters of a file: cluster Secrets, or maps of `name`, `server`, `labels` and `annotations`.
pub(super) fn records(text: &str) -> Result<Vec<ClusterRecord>, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read the clusters", error))?;
    let values = documents.into_iter().map(|document| document.value);
    let each = values.flat_map(|value| match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    });
    each.map(|value| record(&value)).collect()
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn record(value: &Value) -> Result<ClusterRecord, CommandError> {
    if value["kind"] == "Secret" {
        let (secret, _) =
            SecretData::read(value).map_err(|error| CommandError::because("read a cluster Secret", error))?;
        let text = |key: &str| secret.get(key).map(|text| text.expose().to_owned()).unwrap_or_default();
        return Ok(ClusterRecord {
            name: text("name"),
            server: text("server"),
            project: text("project"),
            labels: secret.metadata.labels.clone(),
            annotations: secret.metadata.annotations.clone(),
        });
    }
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(ClusterRecord {
        name: text("name"),
        server: text("server"),
        project: text("project"),
        labels: texts(&value["labels"]),
        annotations: texts(&value["annotations"]),
    })
}

pub(super) fn walk(root: &Path, directory: &Path, tree: &mut GitTree) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if kind.is_dir() {
            if entry.file_name() != ".git" {
                walk(root, &path, tree)?;
            }
        } else if kind.is_symlink() {
            tree.symlinks.insert(relative, std::fs::read_link(&path)?.to_string_lossy().into_owned());
        } else {
            tree.files.insert(relative, String::new());
        }
        if tree.files.len() > MOST_FILES {
            return Err(std::io::Error::other(format!("it has more than {MOST_FILES} files")));
        }
    }
    Ok(())
}

pub(super) fn needs_cluster<T>(what: &str) -> Result<T, Unanswered> {
    Err(Unanswered::Failed(format!("{what} cannot be asked without a cluster")))
}

impl Facts for Offline {
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered> {
        Ok(self.clusters.clone())
    }

    fn project(&self, _: &str) -> Result<(), Unanswered> {
        Ok(())
    }

    fn git(&self, _: Option<&str>, _: &str, _: &str) -> Result<&GitTree, Unanswered> {
        Ok(&self.tree)
    }

    fn git_file(&self, _: Option<&str>, _: &str, _: &str, path: &str) -> Result<String, Unanswered> {
        let file = self.root.join(path);
        let length = std::fs::metadata(&file).map(|metadata| metadata.len());
        if length.is_ok_and(|length| length > LONGEST_FILE) {
            return Err(Unanswered::Failed(format!("{path} is longer than {LONGEST_FILE} bytes")));
        }
        std::fs::read_to_string(&file).map_err(|error| Unanswered::Failed(format!("{path}: {error}")))
    }

    fn config_map(&self, _: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        needs_cluster("a ConfigMap")
    }

    fn secret(&self, _: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        needs_cluster("a Secret")
    }

    fn objects(&self, _: &str, _: &str) -> Result<Vec<Value>, Unanswered> {
        needs_cluster("an object")
    }

    fn plugin(&self, _: &PluginCall) -> Result<HttpAnswer, Unanswered> {
        needs_cluster("a plugin")
    }

    fn repositories(&self, _: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        needs_cluster("an SCM provider")
    }

    fn pull_requests(&self, _: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        needs_cluster("pull requests")
    }
}
