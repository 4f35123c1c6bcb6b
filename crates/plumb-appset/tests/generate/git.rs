//! The generator `git`.

use expect_test::{Expect, expect};
use plumb_appset::{Settings, generate};

use super::{Known, check, set, settings};

#[test]
fn git_directories_match_within_one_segment() {
    let known = Known::default().files(&[
        ("apps/web/k.yaml", ""),
        ("apps/api/base/k.yaml", ""),
        ("apps/.hidden/k.yaml", ""),
        ("apps/old/k.yaml", ""),
    ]);
    let git = |inner: &str| {
        format!("generators: [{{git: {{repoURL: r, revision: HEAD, {inner}}}}}]\nname: '{{{{path}}}}'")
    };
    check(
        &known,
        &git("directories: [{path: apps/*}, {path: apps/old, exclude: true}]"),
        &expect![[r"
        apps/api
        apps/web"]],
    );
    check(
        &known,
        &git("directories: [{path: apps/**}]"),
        &expect![[r"
        apps/api
        apps/old
        apps/web"]],
    );
    check(&known, &git("directories: [{path: 'apps/['}]"), &expect![]);
    check(&known, &git(""), &expect!["ApplicationGenerationFromParamsError: ApplicationSet is empty"]);
}

#[test]
fn git_files_are_parameters() {
    let known = Known::default().files(&[
        ("envs/dev/config.yaml", "cluster: {name: dev, zones: [a, b]}\nsize: 1000000\ny: 1\n"),
        ("envs/prod/config.json", "[{\"cluster\": {\"name\": \"p1\"}}, {\"cluster\": {\"name\": \"p2\"}}]"),
        ("envs/empty/config.yaml", "# nothing\n"),
        ("broken.yaml", "a: ["),
    ]);
    let git = |path: &str, name: &str, go: bool| {
        format!(
            "generators: [{{git: {{repoURL: r, revision: HEAD, files: [{{path: '{path}'}}]}}}}]\ngoTemplate: {go}\nname: '{name}'"
        )
    };
    check(
        &known,
        &git(
            "envs/*.yaml",
            "{{path.basename}}-{{cluster.name}}-{{cluster.zones.1}}-{{size}}-{{true}}",
            false,
        ),
        &expect![[r"
            dev-dev-b-1e+06-1
            empty-{{cluster.name}}-{{cluster.zones.1}}-{{size}}-{{true}}"]],
    );
    check(
        &known,
        &git("envs/*/config.json", "{{.path.path}}-{{.cluster.name}}", true),
        &expect![[r"
        envs/prod-p1
        envs/prod-p2"]],
    );
    check(
        &known,
        &git("broken.yaml", "x", false),
        &expect![
            "ApplicationGenerationFromParamsError: error generating params from git: unable to process file 'broken.yaml' from repository 'r': unable to parse file: error converting YAML to JSON: yaml: line 2, column 1: expected a value, found the end of the text"
        ],
    );
    check(
        &known,
        &git("/envs", "x", false),
        &expect![
            "ApplicationGenerationFromParamsError: error generating params from git: error retrieving Git files: unable to list files. repo r pattern /envs: '/envs' is outside repository"
        ],
    );
}

#[test]
fn new_globbing_reads_patterns_as_argo_cd_does() {
    let known = Known::default().files(&[
        ("clusters/dev/config.yaml", "name: dev"),
        ("clusters/prod/config.yaml", "name: prod"),
        ("top.yaml", "name: top"),
    ]);
    let check = |paths: &str, expected: &Expect| {
        let spec = format!(
            "generators: [{{git: {{repoURL: r, revision: HEAD, files: [{paths}]}}}}]\nname: '{{{{name}}}}'"
        );
        let settings = Settings { new_git_file_globbing: true, ..settings() };
        let shown = match generate(&set(&spec), &known, &settings) {
            Ok(generated) => {
                let names = generated.applications.iter().map(|app| app["metadata"]["name"].to_string());
                names.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.message.split_once(" pattern ").expect("a pattern").1.to_owned(),
        };
        expected.assert_eq(&shown);
    };
    check("{path: './clusters//*/config.yaml'}", &expect![[r#""dev" "prod""#]]);
    check("{path: '**/*.yaml'}, {path: 'clusters/prod/*.yaml', exclude: true}", &expect![[r#""dev" "top""#]]);
    check(
        "{path: 'clusters/**'}",
        &expect!["clusters/**: clusters is a directory; write a pattern that matches files only"],
    );
    check("{path: '*'}", &expect!["*: clusters is a directory; write a pattern that matches files only"]);
    check("{path: ''}", &expect![": . is a directory; write a pattern that matches files only"]);
    check(
        "{path: '**/*.yaml'}, {path: 'clusters/*', exclude: true}",
        &expect!["clusters/*: clusters/dev is a directory; write a pattern that matches files only"],
    );
    check(
        "{path: 'clusters/{dev,prod/*.yaml'}",
        &expect!["clusters/{dev,prod/*.yaml: syntax error in pattern: a `{` is not closed"],
    );
    check("{path: '../*.yaml'}", &expect!["../*.yaml: '../*.yaml' is outside repository"]);
}
