//! Plain manifests.

use plumb_core::app::DirectoryOptions;
use plumb_core::desired::RenderedManifest;
use plumb_core::glob::Glob;
use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};

use crate::error::RenderError;
use crate::jsonnet::{self, JsonnetPlan};
use crate::limits::Limits;
use crate::parse::{self, ReadManifests};
use crate::plan_input::PlanInput;
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::unrelated_file::{contains, is_unrelated};

/// A file that contains this text is skipped.
const SKIP_MARK: &[u8] = b"+argocd:skip-file-rendering";

/// The start of a Git LFS pointer file.
const LFS_MARK: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Files with other extensions are read only with `disable_extension_filter`.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "jsonnet"];

/// Deepest nesting of directories.
const MAX_DEPTH: usize = 64;

/// Most entries that are listed, per file that may be selected.
const SEEN_PER_FILE: usize = 4;

/// A selected file, with its path below the app's directory and the path that links lead to.
struct DirectoryFile {
    path: RepoPath,
    real: RepoPath,
    hash: String,
}

impl DirectoryFile {
    fn is_jsonnet(&self) -> bool {
        extension(&self.path) == Some("jsonnet")
    }
}

/// The files of the directory that are rendered, in order of their paths.
fn select(
    files: &dyn SourceFiles,
    directory: &RepoPath,
    options: &DirectoryOptions,
    limits: &Limits,
) -> Result<Vec<DirectoryFile>, RenderError> {
    let glob = |pattern: &Option<String>, option| match pattern.as_deref().filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => Glob::plain(text)
            .map(Some)
            .map_err(|error| RenderError::Option { option, reason: error.to_string() }),
    };
    let mut selection = Selection {
        files,
        root: directory,
        recurse: options.recurse,
        include: glob(&options.include, "directory.include")?,
        exclude: glob(&options.exclude, "directory.exclude")?,
        all_extensions: options.disable_extension_filter,
        max_files: limits.export_files,
        n_seen: 0,
        found: Vec::new(),
    };
    selection.walk(directory, &mut Vec::new())?;
    Ok(selection.found)
}

struct Selection<'a> {
    files: &'a dyn SourceFiles,
    root: &'a RepoPath,
    recurse: bool,
    include: Option<Glob>,
    exclude: Option<Glob>,
    all_extensions: bool,
    max_files: usize,
    /// Entries that were listed, selected or not.
    n_seen: usize,
    found: Vec<DirectoryFile>,
}

impl Selection<'_> {
    /// `above` are the directories that contain this one. Links to directories are not followed.
    fn walk(&mut self, directory: &RepoPath, above: &mut Vec<RepoPath>) -> Result<(), RenderError> {
        if above.len() > MAX_DEPTH {
            let what = format!("depth of directory `{directory}`");
            return Err(RenderError::Limit { what, limit: MAX_DEPTH as u64 });
        }
        let entries =
            self.files.list(directory).map_err(RenderError::read(format!("directory `{directory}`")))?;
        for entry in entries {
            let path = directory.child(&entry.name);
            // A crafted Git tree can refer to the same subtree a billion times and stay small.
            self.n_seen += 1;
            if self.n_seen > self.max_files.saturating_mul(SEEN_PER_FILE) {
                let what = format!("number of files and directories in `{}`", self.root);
                let limit = self.max_files.saturating_mul(SEEN_PER_FILE) as u64;
                return Err(RenderError::Limit { what, limit });
            }
            match entry.kind {
                EntryKind::Directory if self.recurse => {
                    above.push(directory.clone());
                    self.walk(&path, above)?;
                    above.pop();
                }
                EntryKind::File | EntryKind::Executable if self.counts(&path) => {
                    self.push(DirectoryFile { real: path.clone(), path, hash: entry.hash })?;
                }
                EntryKind::Link if self.counts(&path) => match follow(self.files, &path) {
                    Ok((real, EntryKind::File | EntryKind::Executable)) => {
                        let target =
                            self.files.entry(&real).map_err(RenderError::read(format!("`{real}`")))?;
                        let hash = target.map(|entry| entry.hash).unwrap_or_default();
                        self.push(DirectoryFile { path, real, hash })?;
                    }
                    Ok(_) | Err(SourceError::NotFound { .. }) => {}
                    Err(source) => return Err(RenderError::Read { what: format!("`{path}`"), source }),
                },
                EntryKind::Directory
                | EntryKind::File
                | EntryKind::Executable
                | EntryKind::Link
                | EntryKind::Submodule => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, file: DirectoryFile) -> Result<(), RenderError> {
        if self.found.len() >= self.max_files {
            let what = format!("number of files in `{}`", self.root);
            return Err(RenderError::Limit { what, limit: self.max_files as u64 });
        }
        self.found.push(file);
        Ok(())
    }

    fn counts(&self, path: &RepoPath) -> bool {
        // A file with options of the source, not a manifest.
        if path.name().starts_with(".argocd-source") {
            return false;
        }
        let relative = path.below(self.root).unwrap_or_default();
        let has_extension = extension(path).is_some_and(|text| EXTENSIONS.contains(&text));
        (has_extension || self.all_extensions)
            && !self.exclude.as_ref().is_some_and(|glob| glob.matches(relative))
            && self.include.as_ref().is_none_or(|glob| glob.matches(relative))
    }
}

/// The selected files of a directory.
pub(crate) struct DirectoryPlan {
    files: Vec<DirectoryFile>,
    /// How the Jsonnet files among them are evaluated; `None` if there are none, or if Jsonnet is disabled.
    jsonnet: Option<JsonnetPlan>,
}

/// Selects the files to read.
pub(crate) fn plan(
    input: &PlanInput<'_>,
    options: &DirectoryOptions,
    set: &mut ReadSet,
) -> Result<DirectoryPlan, RenderError> {
    let PlanInput { request, path, environment, limits, .. } = *input;
    let files = select(request.files.as_ref(), path, options, limits)?;
    let programs = programs(&files);
    let jsonnet = if programs.is_empty() || !request.settings.jsonnet {
        None
    } else {
        Some(jsonnet::plan(path, options, &programs, environment, set)?)
    };
    Ok(DirectoryPlan { files, jsonnet })
}

fn programs(files: &[DirectoryFile]) -> Vec<RepoPath> {
    files.iter().filter(|file| file.is_jsonnet()).map(|file| file.path.clone()).collect()
}

impl DirectoryPlan {
    /// True if a tool runs.
    pub(crate) fn runs_jsonnet(&self) -> bool {
        self.jsonnet.is_some()
    }

    /// Everything that the result depends on, apart from what Jsonnet imports.
    pub(crate) fn parameters(&self) -> String {
        let files: Vec<_> = self.files.iter().map(|file| (file.path.as_str(), file.hash.as_str())).collect();
        format!("{files:?} {:?}", self.jsonnet.as_ref().map(JsonnetPlan::parameters))
    }

    /// The manifests of the files, in order.
    pub(crate) fn render(
        &self,
        request: &RenderRequest,
        set: &ReadSet,
        context: &RunContext<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = context.limits;
        let mut evaluated = match &self.jsonnet {
            None => Vec::new(),
            Some(plan) => plan.render(&programs(&self.files), request, set, context)?,
        }
        .into_iter();
        let mut manifests = Vec::new();
        let mut n_bytes = 0;
        let mut left = limits.clone();
        for file in &self.files {
            if file.is_jsonnet() && self.jsonnet.is_some() {
                manifests.extend(evaluated.next().unwrap_or_default());
            } else {
                let text =
                    request.files.read(&file.real).map_err(RenderError::read(format!("`{}`", file.path)))?;
                n_bytes += text.len();
                if n_bytes > limits.directory_bytes {
                    let what = format!("size of all manifests, at `{}`,", file.path);
                    return Err(RenderError::Limit { what, limit: limits.directory_bytes as u64 });
                }
                (context.before_reading)(n_bytes);
                let read = manifests_of(&text, &file.path, request.index, &left)?;
                left.yaml.max_memory = left.yaml.max_memory.saturating_sub(read.memory);
                manifests.extend(read.manifests);
            }
            if manifests.len() > limits.objects {
                let what = format!("number of objects, at `{}`,", file.path);
                return Err(RenderError::Limit { what, limit: limits.objects as u64 });
            }
        }
        Ok(manifests)
    }
}

fn manifests_of(
    text: &[u8],
    path: &RepoPath,
    index: usize,
    limits: &Limits,
) -> Result<ReadManifests, RenderError> {
    if contains(text, SKIP_MARK) {
        return Ok(ReadManifests::default());
    }
    if text.starts_with(LFS_MARK) {
        let reason = "it is a Git LFS pointer, and the content is not in the repository".to_owned();
        return Err(RenderError::Refused { file: path.clone(), reason });
    }
    if extension(path) == Some("json") {
        return parse::json_document(text, path, index, limits);
    }
    let read = parse::yaml_documents(text, path, index, limits);
    let passed_over = match &read {
        Ok(read) => is_unrelated(text, Some(&read.values())),
        Err(RenderError::Yaml { .. }) => is_unrelated(text, None),
        Err(_) => false,
    };
    if !passed_over {
        return read;
    }
    let passed_over = RenderedManifest::passed_over(index, path.as_str().to_owned());
    Ok(ReadManifests { manifests: vec![passed_over], memory: 0 })
}

fn extension(path: &RepoPath) -> Option<&str> {
    path.name().rsplit_once('.').map(|(_, extension)| extension)
}
