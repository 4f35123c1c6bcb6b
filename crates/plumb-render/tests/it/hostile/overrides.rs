//! Overrides in Git that ask for more than they may.

use super::prelude::*;

#[test]
fn files_in_git_cannot_move_the_source() {
    let workbench = workbench(&[
        ("app/a.yaml", GOOD),
        ("app/.argocd-source.yaml", "repoURL: file:///etc\npath: ../outside\ntargetRevision: evil\n"),
    ]);
    let mut request = workbench.request("app", None);
    let source = request.source.clone();
    request.overrides = Some(Arc::new(move |patches| {
        let text = |key: &str| patches[0][key].as_str().unwrap_or_default().to_owned();
        Ok(Source { repo_url: text("repoURL"), path: Some(text("path")), ..source.clone() })
    }));
    let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/good"]);
}

#[test]
fn an_override_that_is_a_link_outside() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    workbench.link("app/.argocd-source.yaml", "../../secret.yaml");
    let mut request = workbench.request("app", None);
    request.overrides = Some(Arc::new(|_| Err("not reached".to_owned())));
    fails_with(&workbench, &request, &["app/.argocd-source.yaml", "outside"]);
}
