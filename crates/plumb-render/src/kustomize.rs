//! Kustomize overlays, by the real program.

mod edit;
mod inspect;

use std::ffi::OsString;
use std::path::PathBuf;

use plumb_core::app::KustomizeOptions;
use plumb_core::desired::RenderedManifest;
use plumb_core::source::{EntryKind, RepoPath, SourceError, follow};

use crate::readset::ReadSet;
use crate::sandbox::{Run, Sandbox, Scratch, flag};
use crate::{BuildEnvironment, Limits, RenderError, RenderRequest, Tools, export, helm, parse};

/// An overlay with everything that Kustomize is given, settled before anything runs.
pub(crate) struct KustomizePlan {
    overlay: RepoPath,
    program: PathBuf,
    build_options: Vec<String>,
    edits: Vec<Vec<String>>,
    patches: Vec<serde_json::Value>,
    environment: Vec<(String, String)>,
    network: bool,
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
        set.add("", &path).map_err(RenderError::read(format!("patch `{path}`")))?;
    }
    // Without the restrictor any file of the repository may be read, so all of them are.
    if build_options.iter().any(|option| option.contains("LoadRestrictionsNone")) {
        set.add("", &RepoPath::root()).map_err(RenderError::read("the repository"))?;
    }
    let found = inspect::walk(&roots, set, settings.allow_network, limits)?;
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
    })
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
            Ok((_, entry)) if entry.kind == EntryKind::Directory => {
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
            (&self.overlay, &self.build_options, &self.edits, &self.patches, &self.environment, self.network)
        )
    }

    pub(crate) fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Runs Kustomize on the files of the set.
    pub(crate) fn render(
        &self,
        set: &ReadSet,
        sandbox: &Sandbox,
        tools: &Tools,
        scratch: &Scratch,
        limits: &Limits,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let repository = scratch.repository();
        export::export(set, "", &repository, limits)?;
        let overlay = repository.join(self.overlay.as_str());
        let run = |directory: &std::path::Path, arguments: Vec<OsString>, tool: &'static str| {
            let mut environment = helm::environment(scratch.path());
            environment.extend(self.environment.iter().map(|(name, value)| (name.into(), value.into())));
            let run = Run {
                program: &self.program,
                arguments,
                directory,
                environment,
                scratch: scratch.path(),
                network: self.network,
                limits,
            };
            sandbox.run(&run).map_err(|source| RenderError::Tool { tool, path: self.overlay.clone(), source })
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
            arguments.push(flag("helm-command", &tools.helm));
        }
        let output = run(&repository, arguments, "kustomize build")?;
        parse::tool_output(&output, "kustomize build", limits, |_| None)
    }
}
