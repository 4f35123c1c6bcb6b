//! Helm charts, by the real program.

pub(crate) mod now;
mod values;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use plumb_core::app::HelmOptions;
use plumb_core::desired::{Origin, RenderedManifest};
use plumb_core::source::RepoPath;

use crate::readset::ReadSet;
use crate::sandbox::{Run, Scratch, Workshop, flag};
use crate::{BuildEnvironment, Limits, RenderError, RenderRequest, charts, export, parse};

/// A chart with everything that `helm template` is given, settled before anything runs.
pub(crate) struct HelmPlan {
    chart: RepoPath,
    release: String,
    namespace: String,
    kube_version: Option<String>,
    api_versions: Vec<String>,
    value_files: Vec<SourceFile>,
    inline_values: Option<String>,
    set: Vec<String>,
    set_string: Vec<String>,
    set_file: Vec<(String, SourceFile)>,
    skip_crds: bool,
    skip_tests: bool,
    skip_schema_validation: bool,
    /// Charts that `charts/` lacks: the directory there, and where their files are in the set.
    dependencies: Vec<(String, SourceFile)>,
}

/// A file of the main source (empty name) or of one that is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) source: String,
    pub(crate) path: RepoPath,
}

impl SourceFile {
    fn on_disk(&self, scratch: &Path) -> PathBuf {
        source_root(scratch, &self.source).join(self.path.as_str())
    }
}

/// Where a source's files are written. Names of sources are checked, so they are safe as names of directories.
fn source_root(scratch: &Path, source: &str) -> PathBuf {
    if source.is_empty() { scratch.join("repo") } else { scratch.join("ref").join(source) }
}

/// Settles what is read and how Helm is called.
pub(crate) fn plan(
    request: &RenderRequest,
    chart: &RepoPath,
    options: &HelmOptions,
    environment: &BuildEnvironment,
    set: &mut ReadSet,
    limits: &Limits,
) -> Result<HelmPlan, RenderError> {
    for (name, files) in &request.refs {
        set.add_source(name, std::sync::Arc::clone(files));
    }
    set.add("", chart, &format!("chart `{chart}`"))?;
    let mut plan = HelmPlan {
        chart: chart.clone(),
        release: options
            .release_name
            .clone()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| request.app.name.clone()),
        namespace: options
            .namespace
            .clone()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| request.app.namespace.clone()),
        kube_version: options
            .kube_version
            .clone()
            .filter(|version| !version.is_empty())
            .or_else(|| request.cluster.kube_version.clone())
            .map(|version| plain_version(&version)),
        api_versions: if options.api_versions.is_empty() {
            request.cluster.api_versions.to_vec()
        } else {
            options.api_versions.clone()
        },
        value_files: Vec::new(),
        inline_values: inline_values(options),
        set: Vec::new(),
        set_string: Vec::new(),
        set_file: Vec::new(),
        skip_crds: options.skip_crds,
        skip_tests: options.skip_tests,
        skip_schema_validation: options.skip_schema_validation,
        dependencies: dependencies(request, chart, set, limits)?,
    };
    for parameter in &options.parameters {
        let text = format!("{}={}", parameter.name, escape_commas(&environment.expand(&parameter.value)));
        if parameter.force_string { plan.set_string.push(text) } else { plan.set.push(text) }
    }
    for parameter in &options.file_parameters {
        if !is_one_key(&parameter.name) {
            let reason = format!("`{}` is not the name of one value", parameter.name);
            return Err(RenderError::Option { option: "helm.fileParameters", reason });
        }
        let file = values::locate(request, chart, &parameter.path, environment, "helm.fileParameters")?;
        set.add(&file.source, &file.path, &format!("file `{}` of helm.fileParameters", parameter.path))?;
        plan.set_file.push((parameter.name.clone(), file));
    }
    plan.value_files = values::value_files(request, chart, options, environment, set)?;
    Ok(plan)
}

/// The charts that this one depends on and does not bring along: from the same repository, or fetched before.
fn dependencies(
    request: &RenderRequest,
    chart: &RepoPath,
    set: &mut ReadSet,
    limits: &Limits,
) -> Result<Vec<(String, SourceFile)>, RenderError> {
    let mut found = Vec::new();
    for (index, dependency) in
        charts::missing_dependencies(request.files.as_ref(), chart, limits)?.into_iter().enumerate()
    {
        let name = dependency.name.clone();
        let definition = chart.child("Chart.yaml");
        let refused = |reason: String| RenderError::Refused { file: definition.clone(), reason };
        if name.contains('/') || name.starts_with('.') {
            return Err(refused(format!("dependency `{name}` is not a valid name")));
        }
        let file = if let Some(local) = dependency.local_directory(chart) {
            let path = local.map_err(|error| refused(format!("dependency `{name}`: {error}")))?;
            SourceFile { source: String::new(), path }
        } else if let Some(fetched) = request.chart_dependencies.get(&dependency) {
            // A name that no reference of an Application can have.
            let source = format!("chart {name} {index}");
            set.add_source(&source, std::sync::Arc::clone(fetched));
            SourceFile { source, path: RepoPath::root() }
        } else {
            return Err(refused(format!(
                "dependency `{name}` {} of {} is not in `charts/` and was not fetched",
                dependency.version, dependency.repository
            )));
        };
        set.add(&file.source, &file.path, &format!("dependency `{name}`"))?;
        // Two versions of one chart need two directories; to Helm their names mean nothing.
        found.push((format!("{name}-{index}"), file));
    }
    Ok(found)
}

impl HelmPlan {
    /// Everything but the files, for the key of the cache.
    pub(crate) fn parameters(&self) -> String {
        format!(
            "{:?}",
            (
                (&self.chart, &self.release, &self.namespace, &self.kube_version, &self.api_versions),
                (&self.value_files, &self.inline_values, &self.set, &self.set_string, &self.set_file),
                (self.skip_crds, self.skip_tests, self.skip_schema_validation, &self.dependencies),
            )
        )
    }

    /// Runs Helm on the files of the set.
    pub(crate) fn render(
        &self,
        request: &RenderRequest,
        set: &ReadSet,
        workshop: &Workshop<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = workshop.limits;
        let scratch = workshop.scratch()?;
        export::export(set, "", &scratch.repository(), limits)?;
        for (dependency, from) in &self.dependencies {
            let target = scratch.repository().join(self.chart.as_str()).join("charts").join(dependency);
            export::export_directory(set, from, &target, limits)?;
        }
        let chart = scratch.repository().join(self.chart.as_str());
        workshop.clock.set_in_charts(&chart, limits)?;
        for name in request.refs.keys() {
            export::export(set, name, &source_root(scratch.path(), name), limits)?;
        }
        let run = Run {
            program: &workshop.tools.helm,
            arguments: self.arguments(&scratch)?,
            directory: &chart,
            environment: environment(scratch.path()),
            helper: None,
            scratch: scratch.path(),
            network: false,
            limits,
        };
        let output = workshop.sandbox.run(&run).map_err(|source| RenderError::Tool {
            tool: "helm template",
            path: self.chart.clone(),
            source,
        })?;
        let origins = Origins::read(&output, &self.chart, request.index);
        parse::tool_output(&output, "helm template", limits, |line| origins.at(line))
    }

    fn arguments(&self, scratch: &Scratch) -> Result<Vec<OsString>, RenderError> {
        let mut arguments: Vec<OsString> =
            vec!["template".into(), ".".into(), flag("name-template", &self.release)];
        if !self.namespace.is_empty() {
            arguments.push(flag("namespace", &self.namespace));
        }
        if let Some(version) = &self.kube_version {
            arguments.push(flag("kube-version", version));
        }
        arguments.extend(self.set.iter().map(|text| flag("set", text)));
        arguments.extend(self.set_string.iter().map(|text| flag("set-string", text)));
        for (name, file) in &self.set_file {
            let mut text = OsString::from(format!("{name}="));
            text.push(escaped(&file.on_disk(scratch.path()), b",\\"));
            arguments.push(flag("set-file", text));
        }
        let value_files = self.value_files.iter().map(|file| file.on_disk(scratch.path()));
        arguments.extend(value_files.map(|file| flag("values", comma_field(file))));
        if let Some(values) = &self.inline_values {
            let path = scratch.path().join("values.yaml");
            std::fs::write(&path, values).map_err(|error| RenderError::scratch(&error))?;
            arguments.push(flag("values", path));
        }
        arguments.extend(self.api_versions.iter().map(|version| flag("api-versions", version)));
        for (wanted, name) in [
            (!self.skip_crds, "--include-crds"),
            (self.skip_schema_validation, "--skip-schema-validation"),
            (self.skip_tests, "--skip-tests"),
        ] {
            if wanted {
                arguments.push(name.into());
            }
        }
        Ok(arguments)
    }
}

/// Helm finds its configuration, cache and plugins in empty directories.
pub(crate) fn environment(scratch: &Path) -> Vec<(OsString, OsString)> {
    let home = scratch.join("home");
    [
        ("HELM_CACHE_HOME", "helm/cache"),
        ("HELM_CONFIG_HOME", "helm/config"),
        ("HELM_DATA_HOME", "helm/data"),
        ("HELM_PLUGINS", "helm/plugins"),
        ("KUBECONFIG", "kubeconfig"),
    ]
    .into_iter()
    .map(|(name, path)| (name.into(), home.join(path).into()))
    .collect()
}

fn inline_values(options: &HelmOptions) -> Option<String> {
    match &options.values_object {
        // JSON is YAML.
        Some(object) => Some(object.to_string()),
        None => options.values.clone().filter(|text| !text.is_empty()),
    }
}

/// Helm reads a comma in `--set` as the start of the next assignment.
fn escape_commas(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') {
        return value.to_owned();
    }
    let mut escaped = String::with_capacity(value.len());
    let mut before = None;
    for character in value.chars() {
        if character == ',' && before != Some('\\') {
            escaped.push('\\');
        }
        escaped.push(character);
        before = Some(character);
    }
    escaped
}

/// Does the name of a parameter set one value, and not name a file for another (`a=/etc/passwd,b`)?
fn is_one_key(name: &str) -> bool {
    let mut is_escaped = false;
    name.chars().all(|character| {
        let is_plain = is_escaped || !matches!(character, ',' | '=');
        is_escaped = !is_escaped && character == '\\';
        is_plain
    })
}

/// The path with a backslash before these.
fn escaped(path: &Path, which: &[u8]) -> OsString {
    let bytes = path.as_os_str().as_bytes().iter();
    OsString::from_vec(
        bytes.flat_map(|byte| which.contains(byte).then_some(b'\\').into_iter().chain([*byte])).collect(),
    )
}

/// One path where Helm reads a list of them, separated by commas: a file may be called `a,/etc/passwd`.
fn comma_field(path: PathBuf) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return path.into_os_string();
    }
    let inner = bytes.iter().flat_map(|byte| (*byte == b'"').then_some(b'"').into_iter().chain([*byte]));
    OsString::from_vec([b'"'].into_iter().chain(inner).chain([b'"']).collect())
}

/// `v1.36.2+k3s1` to `1.36.2`: charts compare it with constraints that know no suffixes.
pub(crate) fn plain_version(version: &str) -> String {
    let numbers = version.trim_start_matches('v');
    let end = numbers
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(numbers.len());
    numbers[..end].trim_end_matches('.').to_owned()
}

/// The `# Source: chart/templates/x.yaml` comments of Helm's output, by line.
struct Origins {
    /// Line of the comment, and the file.
    comments: Vec<(usize, String)>,
    source: usize,
}

impl Origins {
    fn read(output: &[u8], chart: &RepoPath, source: usize) -> Self {
        let text = String::from_utf8_lossy(output);
        let comments = text
            .lines()
            .enumerate()
            .filter_map(|(index, line)| {
                let file = line.strip_prefix("# Source: ")?;
                // The first component is the chart's name, whatever its directory is called.
                let below = file.split_once('/').map_or(file, |(_, below)| below);
                Some((index + 1, chart.join(below).ok()?.as_str().to_owned()))
            })
            .collect();
        Self { comments, source }
    }

    /// The last comment before the document's first line.
    fn at(&self, line: usize) -> Option<Origin> {
        let index = self.comments.partition_point(|(at, _)| *at <= line).checked_sub(1)?;
        let (_, file) = self.comments.get(index)?;
        Some(Origin { source: self.source, file: file.clone(), line: 1, verbatim: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_escaped_once() {
        for (value, expected) in [("a,b", "a\\,b"), ("a\\,b", "a\\,b"), ("{a,b}", "{a,b}"), ("", "")] {
            assert_eq!(escape_commas(value), expected);
        }
    }

    #[test]
    fn a_path_is_one_path_whatever_it_is_called() {
        assert_eq!(comma_field("/a/b c.yaml".into()), "/a/b c.yaml");
        assert_eq!(comma_field("/a,/b\"c".into()), "\"/a,/b\"\"c\"");
        assert_eq!(escaped(Path::new("/a,b=/c\\d"), b",\\"), "/a\\,b=/c\\\\d");
        for (name, expected) in
            [("a.b[0]", true), ("a\\,b", true), ("a,b", false), ("a=/x,b", false), ("a\\\\,b", false)]
        {
            assert_eq!(is_one_key(name), expected, "{name}");
        }
    }

    #[test]
    fn versions_lose_their_suffix() {
        for (version, expected) in
            [("v1.36.2+k3s1", "1.36.2"), ("1.29", "1.29"), ("v1.30.0-gke.100", "1.30.0")]
        {
            assert_eq!(plain_version(version), expected);
        }
    }
}
