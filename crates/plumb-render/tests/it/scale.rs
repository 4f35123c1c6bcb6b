//! Many apps in one repository: only what is touched is rendered.

use std::time::Instant;

use crate::workbench::Workbench;

#[test]
fn every_commit_to_one_of_five_hundred_apps_is_one_rendering() {
    const APPS: usize = 500;
    // Unoptimised it takes ten times as long and shows the same.
    const COMMITS: usize = if cfg!(debug_assertions) { 8 } else { 60 };
    let manifest = |app: usize, version: usize| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: app-{app}}}\ndata: {{version: \"{version}\"}}\n"
        )
    };
    let workbench = Workbench::new(&[]);
    for app in 0..APPS {
        workbench.write(&format!("apps/{app}/cm.yaml"), &manifest(app, 0));
    }
    let render_all =
        || (0..APPS).filter(|app| !workbench.render(&format!("apps/{app}"), None).unwrap().cached).count();
    assert_eq!(render_all(), APPS);
    let started = Instant::now();
    for commit in 1..=COMMITS {
        let app = commit * 7 % APPS;
        workbench.write(&format!("apps/{app}/cm.yaml"), &manifest(app, commit));
        assert_eq!(render_all(), 1, "commit {commit}");
    }
    println!("{COMMITS} commits, {APPS} apps each: {:?}", started.elapsed());
}
