//! Fixes what `helm template` reads and how it is called.

use plumb_core::app::HelmOptions;
use plumb_core::source::RepoPath;

use super::escape::{escape_commas, is_one_key, plain_version, release_name_problem};
use super::values;
use crate::charts;
use crate::error::RenderError;
use crate::limits::Limits;
use crate::plan_input::PlanInput;
use crate::read_set::{ReadSet, SourceFile};
use crate::request::RenderRequest;

/// A chart and everything that `helm template` is given, fixed before it runs.
pub(crate) struct HelmPlan {
    pub(super) chart: RepoPath,
    pub(super) release: String,
    pub(super) namespace: String,
    pub(super) kube_version: Option<String>,
    pub(super) api_versions: Vec<String>,
    pub(super) value_files: Vec<SourceFile>,
    pub(super) inline_values: Option<String>,
    pub(super) set: Vec<String>,
    pub(super) set_string: Vec<String>,
    pub(super) set_file: Vec<(String, SourceFile)>,
    pub(super) skip_crds: bool,
    pub(super) skip_tests: bool,
    pub(super) skip_schema_validation: bool,
    /// Dependencies that `charts/` lacks: the directory to create there, and the files in the set.
    pub(super) dependencies: Vec<(String, SourceFile)>,
}

/// Fixes what Helm reads and how it is called.
pub(crate) fn plan(
    input: &PlanInput<'_>,
    options: &HelmOptions,
    set: &mut ReadSet,
) -> Result<HelmPlan, RenderError> {
    let PlanInput { request, path: chart, environment, limits, .. } = *input;
    for (name, files) in &request.refs {
        set.add_source(name, std::sync::Arc::clone(files));
    }
    set.add("", chart, &format!("chart `{chart}`"))?;
    let mut plan = HelmPlan::new(request, chart, options);
    if let Some(reason) = release_name_problem(&plan.release) {
        return Err(RenderError::Option { option: "helm.releaseName", reason });
    }
    plan.dependencies = dependencies(request, chart, set, limits)?;
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
    values::refuse_own_sops(request, chart)?;
    plan.value_files = values::value_files(request, chart, options, environment, set)?;
    Ok(plan)
}

impl HelmPlan {
    /// The plan without files, parameters and dependencies. Empty options count as absent.
    fn new(request: &RenderRequest, chart: &RepoPath, options: &HelmOptions) -> Self {
        let given = |option: &Option<String>| option.clone().filter(|text| !text.is_empty());
        Self {
            chart: chart.clone(),
            release: given(&options.release_name).unwrap_or_else(|| request.app.name.clone()),
            namespace: given(&options.namespace).unwrap_or_else(|| request.app.namespace.clone()),
            kube_version: given(&options.kube_version)
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
            dependencies: Vec::new(),
        }
    }

    /// Everything but the files, for the cache key.
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
}

/// The dependencies that the chart does not contain: from the same repository, or fetched by the caller.
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
            // The space makes it a name that no `ref` of an Application can have.
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
        // Two versions of one chart need two directories. Helm ignores the names of the directories.
        found.push((format!("{name}-{index}"), file));
    }
    Ok(found)
}

fn inline_values(options: &HelmOptions) -> Option<String> {
    match &options.values_object {
        // JSON is YAML.
        Some(object) => Some(object.to_string()),
        None => options.values.clone().filter(|text| !text.is_empty()),
    }
}
