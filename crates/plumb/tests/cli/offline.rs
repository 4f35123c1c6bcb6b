//! Commands that need no cluster, and the help of all others.

use anyhow::Result;
use plumb_testkit::objects;

use crate::bench::Bench;

#[tokio::test]
async fn versions_manuals_and_completion() -> Result<()> {
    let mut bench = Bench::new().await?;
    bench.transcript.call(env!("CARGO_PKG_VERSION"), "VERSION");
    bench.plumb("plumb version --client --short")?;
    bench.plumb("plumb version --client -o json")?;
    bench.run("argocd version --client --short", &[], "")?;
    bench.plumb("plumb --version")?;
    let whole = bench.quietly("plumb version", &[], "")?;
    assert!(whole.stdout.contains("kubernetes: v1."), "{}", whole.stdout);
    let man = bench.quietly("plumb man", &[], "")?;
    assert!(man.code == 0 && man.stdout.contains(".TH plumb 1"), "{}", man.stdout);
    let dir = bench.home.path().join("man");
    bench.plumb("plumb man --dir man")?;
    assert!(dir.join("plumb-app-sync.1").is_file());
    for shell in ["bash", "zsh", "fish"] {
        let script = bench.quietly(&format!("plumb completion {shell}"), &[], "")?;
        assert!(script.code == 0 && script.stdout.contains("PLUMB_COMPLETE"), "{}", script.stdout);
    }
    bench.plumb("plumb completion tcsh")?;
    let map = objects::config_map("map", &[("a", "1")]);
    bench.repo.commit(&[("app/map.yaml", objects::manifests(&[map]))])?;
    let app = objects::application("shop", &bench.repo.url(), "app", "web");
    bench.file("app.yaml", &objects::manifests(&[app]))?;
    let checkout = bench.repo.path().display().to_string();
    bench.transcript.call(&checkout, "CHECKOUT");
    bench.plumb(&format!("plumb render app.yaml --checkout {checkout}"))?;
    bench.plumb("plumb render nothing.yaml")?;
    bench.application("payments", |_| {}).await?;
    bench.application("parking", |_| {}).await?;
    // As the scripts ask: the words of the line, and which one is being typed.
    let asked = |line: &str, index: &str| {
        bench.quietly(
            &format!("plumb -- {line}"),
            &[("PLUMB_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", index), ("_CLAP_IFS", "\n")],
            "",
        )
    };
    let apps = asked("plumb app get pa", "3")?;
    let mut found: Vec<&str> = apps.stdout.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["parking", "payments"]);
    let projects = asked("plumb proj get def", "3")?;
    assert_eq!(projects.stdout.lines().collect::<Vec<_>>(), ["default"]);
    let verbs = asked("plumb app pat", "2")?;
    assert_eq!(verbs.stdout.lines().collect::<Vec<_>>(), ["patch", "patch-resource"]);
    bench.transcript.check("offline")
}

#[tokio::test]
async fn every_command_has_help_with_an_example() -> Result<()> {
    let mut bench = Bench::new().await?;
    for line in commands() {
        let said = bench.run(&format!("{line} --help"), &[], "")?;
        assert_eq!(said.code, 0, "{line}");
        let is_group = said.stdout.contains("\nCommands:");
        assert!(is_group || said.stdout.contains("`plumb "), "{line} has no example:\n{}", said.stdout);
    }
    bench.transcript.check("help")
}

/// Every command there is, groups included.
fn commands() -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec!["plumb".to_owned()];
    while let Some(line) = open.pop() {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let Ok(output) = std::process::Command::new(env!("CARGO_BIN_EXE_plumb"))
            .args(&words)
            .arg("--help")
            .env_clear()
            .output()
        else {
            continue;
        };
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some((_, rest)) = help.split_once("\nCommands:\n") {
            let inner = rest.lines().take_while(|line| line.starts_with("  "));
            let names = inner.filter_map(|line| {
                let name = line.strip_prefix("  ")?;
                (!name.starts_with(' ')).then(|| name.split_whitespace().next()).flatten()
            });
            open.extend(names.filter(|name| *name != "help").map(|name| format!("{line} {name}")));
        }
        found.push(line);
    }
    found.sort();
    found
}
