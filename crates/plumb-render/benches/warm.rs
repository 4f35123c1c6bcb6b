//! The cost of an unchanged source: reading its file names and an earlier result.

use std::collections::BTreeMap;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use plumb_core::app::Source;
use plumb_core::source::RepoPath;
use plumb_render::{
    AppFacts, ClusterFacts, Freshness, MemoryFiles, RenderRequest, RenderSettings, Renderer, RendererConfig,
};

/// 50 Deployments in 50 files.
fn files() -> MemoryFiles {
    MemoryFiles::new((0..50).filter_map(|n| {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{n}\n  labels: {{app: web-{n}}}\nspec:\n  \
             replicas: 2\n  selector: {{matchLabels: {{app: web-{n}}}}}\n  template:\n    metadata:\n      labels: \
             {{app: web-{n}}}\n    spec:\n      containers:\n      - name: web\n        image: nginx:{n}\n        \
             ports: [{{containerPort: 8080, name: http}}]\n        resources: {{limits: {{cpu: 100m, memory: 64Mi}}}}\n"
        );
        Some((RepoPath::parse(&format!("app/{n:02}.yaml")).ok()?, text.into_bytes()))
    }))
}

fn request() -> RenderRequest {
    RenderRequest {
        source: Source {
            repo_url: "https://example.com/repo".to_owned(),
            path: Some("app".to_owned()),
            target_revision: None,
            tag_prefix: None,
            chart: None,
            ref_name: None,
            name: None,
            tool: None,
        },
        index: 0,
        files: Arc::new(files()),
        revision: "0".repeat(40),
        refs: BTreeMap::new(),
        chart_dependencies: BTreeMap::new(),
        overrides: None,
        app: AppFacts::default(),
        cluster: ClusterFacts::default(),
        settings: Arc::new(RenderSettings::default()),
    }
}

fn warm(criterion: &mut Criterion) {
    let Ok(directory) = tempfile::tempdir() else { return };
    let Ok(renderer) = Renderer::new(RendererConfig::new(directory.path())) else { return };
    let request = request();
    // An earlier result, and not another rendering, is what is measured.
    let _ = renderer.render(&request, Freshness::Cached);
    let again = renderer.render(&request, Freshness::Cached);
    assert!(again.is_ok_and(|rendered| rendered.cached && rendered.manifests.len() == 50), "not cached");
    let mut group = criterion.benchmark_group("directory of 50 objects");
    group.bench_function("cold", |bencher| bencher.iter(|| renderer.render(&request, Freshness::Fresh)));
    group.bench_function("warm", |bencher| bencher.iter(|| renderer.render(&request, Freshness::Cached)));
    group.finish();
}

criterion_group!(benches, warm);
criterion_main!(benches);
