//! Which tool renders a source.

use plumb_core::app::SourceTool;
use plumb_core::source::{EntryKind, RepoPath, SourceFiles};

use crate::error::RenderError;
use crate::kustomize::KUSTOMIZATION_FILES;
use crate::plugin;
use crate::settings::RenderSettings;
use crate::source_type::SourceType;

/// As in Argo CD: the tool that the source names, else the one that the directory's files indicate. If the tool is
/// disabled, the files are plain manifests.
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
