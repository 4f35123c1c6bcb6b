//! Jsonnet and plugins that mean well.

use std::sync::Arc;

use plumb_core::app::{
    DirectoryOptions, JsonnetVariable, PluginOptions, PluginParameter, PluginValue, SourceTool,
};
use plumb_render::{Freshness, Plugin, PluginDiscovery, RenderSettings, SourceType};
use serde_json::json;

use crate::workbench::{Workbench, names};

/// Plugins run here also where the kernel cannot confine them.
fn anywhere() -> RenderSettings {
    RenderSettings { allow_unconfined_plugins: true, ..RenderSettings::default() }
}

fn variable(name: &str, value: &str, code: bool) -> JsonnetVariable {
    JsonnetVariable { name: name.to_owned(), value: value.to_owned(), code }
}

#[test]
fn jsonnet_is_evaluated_with_libraries_and_variables() {
    let workbench = Workbench::new(&[
        (
            "app/main.jsonnet",
            "local lib = import 'lib.libsonnet';\nlocal near = import 'sub/near.libsonnet';\n\
             function(env='dev', n=1) [lib.cm('a', env), lib.cm('b', std.extVar('name')), near { data: { n: std.toString(n), t: importstr 'text.txt', x: std.extVar('code') } }]\n",
        ),
        ("app/sub/near.libsonnet", "{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'near' } }"),
        ("app/text.txt", "text"),
        ("app/plain.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"),
        (
            "vendor/lib.libsonnet",
            "{ cm(name, text):: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: name }, data: { text: text } } }",
        ),
    ]);
    let options = DirectoryOptions {
        libs: vec!["vendor".to_owned()],
        ext_vars: vec![variable("name", "$ARGOCD_APP_NAME", false), variable("code", "{ a: 1 + 1 }", true)],
        tlas: vec![variable("env", "prod", false), variable("n", "40 + 2", true)],
        ..DirectoryOptions::default()
    };
    let render = || workbench.render("app", Some(SourceTool::Directory(options.clone())));
    let rendered = render().unwrap_or_else(|error| panic!("{}", error.full_message()));
    assert_eq!(names(&rendered), ["ConfigMap/a", "ConfigMap/b", "ConfigMap/near", "ConfigMap/plain"]);
    let data: Vec<_> = rendered.manifests.iter().map(|manifest| manifest.value["data"].clone()).collect();
    assert_eq!(data[0], json!({"text": "prod"}));
    assert_eq!(data[1], json!({"text": "web"}));
    assert_eq!(data[2], json!({"n": "42", "t": "text", "x": {"a": 2}}));
    assert_eq!(rendered.manifests[0].origin.as_ref().unwrap().file, "app/main.jsonnet");

    workbench.write("vendor/unused.libsonnet", "{}");
    assert!(render().unwrap().cached, "what is not imported does not count");
    workbench
        .write("vendor/lib.libsonnet", "{ cm(name, text):: { kind: 'Changed', metadata: { name: name } } }");
    assert_eq!(names(&render().unwrap())[0], "Changed/a");
}

#[test]
fn jsonnet_errors_name_the_place() {
    let workbench =
        Workbench::new(&[("app/a.jsonnet", "{\n  kind: error 'no kind'\n}\n"), ("bad/b.jsonnet", "{ a: \n")]);
    let error = workbench.render("app", None).unwrap_err().full_message();
    assert!(error.contains("app/a.jsonnet") && error.contains("no kind"), "{error}");
    let error = workbench.render("bad", None).unwrap_err().full_message();
    assert!(error.contains("bad/b.jsonnet"), "{error}");
}

#[test]
fn jsonnet_can_be_switched_off() {
    let workbench = Workbench::new(&[("app/a.jsonnet", "{\"kind\": \"X\", \"apiVersion\": \"v1\"}")]);
    let mut request = workbench.request("app", None);
    request.settings = Arc::new(RenderSettings { jsonnet: false, ..RenderSettings::default() });
    let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
    assert_eq!(rendered.manifests[0].value["kind"], "X", "read as the YAML that it also is");
}

#[test]
fn plugins_get_their_environment_and_parameters() {
    let script = "cat <<END\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: $ARGOCD_APP_NAME}\ndata:\n  \
                  env: \"$ARGOCD_ENV_FOO\"\n  one: \"$PARAM_ONE_THING\"\n  map: \"$PARAM_M_KEY_A\"\n  list: \"$PARAM_L_1\"\n  \
                  params: '$ARGOCD_APP_PARAMETERS'\n  kube: \"$KUBE_VERSION\"\n  init: \"$(cat made-by-init)\"\nEND\n";
    let workbench = Workbench::new(&[("app/marker.conf", "x"), ("app/script.sh", script)]);
    let plugin = Plugin {
        init: ["sh", "-c", "echo done > made-by-init"].map(str::to_owned).to_vec(),
        generate: ["sh", "script.sh"].map(str::to_owned).to_vec(),
        discover: PluginDiscovery::FileName("*.conf".to_owned()),
    };
    let settings = RenderSettings { plugins: [("mine".to_owned(), plugin)].into(), ..anywhere() };
    let parameter = |name: &str, value| PluginParameter { name: name.to_owned(), value: Some(value) };
    let options = PluginOptions {
        name: None,
        env: vec![("FOO".to_owned(), "bar-$ARGOCD_APP_REVISION_SHORT".to_owned())],
        parameters: vec![
            parameter("one-thing", PluginValue::String("1".to_owned())),
            parameter("m", PluginValue::Map([("key.a".to_owned(), "2".to_owned())].into())),
            parameter("l", PluginValue::Array(vec!["x".to_owned(), "3".to_owned()])),
        ],
    };
    let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
    request.settings = Arc::new(settings);
    let rendered = workbench.renderer.render(&request, Freshness::Cached);
    let rendered = rendered.unwrap_or_else(|error| panic!("{}", error.full_message()));
    let data = &rendered.manifests[0].value["data"];
    assert_eq!(data["env"], "bar-0123456");
    assert_eq!((&data["one"], &data["map"], &data["list"]), (&json!("1"), &json!("2"), &json!("3")));
    assert_eq!(
        data["params"],
        r#"[{"name":"one-thing","string":"1"},{"map":{"key.a":"2"},"name":"m"},{"array":["x","3"],"name":"l"}]"#
    );
    assert_eq!((&data["kube"], &data["init"]), (&json!("v1.36.0"), &json!("done")));

    request.source.tool = None;
    let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
    assert_eq!(rendered.source_type, SourceType::Plugin, "claimed by its file");
}

#[test]
fn a_plugins_result_is_kept_until_its_program_changes_or_it_is_renewed() {
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";
    let workbench = Workbench::new(&[("app/a.yaml", "x")]);
    // A plugin may read the system's directories; this one represents a changed program.
    let program = workbench.directory.path().join("program");
    std::fs::write(&program, "1").unwrap();
    let script = format!("printf '{}' \"$(date +%N)\"", manifest.replace("NAME", "n%s").replace('\n', "\\n"));
    let generate = vec!["sh".to_owned(), "-c".to_owned(), script, program.display().to_string()];
    let plugins = [("mine".to_owned(), Plugin { generate, ..Plugin::default() })].into();
    let options = PluginOptions { name: Some("mine".to_owned()), ..PluginOptions::default() };
    let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
    request.settings = Arc::new(RenderSettings { plugins, ..anywhere() });
    let render = |freshness| {
        let rendered = workbench.renderer.render(&request, freshness);
        rendered.unwrap_or_else(|error| panic!("{}", error.full_message()))
    };
    let first = render(Freshness::Cached);
    assert_ne!(render(Freshness::Fresh).manifests, first.manifests);
    assert_eq!(render(Freshness::Cached).manifests, first.manifests, "a second look changes nothing");
    let renewed = render(Freshness::Renewed);
    assert_ne!(renewed.manifests, first.manifests);
    assert_eq!(render(Freshness::Cached).manifests, renewed.manifests);
    std::fs::write(&program, "another build").unwrap();
    assert!(!render(Freshness::Cached).cached);
}
