//! What the tests of this folder share.

pub(crate) use std::sync::Arc;
pub(crate) use std::time::{Duration, Instant};

pub(crate) use plumb_core::app::{
    DirectoryOptions, HelmFileParameter, HelmOptions, HelmParameter, JsonnetVariable, KustomizeOptions,
    KustomizePatch, PluginOptions, Source, SourceTool,
};
pub(crate) use plumb_render::sandbox::Capabilities;
pub(crate) use plumb_render::{Freshness, LocalFiles, Plugin, RenderSettings, Rendered};

pub(crate) use crate::workbench::{Workbench, has, names, tools};

/// The content of files outside every source.
pub(crate) const CANARY: &str = "canary-5b1f0a";

pub(crate) const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: good\n";

/// A workbench with a secret beside the source, a good app in it, and small limits.
pub(crate) fn workbench(files: &[(&str, &str)]) -> Workbench {
    workbench_in(files, Capabilities::detect())
}

/// The same on a system with these capabilities.
pub(crate) fn workbench_in(files: &[(&str, &str)], capabilities: Capabilities) -> Workbench {
    let workbench = Workbench::with_config(files, |config| {
        config.sandbox = config.sandbox.clone().with_capabilities(capabilities);
        config.limits.time = Duration::from_secs(20);
        config.limits.memory = 3 << 30;
        config.limits.objects = 500;
        config.limits.directory_bytes = 1 << 20;
        config.limits.output = 4 << 20;
        config.limits.export_files = 3000;
    });
    let secret = format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: {CANARY}\n");
    std::fs::write(workbench.directory.path().join("secret.yaml"), &secret).unwrap();
    std::fs::create_dir(workbench.directory.path().join("outside")).unwrap();
    std::fs::write(workbench.directory.path().join("outside/secret.yaml"), &secret).unwrap();
    std::fs::write(
        workbench.directory.path().join("outside/kustomization.yaml"),
        "resources: [secret.yaml]\n",
    )
    .unwrap();
    workbench.write("good/a.yaml", GOOD);
    workbench
}

pub(crate) fn secret_path(workbench: &Workbench) -> String {
    workbench.directory.path().join("secret.yaml").display().to_string()
}

/// Nothing from outside may be in what came out.
pub(crate) fn no_canary(rendered: &Rendered) {
    let text = format!("{rendered:?}");
    assert!(!text.contains(CANARY), "a file from outside was read: {text}");
    assert!(!text.contains("root:x:0"), "/etc/passwd was read: {text}");
}

/// The app must fail soon, with all of these texts, and not affect the good app.
pub(crate) fn fails(workbench: &Workbench, path: &str, tool: Option<SourceTool>, words: &[&str]) {
    fails_with(workbench, &workbench.request(path, tool), words);
}

pub(crate) fn fails_with(workbench: &Workbench, request: &plumb_render::RenderRequest, words: &[&str]) {
    let started = Instant::now();
    let message = match workbench.renderer.render(request, Freshness::Cached) {
        Ok(rendered) => {
            no_canary(&rendered);
            panic!("it rendered: {:?}", names(&rendered));
        }
        Err(error) => error.full_message(),
    };
    assert!(started.elapsed() < Duration::from_secs(90), "it took {:?}", started.elapsed());
    assert!(!message.contains(CANARY) && !message.contains("root:x:0"), "{message}");
    let scratch = workbench.directory.path().join("cache").display().to_string();
    assert!(!message.contains(&scratch), "a temporary path is shown: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is missing in: {message}");
    }
    good_app_renders(workbench);
}

/// It may render, but nothing from outside.
pub(crate) fn renders_without_canary(
    workbench: &Workbench,
    path: &str,
    tool: Option<SourceTool>,
) -> Rendered {
    let rendered = workbench.render(path, tool).unwrap_or_else(|error| panic!("{}", error.full_message()));
    no_canary(&rendered);
    good_app_renders(workbench);
    rendered
}

pub(crate) fn good_app_renders(workbench: &Workbench) {
    let good = workbench.renderer.render(&workbench.request("good", None), Freshness::Fresh).unwrap();
    assert_eq!(names(&good), ["ConfigMap/good"]);
}

pub(crate) fn helm(options: HelmOptions) -> SourceTool {
    SourceTool::Helm(Box::new(options))
}

pub(crate) fn kustomize(options: KustomizeOptions) -> SourceTool {
    SourceTool::Kustomize(Box::new(options))
}

pub(crate) fn recurse() -> SourceTool {
    SourceTool::Directory(DirectoryOptions { recurse: true, ..DirectoryOptions::default() })
}

/// A text that its aliases blow up to 9^12 items.
pub(crate) fn bomb() -> String {
    let levels = (1..12).map(|level| {
        let previous = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("a{level}: &a{level} [{previous}]\n")
    });
    std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain(levels)
        .collect::<Vec<_>>()
        .concat()
}
