//! Versions, manuals, completion scripts and rendering.

use anyhow::Result;
use plumb_testkit::git::GitRepo;
use plumb_testkit::objects;

use crate::shell::Shell;

#[test]
fn versions_manuals_and_rendering() -> Result<()> {
    let mut shell = Shell::new()?;
    shell.transcript.call(env!("CARGO_PKG_VERSION"), "VERSION");
    shell.transcript.call(std::env::consts::ARCH, "ARCH");
    shell.plumb("plumb version --client --short")?;
    shell.plumb("plumb version --client -o json")?;
    shell.run("argocd version --client --short", &[], "")?;
    shell.plumb("plumb --version")?;
    let man = shell.quietly("plumb man", &[], "")?;
    assert!(man.code == 0 && man.stdout.contains(".TH plumb 1"), "{}", man.stdout);
    let dir = shell.home.path().join("man");
    shell.plumb("plumb man --dir man")?;
    assert!(dir.join("plumb-app-sync.1").is_file());
    for name in ["bash", "zsh", "fish"] {
        let script = shell.quietly(&format!("plumb completion {name}"), &[], "")?;
        assert!(script.code == 0 && script.stdout.contains("PLUMB_COMPLETE"), "{}", script.stdout);
    }
    shell.plumb("plumb completion tcsh")?;
    let repo = GitRepo::new()?;
    let map = objects::config_map("map", &[("a", "1")]);
    repo.commit(&[("app/map.yaml", objects::manifests(&[map]))])?;
    let app = objects::application("shop", &repo.url(), "app", "web");
    shell.file("app.yaml", &objects::manifests(&[app]))?;
    let checkout = repo.path().display().to_string();
    shell.transcript.call(&checkout, "CHECKOUT");
    shell.plumb(&format!("plumb render app.yaml --checkout {checkout}"))?;
    shell.plumb("plumb render nothing.yaml")?;
    shell.transcript.check("offline")
}

#[test]
fn the_version_is_printed_without_a_cluster() -> Result<()> {
    let shell = Shell::new()?;
    let said = shell.quietly("plumb version", &[], "")?;
    assert!(said.stdout.starts_with("plumb: v"), "{}", said.stdout);
    assert!(said.stderr.starts_with("note: server version unknown: cannot "), "{}", said.stderr);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let json = shell.quietly("plumb version -o json", &[], "")?;
    assert!(json.stdout.starts_with('{') && !json.stdout.contains("\"server\""), "{}", json.stdout);
    assert_eq!(json.code, 0, "{}", json.stderr);
    Ok(())
}
