//! A source to render and a renderer to render it with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_core::app::{Source, SourceTool};
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, LocalFiles, RenderError, RenderRequest, RenderSettings, Rendered,
    Renderer, RendererConfig, Tools,
};

/// A directory of source files and a renderer with a cache of its own; gone at the end of the test.
pub(crate) struct Workbench {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) renderer: Renderer,
}

impl Workbench {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_config(files, |_| {})
    }

    pub(crate) fn with_config(files: &[(&str, &str)], change: impl FnOnce(&mut RendererConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = RendererConfig::new(directory.path().join("cache"));
        config.tools = tools();
        change(&mut config);
        let workbench = Self { renderer: Renderer::new(config).unwrap(), directory };
        std::fs::create_dir(workbench.root()).unwrap();
        for (path, content) in files {
            workbench.write(path, content);
        }
        workbench
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("source")
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn request(&self, path: &str, tool: Option<SourceTool>) -> RenderRequest {
        RenderRequest {
            source: Source {
                repo_url: "https://example.com/repo".to_owned(),
                path: Some(path.to_owned()),
                target_revision: Some("main".to_owned()),
                tag_prefix: None,
                chart: None,
                ref_name: None,
                name: None,
                tool,
            },
            index: 0,
            files: Arc::new(LocalFiles::new(self.root())),
            revision: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            refs: BTreeMap::new(),
            chart_dependencies: BTreeMap::new(),
            overrides: None,
            app: AppFacts {
                name: "web".to_owned(),
                instance: "web".to_owned(),
                project: "default".to_owned(),
                namespace: "prod".to_owned(),
            },
            cluster: ClusterFacts { kube_version: Some("v1.36.0".to_owned()), api_versions: Arc::default() },
            settings: Arc::new(RenderSettings::default()),
        }
    }

    pub(crate) fn render(&self, path: &str, tool: Option<SourceTool>) -> Result<Rendered, RenderError> {
        self.renderer.render(&self.request(path, tool), Freshness::Cached)
    }
}

/// The programs from the environment, else from the usual places.
#[expect(clippy::disallowed_methods, reason = "tests find their programs in the environment")]
pub(crate) fn tools() -> Tools {
    let program = |name: &str, variable: &str| {
        if let Some(path) = std::env::var_os(variable) {
            return PathBuf::from(path);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|directory| directory.join(name))
            .find(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from(name))
    };
    Tools {
        helm: program("helm", "PLUMB_HELM"),
        kustomize: program("kustomize", "PLUMB_KUSTOMIZE"),
        jsonnet: vec![PathBuf::from(env!("CARGO_BIN_EXE_plumb-jsonnet"))],
        launcher: vec![PathBuf::from(env!("CARGO_BIN_EXE_plumb-tool-launcher"))],
    }
}

/// Is the program there? Says so if it is not, so that a skipped test can be seen.
pub(crate) fn has(program: &Path) -> bool {
    let found = program.components().count() > 1 && program.exists();
    if !found {
        plumb_testkit::skipped("TOOLS", &format!("{} is not installed", program.display())).unwrap();
    }
    found
}

/// `kind/name` of every manifest, in order.
pub(crate) fn names(rendered: &Rendered) -> Vec<String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rendered
        .manifests
        .iter()
        .filter(|manifest| !manifest.is_passed_over())
        .map(|manifest| {
            format!("{}/{}", text(&manifest.value["kind"]), text(&manifest.value["metadata"]["name"]))
        })
        .collect()
}
