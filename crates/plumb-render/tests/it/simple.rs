use plumb_core::app::{DirectoryOptions, HelmOptions, KustomizeOptions, SourceTool};
use plumb_core::desired::RenderedManifest;
use plumb_render::{Freshness, SourceType};

use crate::workbench::{Workbench, has, names, tools};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  mode: \"0644\"\n";
const CHART: [(&str, &str); 4] = [
    ("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n"),
    ("chart/values.yaml", "replicas: 1\ntext: default\n"),
    (
        "chart/templates/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\n\
         data:\n  text: {{ .Values.text | quote }}\n  replicas: {{ .Values.replicas | quote }}\n  \
         kube: {{ .Capabilities.KubeVersion.Version }}\n",
    ),
    (
        "chart/crds/crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: x.example.com\n",
    ),
];

#[test]
fn a_plain_directory_gives_its_documents_with_their_places() {
    let workbench = Workbench::new(&[
        ("app/a.yaml", &format!("{CONFIG_MAP}---\n{}", CONFIG_MAP.replace("one", "two"))),
        ("app/b.json", "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"three\"}}"),
        ("app/notes.txt", "not a manifest"),
        ("app/sub/c.yaml", CONFIG_MAP),
        ("app/skipped.yaml", &format!("# +argocd:skip-file-rendering\n{CONFIG_MAP}")),
        ("app/template.yaml", "{{ if }}\n  - x: [\n"),
        ("app/values.yaml", "replicas: 3\n"),
    ]);
    let rendered = workbench.render("app", None).unwrap();
    assert_eq!(rendered.source_type, SourceType::Directory);
    assert_eq!(names(&rendered), ["ConfigMap/one", "ConfigMap/two", "Secret/three"]);
    let places: Vec<_> = rendered
        .manifests
        .iter()
        .filter_map(|manifest| manifest.origin.as_ref())
        .map(|origin| format!("{}:{}", origin.file, origin.line))
        .collect();
    let (template, values) = ("app/template.yaml:0", "app/values.yaml:0");
    assert_eq!(places, ["app/a.yaml:1", "app/a.yaml:8", "app/b.json:1", template, values]);
    let passed_over: Vec<bool> = rendered.manifests.iter().map(RenderedManifest::is_passed_over).collect();
    assert_eq!(passed_over, [false, false, false, true, true]);
    assert_eq!(workbench.render("app", None).unwrap().manifests, rendered.manifests, "from the cache");

    let recurse = DirectoryOptions { recurse: true, ..DirectoryOptions::default() };
    let rendered = workbench.render("app", Some(SourceTool::Directory(recurse))).unwrap();
    assert_eq!(names(&rendered).len(), 4);
}

#[test]
fn include_and_exclude_choose_files() {
    let workbench = Workbench::new(&[
        ("app/a.yaml", CONFIG_MAP),
        ("app/env/b.yaml", &CONFIG_MAP.replace("one", "two")),
        ("app/env/c.yaml", &CONFIG_MAP.replace("one", "three")),
    ]);
    let options = DirectoryOptions {
        recurse: true,
        include: Some("env/*".to_owned()),
        exclude: Some("{env/c.yaml,x}".to_owned()),
        ..DirectoryOptions::default()
    };
    let rendered = workbench.render("app", Some(SourceTool::Directory(options))).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/two"]);
}

#[test]
fn an_earlier_result_is_used_until_something_changes() {
    let workbench = Workbench::new(&[("app/a.yaml", CONFIG_MAP), ("other/b.yaml", CONFIG_MAP)]);
    assert!(!workbench.render("app", None).unwrap().cached);
    workbench.write("other/b.yaml", "changed: true\n");
    let second = workbench.render("app", None).unwrap();
    assert!(second.cached);
    assert_eq!(names(&second), ["ConfigMap/one"]);
    let fresh = workbench.renderer.render(&workbench.request("app", None), Freshness::Fresh).unwrap();
    assert!(!fresh.cached);
    assert_eq!(fresh.manifests, second.manifests);
    workbench.write("app/a.yaml", &CONFIG_MAP.replace("one", "changed"));
    let third = workbench.render("app", None).unwrap();
    assert!(!third.cached);
    assert_eq!(names(&third), ["ConfigMap/changed"]);
}

#[test]
fn a_chart_is_rendered_by_helm() {
    if !has(&tools().helm) {
        return;
    }
    let workbench = Workbench::new(&CHART);
    let options = HelmOptions {
        values_object: Some(serde_json::json!({"text": "inline, with comma"})),
        ..HelmOptions::default()
    };
    let rendered = workbench.render("chart", Some(SourceTool::Helm(Box::new(options)))).unwrap();
    assert_eq!(rendered.source_type, SourceType::Helm);
    assert_eq!(names(&rendered), ["CustomResourceDefinition/x.example.com", "ConfigMap/web"]);
    let config_map = &rendered.manifests[1];
    assert_eq!(config_map.value["data"]["text"], "inline, with comma");
    assert_eq!(config_map.value["data"]["kube"], "v1.36.0");
    assert_eq!(config_map.value["metadata"]["namespace"], "prod");
    assert_eq!(config_map.origin.as_ref().unwrap().file, "chart/templates/cm.yaml");
    assert!(workbench.render("chart", None).unwrap().source_type == SourceType::Helm, "detected");
}

#[test]
fn a_chart_that_prints_the_date_prints_another_one_on_another_day() {
    if !has(&tools().helm) {
        return;
    }
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stamped}\ndata:\n  fixed: text\n  \
               day: {{ now | date \"2006-01-02\" | quote }}\n  year: {{ now.Year | quote }}\n  \
               zone: {{ dateInZone \"2006-01-02\" now \"UTC\" | quote }}\n  utc: {{ now.UTC.Month | quote }}\n  \
               named: {{ include \"day\" . | quote }}\n  text: \"{{ \"now\" }}\"\n";
    let helper = "{{- define \"day\" }}{{ htmlDateInZone now \"UTC\" }}{{ end }}";
    let workbench = Workbench::new(&[
        CHART[0],
        ("chart/templates/cm.yaml", map),
        ("chart/templates/parts/_day.tpl", helper),
    ]);
    let data = |freshness| {
        let rendered = workbench.renderer.render(&workbench.request("chart", None), freshness).unwrap();
        rendered.manifests[0].value["data"].clone()
    };
    let (first, moved) = (data(Freshness::Cached), data(Freshness::AnotherDay));
    for field in ["fixed", "text"] {
        assert_eq!(first[field], moved[field], "{field}");
    }
    for field in ["day", "year", "zone", "utc", "named"] {
        assert_ne!(first[field], moved[field], "{field}");
    }
    assert_eq!(data(Freshness::Cached), first, "what was rendered on another day is not kept");
}

#[test]
fn an_overlay_is_built_by_kustomize() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = Workbench::new(&[
        ("base/kustomization.yaml", "resources: [cm.yaml]\n"),
        ("base/cm.yaml", CONFIG_MAP),
        ("overlay/kustomization.yaml", "namePrefix: a-\nresources: [../base]\n"),
        ("unrelated/x.yaml", "x: 1\n"),
    ]);
    let rendered = workbench.render("overlay", None).unwrap();
    assert_eq!(rendered.source_type, SourceType::Kustomize);
    assert_eq!(names(&rendered), ["ConfigMap/a-one"]);
    workbench.write("unrelated/x.yaml", "x: 2\n");
    assert!(workbench.render("overlay", None).unwrap().cached);
    workbench.write("base/cm.yaml", &CONFIG_MAP.replace("one", "two"));
    assert_eq!(names(&workbench.render("overlay", None).unwrap()), ["ConfigMap/a-two"]);

    let options = KustomizeOptions {
        name_suffix: Some("-z".to_owned()),
        namespace: Some("ns".to_owned()),
        common_labels: [("team".to_owned(), "$ARGOCD_APP_NAME".to_owned())].into(),
        ..KustomizeOptions::default()
    };
    let rendered = workbench.render("overlay", Some(SourceTool::Kustomize(Box::new(options)))).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/a-two-z"]);
    assert_eq!(rendered.manifests[0].value["metadata"]["labels"]["team"], "web");
    assert_eq!(rendered.manifests[0].value["metadata"]["namespace"], "ns");
}

#[test]
fn links_inside_the_repository_are_followed() {
    let workbench = Workbench::new(&[("shared/a.yaml", CONFIG_MAP), ("app/keep.txt", "")]);
    workbench.link("app/a.yaml", "../shared/a.yaml");
    let rendered = workbench.render("app", None).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/one"]);
    assert_eq!(rendered.manifests[0].origin.as_ref().unwrap().file, "app/a.yaml");
    workbench.write("shared/a.yaml", &CONFIG_MAP.replace("one", "two"));
    assert_eq!(names(&workbench.render("app", None).unwrap()), ["ConfigMap/two"]);
}
