//! Overlays that reach for what is not theirs.

use super::prelude::*;

fn refused(resources: &str, words: &[&str]) {
    let workbench = workbench(&[("app/kustomization.yaml", resources), ("app/a.yaml", GOOD)]);
    workbench.link("app/link.yaml", "a.yaml");
    let mut all = vec!["app/kustomization.yaml"];
    all.extend(words);
    fails(&workbench, "app", None, &all);
}

#[test]
fn absolute_and_climbing_resources() {
    refused("resources: [/etc/passwd]\n", &["absolute"]);
    refused("resources: [../../secret.yaml]\n", &["outside the repository"]);
    refused("resources: [../../outside]\n", &["outside the repository"]);
    refused("bases: [../../outside]\n", &["outside the repository"]);
    refused("components: [../../outside]\n", &["outside the repository"]);
    refused("configMapGenerator: [{name: x, files: [k=/etc/passwd]}]\n", &["absolute"]);
    refused("configMapGenerator: [{name: x, envs: [../../secret.yaml]}]\n", &["outside"]);
    refused("secretGenerator: [{name: x, files: [../../secret.yaml]}]\n", &["outside"]);
    refused("patches: [{path: /etc/passwd}]\n", &["absolute"]);
    refused("replacements: [{path: ../../secret.yaml}]\n", &["outside"]);
    refused("openapi: {path: /etc/passwd}\n", &["absolute"]);
    refused("helmGlobals: {chartHome: /etc}\n", &["absolute"]);
}

#[test]
fn remote_bases() {
    for base in [
        "https://example.com/base.yaml",
        "github.com/example/repo//base?ref=main",
        "git@github.com:example/repo.git",
        "ssh://git@example.com/repo",
        "git::https://example.com/repo",
        "https://user:hunter2@example.com/repo?ref=x",
    ] {
        refused(&format!("resources: [\"{base}\"]\n"), &["refused", "no network"]);
    }
    refused("helmCharts: [{name: x, repo: \"https://example.com\"}]\n", &["no network"]);
}

/// Kustomize reads keys in any case, and old names of fields.
#[test]
fn keys_in_any_case() {
    for key in ["Resources", "RESOURCES", "reſources", "Bases", "COMPONENTS", "CRDs", "Configurations"] {
        refused(&format!("{key}: [\"http://127.0.0.1:9/x\"]\n"), &["no network"]);
        refused(&format!("{key}: [../../outside]\n"), &["outside the repository"]);
    }
    for text in [
        "Generators: [\"https://example.com/g.yaml\"]",
        "TRANSFORMERS: [\"https://example.com/t.yaml\"]",
        "validatorS: [\"https://example.com/v.yaml\"]",
        "ConfigMapGenerator: [{name: x, FILES: [\"https://example.com/f\"]}]",
        "configMapGenerator: [{name: x, Envs: [\"https://example.com/f\"]}]",
        "configmapgenerator: [{name: x, ENV: \"https://example.com/f\"}]",
        "secretgenerator: [{name: x, Files: [\"k=https://example.com/f\"]}]",
        "Patches: [{Path: \"https://example.com/p\"}]",
        "PatchesStrategicMerge: [\"https://example.com/p\"]",
        "PatchesJson6902: [{PATH: \"https://example.com/p\"}]",
        "Replacements: [{Path: \"https://example.com/p\"}]",
        "OpenAPI: {Path: \"https://example.com/p\"}",
        "HelmCharts: [{name: x, Repo: \"https://example.com\"}]",
        "helmcharts: [{name: x, REPO: \"oci://example.com/x\"}]",
        "HelmChartInflationGenerator: [{chartName: x, ChartRepoURL: \"https://example.com\"}]",
        "resources: [foo@example.com/org/repo]",
        "resources: [\"foo@example.com:org/repo\"]",
        "resources: [GIT@example.com/org/repo]",
        "resources: [\"Git::ssh://example.com/repo\"]",
        "resources: [\"GitHub.com/example/repo\"]",
        "resources: [\"HTTPS://example.com/x\"]",
    ] {
        refused(&format!("{text}\n"), &["no network"]);
    }
    for text in [
        "HelmGlobals: {ChartHome: /etc}",
        "helmCharts: [{name: x, ValuesFile: /etc/passwd}]",
        "helmCharts: [{name: x, AdditionalValuesFiles: [/etc/passwd]}]",
        "Components: [/etc]",
        "resources: [a.yaml]\nResources: [/etc/passwd]",
    ] {
        refused(&format!("{text}\n"), &["absolute"]);
    }
    refused("helmCharts: [{Name: ../../x}]\n", &["not the name of a chart"]);
}

#[test]
fn plugins_with_keys_in_any_case() {
    for (kind, text) in [
        ("ConfigMapGenerator", "Files: [/etc/passwd]"),
        ("SecretGenerator", "ENVS: [/etc/passwd]"),
        ("PatchTransformer", "Path: /etc/passwd"),
        ("PatchStrategicMergeTransformer", "Paths: [/etc/passwd]"),
        ("ReplacementTransformer", "Replacements: [{Path: /etc/passwd}]"),
        ("HelmChartInflationGenerator", "ValuesFile: /etc/passwd"),
        ("ValueAddTransformer", "TargetFilePath: /etc/passwd"),
    ] {
        let config = format!("kind: {kind}\nmetadata: {{name: x}}\n{text}");
        let inline = config.replace('\n', "\n    ");
        refused(&format!("Transformers:\n  - |-\n    {inline}\n"), &["absolute"]);
        let workbench =
            workbench(&[("app/kustomization.yaml", "GENERATORS: [g.yaml]\n"), ("app/g.yaml", &config)]);
        fails(&workbench, "app", None, &["app/kustomization.yaml", "absolute"]);
    }
}

#[test]
fn credentials_in_addresses_are_not_shown() {
    let workbench =
        workbench(&[("app/kustomization.yaml", "resources: [\"https://user:hunter2@example.com/repo\"]\n")]);
    let error = workbench.render("app", None).unwrap_err().full_message();
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn file_addresses_even_with_network() {
    for base in ["file:///etc", "git::file:///etc", "ext::sh -c id"] {
        let files = [("app/kustomization.yaml", format!("resources: [\"{base}\"]\n"))];
        let workbench = workbench(&[(files[0].0, &files[0].1)]);
        let mut request = workbench.request("app", None);
        let settings = RenderSettings { allow_network: true, ..RenderSettings::default() };
        request.settings = Arc::new(settings);
        fails_with(&workbench, &request, &["app/kustomization.yaml", "neither in the repository"]);
    }
}

#[test]
fn links_to_files_outside() {
    let workbench =
        workbench(&[("app/kustomization.yaml", "configMapGenerator: [{name: x, files: [secret.yaml]}]\n")]);
    workbench.link("app/secret.yaml", "../../secret.yaml");
    fails(&workbench, "app", None, &["app/secret.yaml", "outside the repository"]);
}

#[test]
fn programs_in_transformers_do_not_run() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = workbench(&[
        ("app/kustomization.yaml", "resources: [a.yaml]\ntransformers: [t.yaml]\n"),
        ("app/a.yaml", GOOD),
        ("app/run.sh", "#!/bin/sh\ntouch ran\ncat\n"),
    ]);
    let function = "apiVersion: example.com/v1\nkind: Evil\nmetadata:\n  name: t\n  annotations:\n    \
                    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n";
    workbench.write("app/t.yaml", function);
    fails(&workbench, "app", None, &["kustomize build"]);
    assert!(!workbench.root().join("app/ran").exists());
}

#[test]
fn options_of_the_settings_that_run_programs() {
    let workbench = workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
    for option in ["--enable-exec", "--enable-alpha-plugins", "--network=true"] {
        let mut request = workbench.request("app", None);
        let settings =
            RenderSettings { kustomize_build_options: option.to_owned(), ..RenderSettings::default() };
        request.settings = Arc::new(settings);
        fails_with(&workbench, &request, &["kustomize.buildOptions", option]);
    }
}

#[test]
fn options_of_the_application_that_leave() {
    let workbench = workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
    let components =
        KustomizeOptions { components: vec!["../../outside".to_owned()], ..KustomizeOptions::default() };
    fails(&workbench, "app", Some(kustomize(components)), &["kustomize.components", "outside"]);
    let patch = KustomizePatch { path: Some("/etc/passwd".to_owned()), ..KustomizePatch::default() };
    let patches = KustomizeOptions { patches: vec![patch], ..KustomizeOptions::default() };
    fails(&workbench, "app", Some(kustomize(patches)), &["kustomize.patches", "absolute"]);
    let version =
        KustomizeOptions { version: Some("../../bin/sh".to_owned()), ..KustomizeOptions::default() };
    fails(&workbench, "app", Some(kustomize(version)), &["kustomize.version", "not registered"]);
}

#[test]
fn values_that_look_like_options() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
    let options = KustomizeOptions { name_prefix: Some("--help".to_owned()), ..KustomizeOptions::default() };
    let rendered = renders_without_canary(&workbench, "app", Some(kustomize(options)));
    assert_eq!(names(&rendered), ["ConfigMap/--helpgood"], "the value is a value, nothing else");
}

#[test]
fn overlays_that_contain_each_other() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = workbench(&[
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a]\n"),
    ]);
    fails(&workbench, "a", None, &["kustomize build", "cycle"]);
}

#[test]
fn a_kustomization_that_is_a_bomb() {
    let bomb = bomb();
    let workbench = workbench(&[("app/kustomization.yaml", &bomb)]);
    fails(&workbench, "app", None, &["app/kustomization.yaml"]);
}
