//! Kustomize overlays, by the real program.

mod edit;
mod inspect;
mod origins;

use std::ffi::OsString;
use std::path::PathBuf;

use plumb_core::app::KustomizeOptions;
use plumb_core::desired::RenderedManifest;
use plumb_core::source::{EntryKind, RepoPath, SourceError, follow};
use plumb_core::version::Version;

use crate::helm::plain_version;
use crate::readset::ReadSet;
use crate::sandbox::{Run, Workshop, flag};
use crate::{BuildEnvironment, Limits, RenderError, RenderRequest, Tools, export, helm, parse};
use origins::{Clues, Documents};

/// An overlay with everything that Kustomize is given, settled before anything runs.
pub(crate) struct KustomizePlan {
    overlay: RepoPath,
    program: PathBuf,
    build_options: Vec<String>,
    edits: Vec<Vec<String>>,
    patches: Vec<serde_json::Value>,
    environment: Vec<(String, String)>,
    network: bool,
    /// What inflated charts get to see of the cluster.
    helm_flags: Vec<String>,
    /// Where its objects come from.
    clues: Clues,
}

/// Options of the settings that would let a repository run programs. They are refused whoever sets them.
const FORBIDDEN_OPTIONS: [&str; 5] =
    ["--enable-exec", "--enable-alpha-plugins", "--enable-star", "--network", "--mount"];

/// Settles what is read and how Kustomize is called.
pub(crate) fn plan(
    request: &RenderRequest,
    overlay: &RepoPath,
    options: &KustomizeOptions,
    environment: &BuildEnvironment,
    tools: &Tools,
    set: &mut ReadSet,
    limits: &Limits,
) -> Result<KustomizePlan, RenderError> {
    let settings = &request.settings;
    let (program, build_options) = match options.version.as_deref().filter(|version| !version.is_empty()) {
        None => (tools.kustomize.clone(), settings.kustomize_build_options.as_str()),
        Some(version) => {
            let known = settings.kustomize_versions.get(version).ok_or_else(|| RenderError::Option {
                option: "kustomize.version",
                reason: format!(
                    "version `{version}` is not registered in the settings (kustomize.path.{version})"
                ),
            })?;
            let own = known.build_options.as_deref().unwrap_or(&settings.kustomize_build_options);
            (known.program.clone(), own)
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
    let mut roots = vec![overlay.clone()];
    let components = components(request, overlay, options, &mut roots)?;
    for path in options.patches.iter().filter_map(|patch| patch.path.as_deref()) {
        let bad = |error: plumb_core::source::BadPath| RenderError::Option {
            option: "kustomize.patches",
            reason: error.to_string(),
        };
        let path = overlay.join(path).map_err(bad)?;
        set.add("", &path, &format!("patch `{path}`"))?;
    }
    // Without the restrictor any file of the repository may be read, so all of them are.
    if build_options.iter().any(|option| option.contains("LoadRestrictionsNone")) {
        set.add("", &RepoPath::root(), "the repository")?;
    }
    let helm_flags = helm_flags(request, options, &build_options);
    let mut found = inspect::walk(&roots, set, settings.allow_network, limits)?;
    found.clues.prefixes.extend(options.name_prefix.clone());
    found.clues.suffixes.extend(options.name_suffix.clone());
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
        clues: found.clues,
    })
}

/// Version and kinds of the cluster, where the settings let Kustomize inflate charts. Versions of Kustomize before
/// 5.3 do not know these flags.
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

/// The components that exist, which are overlays of their own.
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

impl KustomizePlan {
    /// Everything but the files, for the key of the cache.
    pub(crate) fn parameters(&self) -> String {
        format!(
            "{:?}",
            (
                (&self.overlay, &self.build_options, &self.helm_flags, &self.edits),
                (&self.patches, &self.environment, self.network)
            )
        )
    }

    pub(crate) fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Runs Kustomize on the files of the set.
    pub(crate) fn render(
        &self,
        request: &RenderRequest,
        set: &ReadSet,
        workshop: &Workshop<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = workshop.limits;
        let scratch = workshop.scratch()?;
        let repository = scratch.repository();
        export::export(set, "", &repository, limits)?;
        workshop.clock.set_in_charts(&repository, limits)?;
        let overlay = repository.join(self.overlay.as_str());
        let run = |directory: &std::path::Path, arguments: Vec<OsString>, tool: &'static str| {
            let mut environment = helm::environment(scratch.path());
            environment.extend(self.environment.iter().map(|(name, value)| (name.into(), value.into())));
            let run = Run {
                program: &self.program,
                arguments,
                directory,
                environment,
                helper: Some(&workshop.tools.helm),
                scratch: scratch.path(),
                network: self.network,
                limits,
            };
            workshop.sandbox.run(&run).map_err(|source| RenderError::Tool {
                tool,
                path: self.overlay.clone(),
                source,
            })
        };
        for edit in &self.edits {
            let arguments =
                std::iter::once("edit").chain(edit.iter().map(String::as_str)).map(OsString::from).collect();
            run(&overlay, arguments, "kustomize edit")?;
        }
        edit::append_patches(&overlay, &self.overlay, &self.patches, limits)?;
        let mut arguments: Vec<OsString> = vec!["build".into(), overlay.clone().into()];
        arguments.extend(self.build_options.iter().map(OsString::from));
        if self.build_options.iter().any(|option| option.starts_with("--enable-helm")) {
            arguments.push(flag("helm-command", &workshop.tools.helm));
            arguments.extend(self.helm_flags.iter().map(OsString::from));
        }
        let output = run(&repository, arguments, "kustomize build")?;
        let mut manifests = parse::tool_output(&output, "kustomize build", limits, |_| None)?;
        let documents = Documents::read(&self.clues, request.files.as_ref(), limits);
        for manifest in &mut manifests {
            manifest.origin = documents.origin_of(&manifest.value, request.index);
        }
        Ok(manifests)
    }
}
