//! Paths of an Application that lead out of the repository.

use super::prelude::*;

#[test]
fn app_paths_outside() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    for path in ["..", "../outside", "app/../../outside", "/etc", "app/../../../../../../etc"] {
        fails(&workbench, path, None, &["app path"]);
    }
    fails(&workbench, "", None, &["has no path"]);
    fails(&workbench, "app/a.yaml", None, &["does not exist as a directory"]);
    fails(&workbench, "App", None, &["App: app path does not exist"]);
}

#[test]
fn globs_that_explode() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    let options = |include: String| {
        Some(SourceTool::Directory(DirectoryOptions {
            include: Some(include),
            ..DirectoryOptions::default()
        }))
    };
    let started = Instant::now();
    let _ = workbench.render("app", options("{a,b,c,d}*".repeat(50)));
    let _ = workbench.render("app", options("*a".repeat(5000)));
    assert!(started.elapsed() < Duration::from_secs(5));
    fails(&workbench, "app", options("[".to_owned()), &["directory.include"]);
}
