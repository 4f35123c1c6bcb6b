//! Plain manifests.

use plumb_core::app::DirectoryOptions;
use plumb_core::desired::RenderedManifest;
use plumb_core::glob::Glob;
use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};

use crate::jsonnet::{self, JsonnetPlan};
use crate::readset::ReadSet;
use crate::sandbox::Workshop;
use crate::{BuildEnvironment, Limits, RenderError, RenderRequest, parse};

/// A file that contains this is left out.
const SKIP_MARK: &[u8] = b"+argocd:skip-file-rendering";

/// How a file starts whose content Git LFS keeps elsewhere.
const LFS_MARK: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Files of other extensions count only when they are asked for.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "jsonnet"];

/// Directories may nest so deep.
const MAX_DEPTH: usize = 64;

/// So many entries may be looked at for each file that may count.
const SEEN_PER_FILE: usize = 4;

/// A file that counts, with its path as seen from the app's directory and where it really is.
pub(crate) struct DirectoryFile {
    pub(crate) path: RepoPath,
    pub(crate) real: RepoPath,
    pub(crate) hash: String,
}

impl DirectoryFile {
    fn is_jsonnet(&self) -> bool {
        extension(&self.path) == Some("jsonnet")
    }
}

/// The files of the directory that count, in order of their paths.
pub(crate) fn select(
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
    /// Entries that were looked at, whether or not they count.
    n_seen: usize,
    found: Vec<DirectoryFile>,
}

impl Selection<'_> {
    /// `above` are the directories the walk is in: a directory cannot contain itself, and Git has no links to
    /// directories that the walk would follow.
    fn walk(&mut self, directory: &RepoPath, above: &mut Vec<RepoPath>) -> Result<(), RenderError> {
        if above.len() > MAX_DEPTH {
            let what = format!("depth of directory `{directory}`");
            return Err(RenderError::Limit { what, limit: MAX_DEPTH as u64 });
        }
        let entries =
            self.files.list(directory).map_err(RenderError::read(format!("directory `{directory}`")))?;
        for entry in entries {
            let path = directory.child(&entry.name);
            // A tree may contain itself a billion times by its hash, and take no room.
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
        // Options of the source itself, not one of its objects.
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

/// A directory whose files are selected.
pub(crate) struct DirectoryPlan {
    files: Vec<DirectoryFile>,
    /// How the Jsonnet files among them are evaluated; `None` if there are none, or they count as plain files.
    jsonnet: Option<JsonnetPlan>,
}

/// Settles which files are read.
pub(crate) fn plan(
    request: &RenderRequest,
    directory: &RepoPath,
    options: &DirectoryOptions,
    environment: &BuildEnvironment,
    set: &mut ReadSet,
    limits: &Limits,
) -> Result<DirectoryPlan, RenderError> {
    let files = select(request.files.as_ref(), directory, options, limits)?;
    let programs = programs(&files);
    let jsonnet = if programs.is_empty() || !request.settings.jsonnet {
        None
    } else {
        Some(jsonnet::plan(directory, options, &programs, environment, set)?)
    };
    Ok(DirectoryPlan { files, jsonnet })
}

fn programs(files: &[DirectoryFile]) -> Vec<RepoPath> {
    files.iter().filter(|file| file.is_jsonnet()).map(|file| file.path.clone()).collect()
}

impl DirectoryPlan {
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
        workshop: &Workshop<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = workshop.limits;
        let mut evaluated = match &self.jsonnet {
            None => Vec::new(),
            Some(plan) => plan.render(&programs(&self.files), request, set, workshop)?,
        }
        .into_iter();
        let mut manifests = Vec::new();
        let mut n_bytes = 0;
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
                manifests.extend(manifests_of(&text, &file.path, request.index, limits)?);
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
) -> Result<Vec<RenderedManifest>, RenderError> {
    if contains(text, SKIP_MARK) {
        return Ok(Vec::new());
    }
    if text.starts_with(LFS_MARK) {
        let reason = "it is a Git LFS pointer, and the file itself is not in the repository".to_owned();
        return Err(RenderError::Refused { file: path.clone(), reason });
    }
    if extension(path) == Some("json") {
        return Ok(vec![parse::json_document(text, path, index)?]);
    }
    match parse::yaml_documents(text, path, index, limits) {
        // Templates and the like that happen to be YAML by name; what looks like a manifest has to be one.
        Err(RenderError::Yaml { .. })
            if ![&b"apiVersion:"[..], b"kind:", b"metadata:"].iter().any(|word| contains(text, word)) =>
        {
            Ok(Vec::new())
        }
        result => result,
    }
}

fn extension(path: &RepoPath) -> Option<&str> {
    path.name().rsplit_once('.').map(|(_, extension)| extension)
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}
