//! `git`: directories or files of a repository.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::yaml::{Limits, parse_first};
use plumb_crd::application_set::{GitGenerator, GitPath};
use plumb_gotemplate::normalize;
use serde_json::Value as Json;

use super::entry::Context;
use super::list::json_type;
use super::values;
use crate::error::GenerationError;
use crate::facts::{GitTree, Linked};
use crate::glob::{Dialect, Glob};
use crate::params::{Data, Params, flattened};

pub(super) fn params(
    context: &Context<'_>,
    generator: &GitGenerator,
) -> Result<Vec<Params>, GenerationError> {
    // As in Argo CD: the project of the set's own template, whatever a template of the generator says.
    let project = context.set.spec.template.spec.project.as_str();
    if !project.contains("{{") {
        context.facts.project(project).map_err(|error| {
            GenerationError::from(error).during(&format!("error getting project {project}"))
        })?;
    }
    if generator.directories.is_empty() && generator.files.is_empty() {
        return Err(GenerationError::generation("ApplicationSet is empty"));
    }
    let project = Some(project).filter(|project| !project.contains("{{"));
    let during = |what: &str, error| {
        GenerationError::from(error).during(&format!("error generating params from git: {what}"))
    };
    if generator.directories.is_empty() {
        let tree = context.facts.git(project, &generator.repo_url, &generator.revision);
        let tree = tree.map_err(|error| during("error retrieving Git files", error))?;
        return files(context, generator, project, tree)
            .map_err(|error| error.during("error generating params from git"));
    }
    let tree = context.facts.git(project, &generator.repo_url, &generator.revision);
    let tree = tree.map_err(|error| during("error getting directories from repo", error))?;
    directories(context, generator, tree).map_err(|error| error.during("error generating params from git"))
}

/// The patterns of a generator: those that include, and those that exclude.
struct Patterns {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
}

impl Patterns {
    fn new(
        context: &Context<'_>,
        dialect: Dialect,
        repo: &str,
        paths: &[GitPath],
    ) -> Result<Self, GenerationError> {
        let mut patterns = Self { include: Vec::new(), exclude: Vec::new() };
        for path in paths {
            let glob = Glob::new(dialect, &path.path).map_err(|why| cannot_list(repo, &path.path, &why))?;
            context.renderer.budget.allocate(glob.bytes()).map_err(GenerationError::generation)?;
            if path.exclude { &mut patterns.exclude } else { &mut patterns.include }.push(glob);
        }
        Ok(patterns)
    }

    fn pay(&self, context: &Context<'_>, path: &str) -> Result<(), GenerationError> {
        let all = self.include.iter().chain(&self.exclude);
        let cost = all.map(|glob| glob.cost(path.len())).fold(0, u64::saturating_add);
        context.renderer.budget.step(cost).map_err(GenerationError::generation)
    }

    fn choose(&self, context: &Context<'_>, path: &str) -> Result<bool, GenerationError> {
        self.pay(context, path)?;
        let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(path));
        Ok(matches(&self.include) && !matches(&self.exclude))
    }

    /// Fails for a pattern that matches a directory: Argo CD reads what matches as a file.
    fn check_directories(
        &self,
        context: &Context<'_>,
        generator: &GitGenerator,
        tree: &GitTree,
    ) -> Result<(), GenerationError> {
        for directory in directories_of(tree).into_iter().chain(["", ".git"]) {
            self.pay(context, directory)?;
            if !self.include.iter().chain(&self.exclude).any(|glob| glob.matches_directory(directory)) {
                continue;
            }
            let shown = if directory.is_empty() { "." } else { directory };
            let pattern = generator.files.iter().find(|path| {
                Glob::new(Dialect::Doublestar, &path.path).is_ok_and(|glob| glob.matches_directory(directory))
            });
            let pattern = pattern.map_or("", |path| &path.path);
            let why = format!("{shown} is a directory; write a pattern that matches files only");
            return Err(cannot_list(&generator.repo_url, pattern, &why));
        }
        Ok(())
    }
}

fn cannot_list(repo: &str, pattern: &str, why: &str) -> GenerationError {
    GenerationError::generation(format!(
        "error retrieving Git files: unable to list files. repo {repo} pattern {pattern}: {why}"
    ))
}

/// All directories but the root.
fn directories_of(tree: &GitTree) -> BTreeSet<&str> {
    let paths = tree.files.keys().chain(tree.symlinks.keys());
    paths.flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at])).collect()
}

fn directories(
    context: &Context<'_>,
    generator: &GitGenerator,
    tree: &GitTree,
) -> Result<Vec<Params>, GenerationError> {
    let is_hidden = |path: &str| path.split('/').any(|segment| segment.starts_with('.'));
    let patterns = Patterns::new(context, Dialect::GoPath, &generator.repo_url, &generator.directories)?;
    let mut sets = Vec::new();
    for path in directories_of(tree) {
        if (is_hidden(path) && !context.include_hidden_directories) || !patterns.choose(context, path)? {
            continue;
        }
        let mut params = Params::new();
        add_path(context.is_go(), generator, path, None, &mut params);
        values::append(context, &generator.values, &mut params)
            .map_err(|error| error.during("failed to append templated values"))?;
        sets.push(params);
    }
    Ok(sets)
}

fn files(
    context: &Context<'_>,
    generator: &GitGenerator,
    project: Option<&str>,
    tree: &GitTree,
) -> Result<Vec<Params>, GenerationError> {
    let dialect = if context.new_git_file_globbing { Dialect::Doublestar } else { Dialect::Pathspec };
    let patterns = Patterns::new(context, dialect, &generator.repo_url, &generator.files)?;
    if dialect == Dialect::Doublestar {
        patterns.check_directories(context, generator, tree)?;
    }
    let mut sets = Vec::new();
    let paths: BTreeSet<&String> = tree.files.keys().chain(tree.symlinks.keys()).collect();
    for path in paths {
        if !patterns.choose(context, path)? {
            continue;
        }
        let repo = &generator.repo_url;
        let during = |error: GenerationError| {
            error.during(&format!("unable to process file '{path}' from repository '{repo}'"))
        };
        let file = match tree.follow(path) {
            Linked::File(path) => path,
            Linked::Outside => continue,
            Linked::Nowhere => return Err(during(GenerationError::generation("the link leads to no file"))),
        };
        let text = context.facts.git_file(project, repo, &generator.revision, &file);
        let text = text.map_err(|error| during(error.into()))?;
        for object in read(&text).map_err(|error| during(GenerationError::generation(error)))? {
            sets.push(of_object(context, generator, path, &object).map_err(during)?);
        }
    }
    Ok(sets)
}

/// The parameters of one object of a file.
fn of_object(
    context: &Context<'_>,
    generator: &GitGenerator,
    path: &str,
    object: &serde_json::Map<String, Json>,
) -> Result<Params, GenerationError> {
    let params: Params = object.iter().map(|(key, value)| (key.clone(), Data::from_json(value))).collect();
    let mut params = if context.is_go() { params } else { flattened(&params) };
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    add_path(context.is_go(), generator, folder, Some(name), &mut params);
    values::append(context, &generator.values, &mut params)
        .map_err(|error| error.during("failed to append templated values"))?;
    Ok(params)
}

/// What a file of parameters may cost.
const FILE_LIMITS: Limits =
    Limits { max_bytes: 4 << 20, max_depth: 100, max_alias_bytes: 4 << 20, max_memory: 64 << 20 };

/// One object, or a list of objects. An empty file is one object without fields.
fn read(content: &str) -> Result<Vec<serde_json::Map<String, Json>>, String> {
    let failed = |reason: String| format!("unable to parse file: {reason}");
    let document = parse_first(content, &FILE_LIMITS);
    let document =
        document.map_err(|error| failed(format!("error converting YAML to JSON: yaml: {error}")))?;
    let wrong = |found: &Json, expected: &str| {
        let found = json_type(found);
        let reason = format!("json: cannot unmarshal {found} into Go value of type {expected}");
        failed(format!("error unmarshaling JSON: while decoding JSON: {reason}"))
    };
    match document.map(|document| document.value) {
        None | Some(Json::Null) => Ok(vec![serde_json::Map::new()]),
        Some(Json::Object(map)) => Ok(vec![map]),
        Some(Json::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Json::Object(map) => Ok(map),
                Json::Null => Ok(serde_json::Map::new()),
                other => Err(wrong(&other, "map[string]interface {}")),
            })
            .collect(),
        Some(other) => Err(wrong(&other, "[]map[string]interface {}")),
    }
}

/// The parameters of a path: `path`, `path.basename`, …; they replace equal keys of the file.
fn add_path(is_go: bool, generator: &GitGenerator, folder: &str, file: Option<&str>, params: &mut Params) {
    let segments: Vec<String> = folder.split('/').map(str::to_owned).collect();
    let basename = segments.last().cloned().unwrap_or_default();
    let prefix = &generator.path_param_prefix;
    let mut parts = vec![
        ("path", folder.to_owned()),
        ("basename", basename.clone()),
        ("basenameNormalized", normalize(&basename)),
    ];
    if let Some(file) = file {
        parts.push(("filename", file.to_owned()));
        parts.push(("filenameNormalized", normalize(file)));
    }
    if is_go {
        let mut path: BTreeMap<String, Data> =
            parts.into_iter().map(|(key, text)| (key.to_owned(), Data::Text(text))).collect();
        path.insert("segments".to_owned(), Data::Texts(segments));
        if prefix.is_empty() {
            params.insert("path".to_owned(), Data::Map(path));
        } else {
            let inner = BTreeMap::from([("path".to_owned(), Data::Map(path))]);
            params.insert(prefix.clone(), Data::Map(inner));
        }
        return;
    }
    let root = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
    for (key, text) in parts {
        let key = if key == "path" { root.clone() } else { format!("{root}.{key}") };
        params.insert(key, Data::Text(text));
    }
    for (index, segment) in segments.into_iter().enumerate().filter(|(_, segment)| !segment.is_empty()) {
        params.insert(format!("{root}[{index}]"), Data::Text(segment));
    }
}
