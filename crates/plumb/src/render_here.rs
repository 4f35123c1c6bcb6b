//! Rendering and comparing an app on this machine, instead of reading what the engine found.

use std::path::{Path, PathBuf};

use plumb_crd::Application;
use plumb_engine::{InspectOptions, Inspector, RenderAt, RenderedApp, Tools};
use plumb_render::{Charts, Renderer, RendererConfig};

use crate::config;
use crate::context::Context;
use crate::error::CommandError;
use crate::select::revisions::revisions_of;
use crate::view::describe;

/// The programs that render, and their cache.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct RenderArgs {
    /// Directory for Git mirrors and rendered manifests. It may be deleted at any time.
    #[arg(long, value_name = "DIRECTORY")]
    cache_dir: Option<PathBuf>,
    /// The helm program.
    #[arg(long, default_value = "helm", value_name = "PROGRAM")]
    helm: PathBuf,
    /// The kustomize program.
    #[arg(long, default_value = "kustomize", value_name = "PROGRAM")]
    kustomize: PathBuf,
}

/// Render another revision than the one that the app tracks.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RevisionOverride {
    /// Use this revision of the app's source.
    #[arg(long)]
    pub(crate) revision: Option<String>,
    /// Use these revisions for the sources of --source-positions or --source-names.
    #[arg(long, value_name = "REVISION")]
    pub(crate) revisions: Vec<String>,
    /// The sources that --revisions are for, counted from 1.
    #[arg(long, value_name = "N")]
    pub(crate) source_positions: Vec<usize>,
    /// The sources that --revisions are for, by name.
    #[arg(long, value_name = "NAME", conflicts_with = "source_positions")]
    pub(crate) source_names: Vec<String>,
    /// Use this directory of a checkout.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["revision", "revisions"])]
    pub(crate) local: Option<PathBuf>,
    /// Root of the checkout [default: the directory with `.git`].
    #[arg(long, value_name = "DIRECTORY", requires = "local")]
    pub(crate) local_repo_root: Option<PathBuf>,
}

impl RevisionOverride {
    /// True if any of these flags was given.
    pub(crate) fn is_given(&self) -> bool {
        self.revision.is_some() || !self.revisions.is_empty() || self.local.is_some()
    }
}

impl RenderArgs {
    fn cache(&self) -> PathBuf {
        self.cache_dir.clone().unwrap_or_else(config::default_cache_dir)
    }

    fn tools(&self) -> Tools {
        Tools {
            helm: config::find_program(self.helm.clone()),
            kustomize: config::find_program(self.kustomize.clone()),
            jsonnet: config::jsonnet_command(),
            launcher: config::launcher_command(),
        }
    }

    /// Prepares the renderers, without a cluster.
    pub(crate) fn renderer(&self) -> Result<Renderer, CommandError> {
        let mut config = RendererConfig::new(self.cache().join("render"));
        config.tools = self.tools();
        Renderer::new(config).map_err(|error| {
            CommandError::because(format!("use the cache {}", self.cache().display()), error)
        })
    }

    /// Prepares to fetch charts, without a cluster.
    pub(crate) fn charts(&self) -> Result<Charts, CommandError> {
        let limits = RendererConfig::new(self.cache().join("render")).container_limits();
        Charts::new(self.cache().join("charts"), limits).map_err(|error| {
            CommandError::because(format!("use the cache {}", self.cache().display()), error)
        })
    }

    /// How apps are rendered.
    pub(crate) fn options(&self, context: &Context) -> InspectOptions {
        InspectOptions {
            namespace: context.namespace().to_owned(),
            cache_dir: self.cache(),
            tools: self.tools(),
        }
    }

    /// Connects and prepares the renderers.
    pub(crate) async fn open(&self, context: &Context) -> Result<Inspector, CommandError> {
        Inspector::open(context.connect().await?, self.options(context))
            .await
            .map_err(|error| CommandError::because("prepare to render", error))
    }
}

/// Renders the app at the revision that it tracks, or at the given one.
pub(crate) async fn gather(
    inspector: &Inspector,
    application: &Application,
    revision_override: &RevisionOverride,
) -> Result<RenderedApp, CommandError> {
    let name = &application.metadata.name;
    let failed = |error: plumb_engine::InspectError| {
        CommandError::because(format!("render {name}"), error)
            .hint("repositories are read from this machine, with their registered credentials")
    };
    if let Some(directory) = &revision_override.local {
        if !application.spec.sources.is_empty() {
            return Err(CommandError::usage("--local works only for apps with one source"));
        }
        let (root, path) = checkout(directory, revision_override.local_repo_root.as_deref())?;
        return inspector
            .gather(application, &RenderAt::Checkout { root: &root, path: &path })
            .await
            .map_err(failed);
    }
    let revisions = revisions(application, revision_override)?;
    let wanted = if revisions.is_empty() { RenderAt::Tracked } else { RenderAt::Revisions(&revisions) };
    inspector.gather(application, &wanted).await.map_err(failed)
}

/// The given revisions, one per source; empty if none was given.
fn revisions(
    application: &Application,
    revision_override: &RevisionOverride,
) -> Result<Vec<String>, CommandError> {
    let sources = describe::sources(application);
    if let Some(revision) = &revision_override.revision {
        if sources.len() > 1 {
            return Err(CommandError::usage("--revision works only for apps with one source")
                .hint("use --revisions with --source-positions or --source-names"));
        }
        return Ok(vec![revision.clone()]);
    }
    revisions_of(
        &sources,
        &revision_override.revisions,
        &revision_override.source_positions,
        &revision_override.source_names,
    )
}

/// The root of a checkout, and the directory in it.
pub(crate) fn checkout(directory: &Path, root: Option<&Path>) -> Result<(PathBuf, String), CommandError> {
    let real = |path: &Path| {
        path.canonicalize().map_err(|error| CommandError::because(format!("open {}", path.display()), error))
    };
    let directory = real(directory)?;
    let root = match root {
        Some(root) => real(root)?,
        None => directory
            .ancestors()
            .find(|folder| folder.join(".git").exists())
            .unwrap_or(&directory)
            .to_path_buf(),
    };
    let inside = directory.strip_prefix(&root).map_err(|_| {
        CommandError::usage(format!("{} is not inside {}", directory.display(), root.display()))
    })?;
    let path = inside.to_string_lossy().into_owned();
    Ok((root, if path.is_empty() { ".".to_owned() } else { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_is_found_by_its_git_directory() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("apps/web");
        std::fs::create_dir_all(&inner).unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(checkout(&inner, None).unwrap(), (root.join("apps/web"), ".".to_owned()));
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(checkout(&inner, None).unwrap(), (root.clone(), "apps/web".to_owned()));
        assert_eq!(checkout(&inner, Some(&root.join("apps"))).unwrap().1, "web");
        assert!(checkout(&root, Some(&inner)).is_err());
        assert!(checkout(&root.join("nowhere"), None).is_err());
    }
}
