//! Fixes what Kustomize reads and how it is called.

use std::path::PathBuf;

use plumb_core::app::KustomizeOptions;
use plumb_core::source::{EntryKind, RepoPath, SourceError, follow};
use plumb_core::version::Version;

use super::origins::OriginHints;
use super::{edit, inspect};
use crate::error::RenderError;
use crate::helm::plain_version;
use crate::plan_input::PlanInput;
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::settings::RenderSettings;
use crate::tools::Tools;

/// File names that make a directory a Kustomize overlay.
pub(crate) const KUSTOMIZATION_FILES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// An overlay and everything that Kustomize is given, fixed before it runs.
pub(crate) struct KustomizePlan {
    pub(super) overlay: RepoPath,
    pub(super) program: PathBuf,
    pub(super) build_options: Vec<String>,
    pub(super) edits: Vec<Vec<String>>,
    pub(super) patches: Vec<serde_json::Value>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) network: bool,
    /// The cluster's version and kinds, for charts that Kustomize inflates.
    pub(super) helm_flags: Vec<String>,
    /// From which files its objects come.
    pub(super) hints: OriginHints,
}

/// Options of the settings that would let a repository run programs. They are always refused.
const FORBIDDEN_OPTIONS: [&str; 5] =
    ["--enable-exec", "--enable-alpha-plugins", "--enable-star", "--network", "--mount"];

/// Fixes what Kustomize reads and how it is called.
pub(crate) fn plan(
    input: &PlanInput<'_>,
    options: &KustomizeOptions,
    set: &mut ReadSet,
) -> Result<KustomizePlan, RenderError> {
    let PlanInput { request, path: overlay, environment, tools, limits } = *input;
    let settings = &request.settings;
    let (program, build_options) = program(settings, options, tools)?;
    let mut roots = vec![overlay.clone()];
    let components = components(request, overlay, options, &mut roots)?;
    add_patches(overlay, options, set)?;
    // Without load restrictions the overlay may read any file of the repository.
    if build_options.iter().any(|option| option.contains("LoadRestrictionsNone")) {
        set.add("", &RepoPath::root(), "the repository")?;
    }
    let helm_flags = helm_flags(request, options, &build_options);
    let mut found = inspect::walk(&roots, set, settings.allow_network, limits)?;
    found.hints.prefixes.extend(options.name_prefix.clone());
    found.hints.suffixes.extend(options.name_suffix.clone());
    Ok(KustomizePlan {
        overlay: overlay.clone(),
        program,
        build_options,
        edits: edit::commands(options, &components, environment),
        patches: options.patches.iter().map(edit::patch_entry).collect(),
        environment: environment
            .iter()
            .filter(|(name, _)| found.uses_revision || !name.starts_with("ARGOCD_APP_REVISION"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        network: settings.allow_network && found.uses_network,
        helm_flags,
        hints: found.hints,
    })
}

/// The program of the selected version, and its build options.
fn program(
    settings: &RenderSettings,
    options: &KustomizeOptions,
    tools: &Tools,
) -> Result<(PathBuf, Vec<String>), RenderError> {
    let (program, build_options) = match options.version.as_deref().filter(|version| !version.is_empty()) {
        None => (tools.kustomize.clone(), settings.kustomize_build_options.as_str()),
        Some(version) => {
            let registered = settings.kustomize_versions.get(version).ok_or_else(|| RenderError::Option {
                option: "kustomize.version",
                reason: format!(
                    "version `{version}` is not registered in the settings (kustomize.path.{version})"
                ),
            })?;
            let own = registered.build_options.as_deref().unwrap_or(&settings.kustomize_build_options);
            (registered.program.clone(), own)
        }
    };
    let build_options: Vec<String> = build_options.split_whitespace().map(str::to_owned).collect();
    let is_forbidden = |option: &String| {
        FORBIDDEN_OPTIONS
            .iter()
            .any(|forbidden| option == forbidden || option.starts_with(&format!("{forbidden}=")))
    };
    if let Some(option) = build_options.iter().find(|option| is_forbidden(option)) {
        let reason = format!("`{option}` would let repositories run programs and is not supported");
        return Err(RenderError::Option { option: "kustomize.buildOptions", reason });
    }
    Ok((program, build_options))
}

/// Adds the files of the Application's own patches to the set.
fn add_patches(overlay: &RepoPath, options: &KustomizeOptions, set: &mut ReadSet) -> Result<(), RenderError> {
    for path in options.patches.iter().filter_map(|patch| patch.path.as_deref()) {
        let bad = |error: plumb_core::source::BadPath| RenderError::Option {
            option: "kustomize.patches",
            reason: error.to_string(),
        };
        let path = overlay.join(path).map_err(bad)?;
        set.add("", &path, &format!("patch `{path}`"))?;
    }
    Ok(())
}

/// The cluster's version and kinds, if the settings let Kustomize inflate charts. Kustomize before 5.3 does not have
/// these flags.
fn helm_flags(request: &RenderRequest, options: &KustomizeOptions, build_options: &[String]) -> Vec<String> {
    let inflates = build_options.iter().any(|option| option.starts_with("--enable-helm"));
    let is_old = options.version.as_deref().and_then(Version::parse).is_some_and(|version| {
        Version::parse("5.3.0").is_some_and(|first| version.precedence(&first).is_lt())
    });
    if !inflates || is_old {
        return Vec::new();
    }
    let asked = options.kube_version.as_ref().filter(|version| !version.is_empty());
    let kube_version = asked.or(request.cluster.kube_version.as_ref());
    let api_versions =
        if options.api_versions.is_empty() { &*request.cluster.api_versions } else { &options.api_versions };
    let kube_version = kube_version.map(|version| format!("--helm-kube-version={}", plain_version(version)));
    let api_versions = api_versions.iter().map(|version| format!("--helm-api-versions={version}"));
    kube_version.into_iter().chain(api_versions).collect()
}

/// The components that exist. Each is an overlay, so it becomes a root.
fn components(
    request: &RenderRequest,
    overlay: &RepoPath,
    options: &KustomizeOptions,
    roots: &mut Vec<RepoPath>,
) -> Result<Vec<String>, RenderError> {
    let mut found = Vec::new();
    for written in &options.components {
        let path = overlay.join(written).map_err(|error| RenderError::Option {
            option: "kustomize.components",
            reason: error.to_string(),
        })?;
        match follow(request.files.as_ref(), &path) {
            Ok((_, EntryKind::Directory)) => {
                roots.push(path);
                found.push(written.clone());
            }
            Err(SourceError::NotFound { .. }) if options.ignore_missing_components => {}
            Ok(_) => {
                let reason = format!("component `{written}` is not a directory");
                return Err(RenderError::Option { option: "kustomize.components", reason });
            }
            Err(source) => return Err(RenderError::Read { what: format!("component `{written}`"), source }),
        }
    }
    Ok(found)
}
