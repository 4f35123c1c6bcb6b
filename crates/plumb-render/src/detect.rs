//! Which tool renders a source.

use plumb_core::app::SourceTool;
use plumb_core::source::{EntryKind, RepoPath, SourceFiles};

use crate::{RenderError, RenderSettings, plugin};

/// How a source is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceType {
    /// Plain manifests and Jsonnet.
    Directory,
    /// A Helm chart.
    Helm,
    /// A Kustomize overlay.
    Kustomize,
    /// A declared command.
    Plugin,
}

impl SourceType {
    /// As `status.sourceType` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "Directory",
            Self::Helm => "Helm",
            Self::Kustomize => "Kustomize",
            Self::Plugin => "Plugin",
        }
    }

    /// Reads what [`as_str`](Self::as_str) writes.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Directory, Self::Helm, Self::Kustomize, Self::Plugin]
            .into_iter()
            .find(|source_type| source_type.as_str() == name)
    }
}

/// File names that make a directory a Kustomize overlay.
pub(crate) const KUSTOMIZATION_FILES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The rules of Argo CD: what is asked for, else what the directory itself shows. A tool that is switched off
/// leaves plain manifests.
pub(crate) fn detect(
    tool: Option<&SourceTool>,
    files: &dyn SourceFiles,
    directory: &RepoPath,
    settings: &RenderSettings,
) -> Result<SourceType, RenderError> {
    let detected = match tool {
        Some(SourceTool::Directory(_)) => SourceType::Directory,
        Some(SourceTool::Helm(_)) => SourceType::Helm,
        Some(SourceTool::Kustomize(_)) => SourceType::Kustomize,
        Some(SourceTool::Plugin(_)) => SourceType::Plugin,
        None if plugin::discover(&settings.plugins, files, directory)?.is_some() => SourceType::Plugin,
        None => by_files(files, directory)?,
    };
    Ok(match detected {
        SourceType::Helm if !settings.helm => SourceType::Directory,
        SourceType::Kustomize if !settings.kustomize => SourceType::Directory,
        enabled => enabled,
    })
}

fn by_files(files: &dyn SourceFiles, directory: &RepoPath) -> Result<SourceType, RenderError> {
    let entries = files.list(directory).map_err(RenderError::read(format!("directory `{directory}`")))?;
    let mut found = SourceType::Directory;
    // In order of names: the later one wins, so `kustomization.yaml` beats `Chart.yaml` and `Kustomization` too.
    for entry in entries.iter().filter(|entry| entry.kind != EntryKind::Directory) {
        if entry.name.ends_with("Chart.yaml") {
            found = SourceType::Helm;
        } else if KUSTOMIZATION_FILES.contains(&entry.name.as_str()) {
            found = SourceType::Kustomize;
        }
    }
    Ok(found)
}
