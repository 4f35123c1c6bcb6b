//! Finds value files, by path or by pattern.

use plumb_core::app::HelmOptions;
use plumb_core::glob::Glob;
use plumb_core::secrets::{is_sops, sops_message};
use plumb_core::source::{EntryKind, RepoPath, SourceError, SourceFiles, follow};
use plumb_core::yaml::{Limits, parse_documents_bytes};

use crate::build_env::BuildEnvironment;
use crate::error::RenderError;
use crate::read_set::{ReadSet, SourceFile, check_depth};
use crate::request::RenderRequest;
use crate::unrelated_file::contains;

/// Most files that a pattern may search.
const MAX_SEARCHED: usize = 50_000;

/// The files of `valueFiles` in order, added to the set. A pattern is replaced with the files that it matches, in order
/// of their paths, without files that are also listed by name or matched by an earlier pattern.
pub(super) fn value_files(
    request: &RenderRequest,
    chart: &RepoPath,
    options: &HelmOptions,
    environment: &BuildEnvironment,
    set: &mut ReadSet,
) -> Result<Vec<SourceFile>, RenderError> {
    let mut entries = Vec::with_capacity(options.value_files.len());
    for written in &options.value_files {
        entries.push((written, locate(request, chart, written, environment, "helm.valueFiles")?));
    }
    let named: Vec<SourceFile> =
        entries.iter().map(|(_, file)| file).filter(|file| !is_pattern(file)).cloned().collect();
    let mut files: Vec<SourceFile> = Vec::new();
    for (written, file) in entries {
        let failed = |source| RenderError::Read { what: format!("value file `{written}`"), source };
        let not_found = || SourceError::NotFound { path: file.path.clone() };
        let source = set.files(&file.source).cloned().ok_or_else(|| failed(not_found()))?;
        let exists =
            matches!(follow(source.as_ref(), &file.path), Ok((_, EntryKind::File | EntryKind::Executable)));
        if is_pattern(&file) && !exists {
            let matched = search(source.as_ref(), &file)?;
            if matched.is_empty() && !options.ignore_missing_value_files {
                let reason = format!("values file glob {written:?} matched no files");
                return Err(RenderError::Option { option: "helm.valueFiles", reason });
            }
            for found in matched {
                if !named.contains(&found) && !files.contains(&found) {
                    set.add(&found.source, &found.path, &format!("value file `{}`", found.path))?;
                    refuse_sops(source.as_ref(), &found.path)?;
                    files.push(found);
                }
            }
            continue;
        }
        match follow(source.as_ref(), &file.path) {
            Ok((_, EntryKind::File | EntryKind::Executable)) => {
                set.add(&file.source, &file.path, &format!("value file `{written}`"))?;
                refuse_sops(source.as_ref(), &file.path)?;
                files.push(file);
            }
            Ok(_) => return Err(failed(SourceError::NotAFile { path: file.path })),
            Err(SourceError::NotFound { .. }) if options.ignore_missing_value_files => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(files)
}

/// The chart's own values must not be ciphertext either: Helm reads them without being told.
pub(super) fn refuse_own_sops(request: &RenderRequest, chart: &RepoPath) -> Result<(), RenderError> {
    refuse_sops(request.files.as_ref(), &chart.child("values.yaml"))
}

/// Helm would take ciphertext for values. A file that cannot be read is left to Helm, which says why.
fn refuse_sops(files: &dyn SourceFiles, path: &RepoPath) -> Result<(), RenderError> {
    let Ok((real, _)) = follow(files, path) else { return Ok(()) };
    let Some(text) = files.read(&real).ok().filter(|text| contains(text, b"sops")) else { return Ok(()) };
    let documents = parse_documents_bytes(&text, &Limits::default()).unwrap_or_default();
    match documents.iter().find(|document| is_sops(&document.value)) {
        Some(document) => {
            let reason = sops_message("the value file", &document.value);
            Err(RenderError::Refused { file: path.clone(), reason })
        }
        None => Ok(()),
    }
}

fn is_pattern(file: &SourceFile) -> bool {
    file.path.as_str().contains(['*', '?', '['])
}

/// The files that a pattern matches, in order of their paths. `**` matches any number of directories.
fn search(files: &dyn SourceFiles, pattern: &SourceFile) -> Result<Vec<SourceFile>, RenderError> {
    let failed = |source| RenderError::Read { what: format!("value files `{}`", pattern.path), source };
    let mut start = RepoPath::root();
    for step in pattern.path.components().take_while(|step| !step.contains(['*', '?', '['])) {
        start = start.child(step);
    }
    let globs: Vec<Glob> =
        spellings(pattern.path.as_str()).iter().filter_map(|text| Glob::url(text).ok()).collect();
    let mut found = Vec::new();
    let mut n_searched = 0;
    let mut waiting = match files.kind(&start).map_err(failed)? {
        Some(EntryKind::Directory) => vec![start],
        _ => Vec::new(),
    };
    while let Some(directory) = waiting.pop() {
        check_depth(&directory)?;
        for entry in files.list(&directory).map_err(failed)? {
            n_searched += 1;
            let path = directory.child(&entry.name);
            if n_searched > MAX_SEARCHED {
                let what = format!("number of files that `{}` looks at", pattern.path);
                return Err(RenderError::Limit { what, limit: MAX_SEARCHED as u64 });
            }
            match entry.kind {
                EntryKind::Directory => waiting.push(path),
                EntryKind::File | EntryKind::Executable | EntryKind::Link => {
                    if globs.iter().any(|glob| glob.matches(path.as_str())) {
                        found.push(SourceFile { source: pattern.source.clone(), path });
                    }
                }
                EntryKind::Submodule => {}
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// `a/**/b` also matches `a/b`: all combinations of omitted `**` steps.
fn spellings(pattern: &str) -> Vec<String> {
    const MOST: usize = 4;
    let parts: Vec<&str> = pattern.split("**/").collect();
    let n_steps = (parts.len() - 1).min(MOST);
    (0..1_usize << n_steps)
        .map(|choice| {
            let mut text = String::new();
            for (index, part) in parts.iter().enumerate() {
                text.push_str(part);
                let is_left_out = index < n_steps && choice >> index & 1 == 1;
                if index + 1 < parts.len() && !is_left_out {
                    text.push_str("**/");
                }
            }
            text
        })
        .collect()
}

/// `values.yaml` beside the chart, `/values.yaml` from the repository's root, `$ref/values.yaml` from another
/// source's root. Names of sources take precedence over variables of the build environment.
pub(super) fn locate(
    request: &RenderRequest,
    chart: &RepoPath,
    written: &str,
    environment: &BuildEnvironment,
    option: &'static str,
) -> Result<SourceFile, RenderError> {
    let bad = |reason: String| RenderError::Option { option, reason };
    if let Some(rest) = written.strip_prefix('$') {
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        if request.refs.contains_key(name) {
            let path = environment.expand(path);
            let path =
                RepoPath::parse(path.trim_start_matches('/')).map_err(|error| bad(error.to_string()))?;
            return Ok(SourceFile { source: name.to_owned(), path });
        }
        let is_variable = name.starts_with(['{', '$']) || environment.has(name);
        if !is_variable {
            return Err(bad(format!("`{written}`: no source of this app has `ref: {name}`")));
        }
    }
    let written = environment.expand(written);
    if written.contains("://") {
        let reason = format!(
            "`{written}`: files from the network are not supported; put the file into the repository"
        );
        return Err(bad(reason));
    }
    let path = match written.strip_prefix('/') {
        Some(from_root) => RepoPath::parse(from_root.trim_start_matches('/')),
        None => chart.join(&written),
    };
    let path = path.map_err(|error| bad(error.to_string()))?;
    Ok(SourceFile { source: String::new(), path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_files::MemoryFiles;

    #[test]
    fn patterns_match_at_any_depth() {
        let paths = ["env/a.yaml", "env/b.yml", "env/eu/c.yaml", "env/eu/west/d.yaml", "other/e.yaml"];
        let files = MemoryFiles::new(paths.map(|path| (RepoPath::parse(path).unwrap(), Vec::new())));
        let check = |pattern: &str, expected: &[&str]| {
            let pattern = SourceFile { source: String::new(), path: RepoPath::parse(pattern).unwrap() };
            let found = search(&files, &pattern).unwrap();
            let found: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(found, expected, "{}", pattern.path);
        };
        check("env/*.yaml", &["env/a.yaml"]);
        check("env/**/*.yaml", &["env/a.yaml", "env/eu/c.yaml", "env/eu/west/d.yaml"]);
        check("**/e.yaml", &["other/e.yaml"]);
        check("env/?.y*ml", &["env/a.yaml", "env/b.yml"]);
        check("env/[ab].*", &["env/a.yaml", "env/b.yml"]);
        check("nowhere/*.yaml", &[]);
    }
}
