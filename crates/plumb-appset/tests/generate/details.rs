//! Details of Argo CD's generators that few sets need.

use expect_test::expect;
use plumb_appset::{HttpAnswer, PullRequest, Repository};
use serde_json::json;

use crate::known::Known;
use crate::{check, run};

#[test]
fn integers_of_servers_and_objects_stay_integers() {
    let repository = Repository {
        repository: "r".to_owned(),
        repository_id: json!(123_456_789),
        branch: "main".to_owned(),
        ..Repository::default()
    };
    let known = Known { repositories: vec![repository], ..Known::default() };
    let spec = "generators: [{scmProvider: {github: {organization: o}}}]\ngoTemplate: true\nname: '{{.repository_id}}'";
    check(&known, spec, &expect!["123456789"]);
    let decisions = json!({"decisions": [{"clusterName": 2_000_000, "weight": 1_500_000, "share": 0.5}]});
    let object = json!({"metadata": {"name": "p"}, "status": decisions});
    let known = Known { objects: vec![object], ..Known::default() }.cluster("2000000", "https://c.test", &[]);
    let spec = "generators: [{clusterDecisionResource: {configMapRef: placement, name: p}}]\nname: '{{name}}-{{weight}}-{{share}}'";
    check(&known, spec, &expect!["2000000-1500000-0.5"]);
}

#[test]
fn a_status_without_content_is_none() {
    let object = json!({"metadata": {"name": "p"}, "status": {}});
    let known = Known { objects: vec![object], ..Known::default() };
    let spec =
        "generators: [{clusterDecisionResource: {configMapRef: placement, name: p}}]\nname: '{{name}}'";
    check(&known, spec, &expect![""]);
}

#[test]
fn labels_of_pull_requests_may_be_nil() {
    let pull =
        |number: i64, labels: Option<Vec<String>>| PullRequest { number, labels, ..PullRequest::default() };
    let known = Known {
        pull_requests: vec![pull(1, None), pull(2, Some(Vec::new())), pull(3, Some(vec!["a".to_owned()]))],
        ..Known::default()
    };
    let spec = "generators: [{pullRequest: {bitbucket: {owner: o, repo: r}}}]\ngoTemplate: true\nname: '{{.number}}-{{.labels | toJson}}-{{.labels}}-{{len .labels}}'";
    check(
        &known,
        spec,
        &expect![[r#"
        1-null-[]-0
        2-[]-[]-0
        3-["a"]-[a]-1"#]],
    );
}

#[test]
fn values_of_a_plugin_see_its_input() {
    let known = Known {
        plugin: Some(HttpAnswer {
            status: 200,
            body: r#"{"output": {"parameters": [{"n": "a"}]}}"#.to_owned(),
        }),
        ..Known::default()
    };
    let spec = "generators: [{plugin: {configMapRef: {name: plugin}, input: {parameters: {k: v}}, values: {v: '{{.generator.input.parameters.k | toJson}}'}}}]\ngoTemplate: true\nname: '{{.values.v}}'";
    check(&known, spec, &expect![[r#""v""#]]);
}

#[test]
fn a_matrix_leaves_the_keys_of_values_and_what_only_the_second_generator_knows() {
    let known = Known::default().cluster("c1", "https://c1.test", &[("env", "dev")]);
    let values = "values: {'{{a}}': '{{a}}-{{name}}'}";
    let spec = format!(
        "generators: [{{matrix: {{generators: [{{list: {{elements: [{{a: x}}]}}}}, {{clusters: {{selector: {{matchLabels: {{env: dev}}}}, {values}}}}}]}}}}]\nname: '{{{{a}}}}'"
    );
    let params = run(&known, &spec).expect("parameters").params;
    let shown = format!("{:?}", params[0].get("values.{{a}}"));
    expect![[r#"Some(Text("x-c1"))"#]].assert_eq(&shown);
    // A function that fails is no missing key.
    let spec = "generators: [{matrix: {generators: [{list: {elements: [{a: x}]}}, {clusters: {values: {v: '{{fail \"no\"}}'}}}]}}]\ngoTemplate: true\nname: x";
    let error = run(&known, spec).expect_err("an error").to_string();
    assert!(error.contains("failed to pre-resolve Values key \"v\""), "{error}");
}

#[test]
fn the_project_of_a_git_generator_is_that_of_the_set() {
    let known = Known::default().files(&[("a/x", "")]);
    let spec = "
generators:
- git:
    repoURL: r
    revision: HEAD
    directories: [{path: '*'}]
    template: {metadata: {}, spec: {project: unknown, destination: {}}}
template:
  metadata: {name: '{{path}}'}
  spec: {project: default, source: {repoURL: r, path: .}, destination: {name: in-cluster}}
";
    check(&known, spec, &expect!["a"]);
}

#[test]
fn an_empty_values_object_of_a_generator_replaces_that_of_the_set() {
    let spec = "
generators:
- list:
    elements: [{env: dev}]
    template:
      metadata: {}
      spec: {project: '', destination: {}, source: {repoURL: '', helm: {valuesObject: {}}}}
template:
  metadata: {name: '{{env}}'}
  spec:
    project: default
    source: {repoURL: r, path: ., helm: {releaseName: x, valuesObject: {a: 1}}}
    destination: {name: in-cluster}
";
    let generated = run(&Known::default(), spec).expect("Applications");
    let helm = &generated.applications[0]["spec"]["source"]["helm"];
    assert_eq!(*helm, json!({"releaseName": "x", "valuesObject": {}}));
}

/// Of several errors the first one in the order of Go's structs is reported.
#[test]
fn the_order_of_fields_decides_which_error_is_reported() {
    for spec in [
        "destination: {server: FIRST, namespace: SECOND}, source: {repoURL: r}",
        "destination: {namespace: FIRST, name: SECOND}, source: {repoURL: r}",
        "destination: {server: SECOND}, source: {repoURL: FIRST}",
        "destination: {server: FIRST}, project: SECOND, source: {repoURL: r}",
        "destination: {}, source: {repoURL: r, targetRevision: FIRST, chart: SECOND}",
        "destination: {}, source: {helm: {valueFiles: [FIRST], parameters: [{name: a, value: SECOND}]}, repoURL: r}",
        "destination: {}, source: {helm: {parameters: [{name: a, value: FIRST}], releaseName: SECOND}, repoURL: r}",
        "destination: {}, source: {helm: {values: FIRST, valuesObject: {a: SECOND}}, repoURL: r}",
        "destination: {}, source: {kustomize: {nameSuffix: FIRST, commonLabels: {a: SECOND}}, repoURL: r}",
        "destination: {}, source: {repoURL: r}, ignoreDifferences: [{kind: FIRST, jsonPointers: [SECOND]}]",
        "destination: {}, source: {repoURL: r}, syncPolicy: {syncOptions: [FIRST], managedNamespaceMetadata: {labels: {a: SECOND}}}",
        "destination: {}, source: {repoURL: r}, info: [{name: FIRST, value: SECOND}]",
    ] {
        let spec = spec.replace("FIRST", "'{{.first}}'").replace("SECOND", "'{{.second}}'");
        let project = if spec.contains("project:") { "" } else { "project: default, " };
        let set = format!(
            "goTemplate: true\ngoTemplateOptions: [missingkey=error]\ngenerators: [{{list: {{elements: [{{a: 1}}]}}}}]\n\
             template: {{metadata: {{name: x}}, spec: {{{project}{spec}}}}}"
        );
        let error = run(&Known::default(), &set).expect_err("an error").to_string();
        assert!(error.contains("no entry for key \"first\""), "{spec}: {error}");
    }
}

/// An empty answer of a server is not what a user wrote.
#[test]
fn generators_that_ask_a_server_and_return_nothing_are_named() {
    let known = Known::default().files(&[("apps/web/k.yaml", "")]);
    let git =
        |path: &str| format!("{{git: {{repoURL: r, revision: HEAD, directories: [{{path: '{path}'}}]}}}}");
    let list = "{list: {elements: [{path: a}]}}";
    let none = "{list: {elements: []}}";
    let cases = [
        (format!("{list}, {}", git("apps/*")), vec![]),
        (format!("{list}, {}", git("elsewhere/*")), vec![1]),
        (format!("{}, {}", git("elsewhere/*"), git("apps/*")), vec![0]),
        (format!("{{matrix: {{generators: [{list}, {}]}}}}", git("elsewhere/*")), vec![0]),
        (format!("{{matrix: {{generators: [{none}, {list}]}}}}"), vec![]),
        (format!("{none}, {{scmProvider: {{github: {{organization: o}}}}}}"), vec![1]),
        ("{pullRequest: {github: {owner: o, repo: r}}}".to_owned(), vec![]),
        (format!("{list}, {{unheardOf: {{}}}}"), vec![1]),
    ];
    for (generators, expected) in cases {
        let found =
            run(&known, &format!("generators: [{generators}]\nname: '{{{{path}}}}'")).expect("Applications");
        assert_eq!(found.silent.into_iter().collect::<Vec<_>>(), expected, "{generators}");
    }
}
