//! Generators and templates, from what a user writes to the Applications.

#![expect(clippy::panic, clippy::expect_used, reason = "a test says what it expects")]

mod details;
mod git;
mod known;
mod properties;

use expect_test::{Expect, expect};
use known::Known;
use plumb_appset::{
    Generated, GenerationError, HttpAnswer, PullRequest, Reason, Repository, Settings, Total, generate,
    generate_within,
};
use plumb_core::yaml::{Limits, parse_first};
use plumb_crd::ApplicationSet;
use serde_json::json;

fn settings() -> Settings {
    Settings {
        new_git_file_globbing: false,
        include_hidden_directories: false,
        limits: plumb_gotemplate::Limits::default(),
        total: Total::default(),
        now: jiff::Timestamp::UNIX_EPOCH,
        seed: [7; 32],
    }
}

/// A set with this `spec`. Without a template it has one whose name is all that matters.
fn set(spec: &str) -> ApplicationSet {
    let document = parse_first(spec, &Limits::default()).expect("the spec is YAML").expect("there is a spec");
    let mut spec = document.value;
    let name = spec["name"].take();
    let usual = json!({
        "metadata": {"name": name},
        "spec": {"project": "default", "source": {"repoURL": "https://git.test/r", "path": "."},
                 "destination": {"server": "https://kubernetes.default.svc", "namespace": "x"}},
    });
    if spec.get("template").is_none() {
        spec["template"] = usual;
    }
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "set", "namespace": "argocd"}, "spec": spec,
    });
    ApplicationSet::from_json(&object).expect("the set is valid")
}

fn run(known: &Known, spec: &str) -> Result<Generated, GenerationError> {
    generate(&set(spec), known, &settings())
}

/// The names of the Applications, or the error.
fn check(known: &Known, spec: &str, expected: &Expect) {
    let shown = match run(known, spec) {
        Ok(generated) => {
            let names =
                generated.applications.iter().map(|app| app["metadata"]["name"].as_str().unwrap_or_default());
            names.collect::<Vec<_>>().join("\n")
        }
        Err(error) => format!("{}: {error}", error.reason.name()),
    };
    expected.assert_eq(&shown);
}

/// One Application as JSON.
fn check_application(known: &Known, spec: &str, expected: &Expect) {
    let generated = run(known, spec).expect("Applications");
    let [application] = generated.applications.as_slice() else { panic!("one Application") };
    expected.assert_eq(&serde_json::to_string_pretty(application).expect("JSON"));
}

#[test]
fn a_list_gives_its_elements() {
    let known = Known::default();
    let list =
        "generators: [{list: {elements: [{env: dev, values: {zone: a}}, {env: prod, values: {zone: b}}]}}]";
    check(
        &known,
        &format!("{list}\nname: '{{{{env}}}}-{{{{ values.zone }}}}-{{{{unknown}}}}'"),
        &expect![[r"
        dev-a-{{unknown}}
        prod-b-{{unknown}}"]],
    );
    check(
        &known,
        &format!("{list}\ngoTemplate: true\nname: '{{{{.env | upper}}}}-{{{{.values.zone}}}}'"),
        &expect![[r"
            DEV-a
            PROD-b"]],
    );
    check(
        &known,
        "generators: [{list: {elements: [{n: 3}]}}]\nname: x",
        &expect!["ApplicationGenerationFromParamsError: error parsing value as string %!w(<nil>)"],
    );
    check(
        &known,
        "generators: [{list: {elementsYaml: '[{n: 3}, {n: 4}]'}}]\ngoTemplate: true\nname: 'x{{.n}}'",
        &expect![[r"
            x<no value>
            x<no value>"]],
    );
}

#[test]
fn clusters_are_selected_by_label_and_the_local_one_is_added_without_a_selector() {
    let known = Known::default().cluster("prod", "https://prod.test", &[("env", "prod")]).cluster(
        "Dev_1",
        "https://dev.test",
        &[("env", "dev")],
    );
    let name = "name: '{{nameNormalized}}'";
    check(
        &known,
        &format!("generators: [{{clusters: {{}}}}]\n{name}"),
        &expect![[r"
        in-cluster
        prod
        dev-1"]],
    );
    check(
        &known,
        &format!("generators: [{{clusters: {{selector: {{matchLabels: {{env: dev}}}}}}}}]\n{name}"),
        &expect!["dev-1"],
    );
    let values =
        "generators: [{clusters: {selector: {matchLabels: {env: prod}}, values: {url: '{{server}}/x'}}}]";
    check(&known, &format!("{values}\nname: '{{{{values.url}}}}'"), &expect!["https://prod.test/x"]);
    check(
        &known,
        "generators: [{clusters: {flatList: true}}]\ngoTemplate: true\nname: '{{len .clusters}}'",
        &expect!["3"],
    );
    check(
        &known,
        "generators: [{clusters: {}}]\ngoTemplate: true\ngoTemplateOptions: [missingkey=error]\nname: '{{.metadata.labels.env}}'",
        &expect![[
            r#"RenderTemplateParamsError: failed to execute go template {{.metadata.labels.env}}: template: base:1:11: executing "base" at <.metadata.labels.env>: map has no entry for key "metadata""#
        ]],
    );
}

#[test]
fn all_rounds_of_a_generation_share_one_budget() {
    let spec = "generators: [{list: {elements: [{n: a}]}}, {git: {repoURL: r, revision: HEAD, directories: [{path: '*'}]}}]\ngoTemplate: true\nname: '{{.n}}'";
    let known = Known::default().files(&[("apps/x", "")]);
    let mut left = 10_000;
    let mut n_rounds = 0;
    let error = loop {
        match generate_within(&set(spec), &known, &settings(), &mut left) {
            Ok(_) => n_rounds += 1,
            Err(error) => break error,
        }
        assert!(n_rounds < 10_000, "the budget never ends");
    };
    assert!(n_rounds > 1 && error.message.contains("exceeds its limit"), "{n_rounds}: {error}");
}

#[test]
fn a_revision_that_cannot_be_read_is_an_error_and_one_that_is_not_there_yet_is_not() {
    let spec = |revision: &str| {
        format!(
            "generators: [{{git: {{repoURL: r, revision: {revision}, directories: [{{path: '*'}}]}}}}]\nname: x"
        )
    };
    check(
        &Known::default(),
        &spec("gone"),
        &expect![
            "ApplicationGenerationFromParamsError: error generating params from git: error getting directories from repo: no revision gone"
        ],
    );
    let error = run(&Known::default(), &spec("later")).expect_err("not gathered");
    assert_eq!(error.reason, Reason::Unanswered);
    let both = "generators: [{list: {elements: [{n: 1}]}}, {git: {repoURL: r, revision: later, files: [{path: x}]}}]\nname: x";
    let error = run(&Known::default(), both).expect_err("one generator fails, the other waits");
    assert_eq!(error.reason, Reason::Unanswered, "what is missing comes first");
}

#[test]
fn a_matrix_combines_and_the_second_generator_sees_the_first() {
    let known = Known::default().files(&[("dev/a/k.yaml", ""), ("prod/b/k.yaml", "")]);
    let matrix = "generators:\n- matrix:\n    generators:\n    - list: {elements: [{env: dev}, {env: prod}]}\n    - git: {repoURL: r, revision: HEAD, directories: [{path: '{{env}}/*'}]}\n";
    check(
        &known,
        &format!("{matrix}name: '{{{{env}}}}-{{{{path}}}}'"),
        &expect![[r"
        dev-dev/a
        prod-prod/b"]],
    );
    let clash = "generators: [{matrix: {generators: [{list: {elements: [{a: x}]}}, {list: {elements: [{a: y}]}}]}}]\nname: '{{a}}'";
    check(
        &known,
        clash,
        &expect![
            "ApplicationGenerationFromParamsError: failed to get params for second generator in the matrix generator: child generator returned an error on parameter generation: error parsing value as string %!w(<nil>)"
        ],
    );
    let first_wins = "generators: [{matrix: {generators: [{list: {elements: [{a: x}]}}, {list: {elements: [{a: y}]}}]}}]\ngoTemplate: true\nname: '{{.a}}'";
    check(&known, first_wins, &expect!["x"]);
    check(
        &known,
        "generators: [{matrix: {generators: [{list: {elements: []}}]}}]\nname: x",
        &expect![
            "ApplicationGenerationFromParamsError: found less than two generators, Matrix support only two"
        ],
    );
}

#[test]
fn a_merge_overrides_the_first_generator() {
    let known = Known::default();
    let merge = "generators:\n- merge:\n    mergeKeys: [env]\n    generators:\n    - list: {elements: [{env: dev, size: s}, {env: prod, size: s}]}\n    - list: {elements: [{env: prod, size: l}, {env: other, size: x}]}\n";
    check(
        &known,
        &format!("{merge}name: '{{{{env}}}}-{{{{size}}}}'"),
        &expect![[r"
        dev-s
        prod-l"]],
    );
    let twice = "generators: [{merge: {mergeKeys: [env], generators: [{list: {elements: [{env: a}, {env: a}]}}, {list: {elements: []}}]}}]\nname: x";
    check(
        &known,
        twice,
        &expect![[
            r#"ApplicationGenerationFromParamsError: error getting param sets by merge key: the parameters from a generator were not unique by the given mergeKeys, Merge requires all param sets to be unique. Duplicate key was {"env":"a"}"#
        ]],
    );
    check(
        &known,
        "generators: [{merge: {mergeKeys: [], generators: [{list: {}}, {list: {}}]}}]\nname: x",
        &expect![
            "ApplicationGenerationFromParamsError: error getting param sets by merge key: no merge keys were specified, Merge requires at least one"
        ],
    );
}

#[test]
fn a_plugin_answers_with_parameters() {
    let spec = "generators: [{plugin: {configMapRef: {name: plugin}, input: {parameters: {k: v}}, values: {v: '{{.n}}!'}}}]\ngoTemplate: true\nname: '{{.n}}-{{.values.v}}-{{.generator.input.parameters.k | toJson}}'";
    let known = |status: u16, body: &str| Known {
        plugin: Some(HttpAnswer { status, body: body.to_owned() }),
        ..Known::default()
    };
    check(
        &known(200, r#"{"output": {"parameters": [{"n": "a"}, {"n": 2}]}}"#),
        spec,
        &expect![[r#"
        a-a!-"v"
        2-2!-"v""#]],
    );
    check(&known(200, ""), spec, &expect![]);
    // As Go reads it: the case of names does not count, and nor does what follows.
    check(
        &known(200, r#"{"Output": {"PARAMETERS": [{"n": "a"}]}} {"rest": 1}"#),
        spec,
        &expect![[r#"a-a!-"v""#]],
    );
    check(
        &known(500, r#"{"message": "down"}"#),
        spec,
        &expect![
            "ApplicationGenerationFromParamsError: error listing params: error get api 'set': API error with status code 500: down"
        ],
    );
    check(
        &known(200, "<html>"),
        spec,
        &expect![
            "ApplicationGenerationFromParamsError: error listing params: error get api 'set': expected value at line 1 column 1: <html>"
        ],
    );
    check(
        &known(200, r#"{"output": {"parameters": {}}}"#),
        spec,
        &expect![[
            r#"ApplicationGenerationFromParamsError: error listing params: error get api 'set': json: cannot unmarshal object into Go struct field Output.output.parameters of type []map[string]interface {}: {"output": {"parameters": {}}}"#
        ]],
    );
}

#[test]
fn a_decision_resource_names_clusters() {
    let object = |status: serde_json::Value| json!({"metadata": {"name": "p"}, "status": status});
    let known = |objects: Vec<serde_json::Value>| {
        Known { objects, ..Known::default() }.cluster("prod", "https://prod.test", &[])
    };
    let spec = "generators: [{clusterDecisionResource: {configMapRef: placement, name: p}}]\nname: '{{name}}-{{server}}-{{weight}}'";
    let decisions = json!({"decisions": [{"clusterName": "prod", "weight": 3}, {"clusterName": "unknown"}]});
    check(&known(vec![object(decisions)]), spec, &expect!["prod-https://prod.test-3"]);
    check(
        &known(vec![object(json!({"other": []}))]),
        spec,
        &expect![[
            r#"ApplicationGenerationFromParamsError: the status of p has no list "decisions"; set statusListKey in the ConfigMap"#
        ]],
    );
    check(
        &known(Vec::new()),
        spec,
        &expect!["ApplicationGenerationFromParamsError: no clusterDecisionResources found"],
    );
    check(
        &known(vec![object(json!({"decisions": [{"clusterName": "prod"}, "prod"]}))]),
        spec,
        &expect![[
            r#"ApplicationGenerationFromParamsError: the list "decisions" in the status of p has an entry of type string; each must be a map with matchKey"#
        ]],
    );
    let local = json!({"decisions": [{"clusterName": "in-cluster", "weight": 1}]});
    check(&known(vec![object(local.clone())]), spec, &expect!["in-cluster-https://kubernetes.default.svc-1"]);
    let named = known(vec![object(local)]).cluster("here", "https://kubernetes.default.svc", &[]);
    check(&named, spec, &expect![""]);
}

#[test]
fn repositories_and_pull_requests_are_parameters() {
    let known = Known {
        repositories: vec![Repository {
            organization: "o".to_owned(),
            repository: "r".to_owned(),
            repository_id: json!(7),
            branch: "Feature/X".to_owned(),
            sha: "0123456789abcdef".to_owned(),
            labels: vec!["a".to_owned(), "b".to_owned()],
            ..Repository::default()
        }],
        pull_requests: vec![PullRequest {
            number: 12,
            branch: "Fix_日本 & more".to_owned(),
            head_sha: "0123456789abcdef".to_owned(),
            labels: Some(vec!["a".to_owned()]),
            ..PullRequest::default()
        }],
        ..Known::default()
    };
    check(
        &known,
        "generators: [{scmProvider: {github: {organization: o}}}]\nname: '{{organization}}/{{repository}} {{branchNormalized}} {{short_sha}} {{short_sha_7}} {{labels}} {{repository_id}}'",
        &expect!["o/r feature-x 01234567 0123456 a,b {{repository_id}}"],
    );
    check(
        &known,
        "generators: [{pullRequest: {github: {owner: o, repo: r}}}]\ngoTemplate: true\nname: '{{.number}} {{.branch_slug}} {{.head_short_sha_7}} {{.labels}}'",
        &expect!["12 fix-ri-ben-and-more 0123456 [a]"],
    );
}

#[test]
fn a_selector_filters_parameter_sets() {
    let list = "elements: [{url: 'https://a.test', size: '1'}, {url: 'https://b.test'}]";
    let spec = |selector: &str| {
        format!("generators: [{{list: {{{list}}}, selector: {selector}}}]\nname: '{{{{url}}}}'")
    };
    let known = Known::default();
    check(&known, &spec("{matchLabels: {url: 'https://b.test'}}"), &expect!["https://b.test"]);
    check(
        &known,
        &spec("{matchExpressions: [{key: size, operator: DoesNotExist}]}"),
        &expect!["https://b.test"],
    );
    check(
        &known,
        &spec("{matchExpressions: [{key: size, operator: Like, values: [x]}]}"),
        &expect![[
            r#"ApplicationGenerationFromParamsError: error parsing label selector: "Like" is not a valid pod selector operator"#
        ]],
    );
    check(
        &known,
        &spec("{matchExpressions: [{key: size, operator: In}]}"),
        &expect![
            "ApplicationGenerationFromParamsError: error parsing label selector: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        ],
    );
    check(
        &known,
        &spec("{matchLabels: {'path[0]': x}}"),
        &expect![[
            r#"ApplicationGenerationFromParamsError: error parsing label selector: key: Invalid value: "path[0]": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#
        ]],
    );
}

#[test]
fn a_generator_overrides_the_template() {
    let spec = "
generators:
- list:
    elements: [{env: dev}]
    template:
      metadata: {labels: {from: generator}}
      spec: {project: '', destination: {namespace: '{{env}}'}, syncPolicy: {automated: {prune: false}}}
template:
  metadata: {name: '{{env}}', labels: {from: set, kept: '{{env}}'}}
  spec:
    project: default
    source: {repoURL: r, path: .}
    destination: {server: https://kubernetes.default.svc, namespace: x}
    syncPolicy: {automated: {prune: true}}
";
    check_application(
        &Known::default(),
        spec,
        &expect![[r#"
        {
          "metadata": {
            "finalizers": [
              "resources-finalizer.argocd.argoproj.io"
            ],
            "labels": {
              "from": "generator",
              "kept": "dev"
            },
            "name": "dev",
            "namespace": "argocd"
          },
          "spec": {
            "destination": {
              "namespace": "dev",
              "server": "https://kubernetes.default.svc"
            },
            "project": "default",
            "source": {
              "path": ".",
              "repoURL": "r"
            },
            "syncPolicy": {
              "automated": {
                "prune": true
              }
            }
          }
        }"#]],
    );
}

#[test]
fn a_template_patch_merges_as_kubernetes_does() {
    let patched = |patch: &str| {
        format!(
            "generators: [{{list: {{elements: [{{env: dev}}]}}}}]\ntemplatePatch: |\n{patch}\ntemplate:\n  metadata: {{name: '{{{{env}}}}', labels: {{a: b}}}}\n  spec: {{project: default, source: {{repoURL: r, path: ., helm: {{valueFiles: [a]}}}}, destination: {{name: in-cluster}}}}"
        )
    };
    let patch = "  metadata:\n    labels: {a: null, c: '{{env}}'}\n    finalizers: [other]\n  spec:\n    project: ignored\n    source: {helm: {valueFiles: [b, c]}}\n";
    check_application(
        &Known::default(),
        &patched(patch),
        &expect![[r#"
        {
          "metadata": {
            "finalizers": [
              "other",
              "resources-finalizer.argocd.argoproj.io"
            ],
            "labels": {
              "c": "dev"
            },
            "name": "dev",
            "namespace": "argocd"
          },
          "spec": {
            "destination": {
              "name": "in-cluster"
            },
            "project": "default",
            "source": {
              "helm": {
                "valueFiles": [
                  "b",
                  "c"
                ]
              },
              "path": ".",
              "repoURL": "r"
            }
          }
        }"#]],
    );
    check(
        &Known::default(),
        &patched("  metadata: {labels: {a: 1}}"),
        &expect![[
            r#"RenderTemplateParamsError: invalid templatePatch "metadata: {labels: {a: 1}}\n": json: cannot unmarshal: labels.a: expected a string, found the number 1"#
        ]],
    );
    check(&Known::default(), &patched("  # nothing"), &expect!["dev"]);
}

#[test]
fn resources_are_preserved_on_demand() {
    let spec = "generators: [{list: {elements: [{env: dev}]}}]\nsyncPolicy: {preserveResourcesOnDeletion: true}\nname: '{{env}}'";
    let generated = run(&Known::default(), spec).expect("Applications");
    assert_eq!(generated.applications[0]["metadata"].get("finalizers"), None);
    let spec = "generators: [{list: {elements: [{}]}}]\nname: plain";
    let generated = run(&Known::default(), spec).expect("Applications");
    assert_eq!(generated.applications[0]["metadata"].get("finalizers"), None, "an empty set renders nothing");
}

#[test]
fn one_bad_template_keeps_all_applications() {
    let spec = "generators: [{list: {elements: [{n: a}, {m: b}]}}]\ngoTemplate: true\ngoTemplateOptions: [missingkey=error]\nname: '{{.n}}'";
    check(
        &Known::default(),
        spec,
        &expect![[
            r#"RenderTemplateParamsError: failed to execute go template {{.n}}: template: base:1:2: executing "base" at <.n>: map has no entry for key "n""#
        ]],
    );
}
