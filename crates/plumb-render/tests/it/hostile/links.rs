//! Links in a repository that lead out of it.

use super::prelude::*;

#[test]
fn absolute_link() {
    let workbench = workbench(&[]);
    workbench.link("app/a.yaml", &secret_path(&workbench));
    fails(&workbench, "app", None, &["app/a.yaml", "outside the repository"]);
}

#[test]
fn climbing_link() {
    let workbench = workbench(&[]);
    workbench.link("app/a.yaml", "../../secret.yaml");
    fails(&workbench, "app", None, &["app/a.yaml", "outside the repository"]);
}

#[test]
fn chained_links() {
    let workbench = workbench(&[]);
    workbench.link("app/a.yaml", "b.yaml");
    workbench.link("app/b.yaml", "../step/c.yaml");
    workbench.link("step/c.yaml", "../../secret.yaml");
    fails(&workbench, "app", None, &["step/c.yaml", "outside the repository"]);
}

#[test]
fn link_through_a_linked_directory() {
    let workbench = workbench(&[("x/y/z/keep", "")]);
    workbench.link("up", "x/y/z");
    // The text stays inside. The real path does too, unless `..` is removed by text.
    workbench.link("app/a.yaml", "../up/../../../../secret.yaml");
    fails(&workbench, "app", None, &["outside the repository"]);
}

#[test]
fn link_loop() {
    let workbench = workbench(&[]);
    workbench.link("app/a.yaml", "b.yaml");
    workbench.link("app/b.yaml", "a.yaml");
    fails(&workbench, "app", None, &["app/a.yaml", "more than 40 links"]);
}

#[test]
fn link_to_a_directory_outside() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    workbench.link("app/dir", "../../outside");
    workbench.link("app/etc", "/etc");
    let rendered = renders_without_canary(&workbench, "app", Some(recurse()));
    assert_eq!(names(&rendered), ["ConfigMap/good"]);
}

#[test]
fn the_app_path_is_a_link_outside() {
    let workbench = workbench(&[]);
    workbench.link("app", "../outside");
    fails(&workbench, "app", None, &["app: app path", "outside the repository"]);
}

#[test]
fn link_to_its_own_parent() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
    workbench.link("app/loop", ".");
    fails(&workbench, "app", None, &["app/loop", "links"]);
}

#[test]
fn links_that_double_with_every_level() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
    workbench.write("level30/file", "x");
    for level in (0..30).rev() {
        workbench.link(&format!("level{level}/left"), &format!("../level{}", level + 1));
        workbench.link(&format!("level{level}/right"), &format!("../level{}", level + 1));
    }
    workbench.link("app/start", "../level0");
    fails(&workbench, "app", None, &["limit"]);
}
