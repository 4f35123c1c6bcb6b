//! The same objects as the programs themselves give when they are run on a checkout, by hand, without a sandbox.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use plumb_core::app::{
    HelmFileParameter, HelmOptions, HelmParameter, KustomizeOptions, KustomizePatch, KustomizeReplica,
    PatchTarget, SourceTool,
};
use plumb_core::yaml;
use plumb_render::{Freshness, RenderSettings};
use serde_json::{Value, json};

use crate::workbench::{Workbench, has, tools};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n  \
    selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
    containers:\n      - name: web\n        image: nginx:1.0\n        envFrom:\n        - configMapRef: {name: settings}\n";
const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector: {app: web}\n  ports: [{port: 80}]\n";

/// Runs a program on the workbench's own files.
pub(crate) fn by_hand(program: &Path, directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(program).current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let documents = yaml::parse_documents_bytes(&output.stdout, &yaml::Limits::default()).unwrap();
    documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect()
}

pub(crate) fn by_plumb(workbench: &Workbench, path: &str, tool: Option<SourceTool>) -> Vec<Value> {
    let rendered = workbench.render(path, tool).unwrap_or_else(|error| panic!("{}", error.full_message()));
    rendered.manifests.into_iter().map(|manifest| manifest.value).collect()
}

/// A chart `chart` with these files; `arguments` are what the options mean.
fn same_chart(case: &str, files: &[(&str, &str)], options: HelmOptions, arguments: &[&str]) {
    if !has(&tools().helm) {
        return;
    }
    let workbench = Workbench::new(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: '9.9'\n"),
        ("chart/values.yaml", "replicas: 2\nimage: {repository: nginx, tag: '1.0'}\nextra: {}\n"),
    ]);
    for (path, content) in files {
        workbench.write(path, content);
    }
    let mut all = vec!["template", ".", "--name-template=web", "--namespace=prod", "--kube-version=1.36.0"];
    all.extend(arguments);
    if !options.skip_crds {
        all.push("--include-crds");
    }
    let expected = by_hand(&tools().helm, &workbench.root().join("chart"), &all);
    assert!(!expected.is_empty(), "{case}: nothing to compare");
    let found = by_plumb(&workbench, "chart", Some(SourceTool::Helm(Box::new(options))));
    assert_eq!(found, expected, "{case}");
}

#[test]
fn charts() {
    let none = HelmOptions::default;
    same_chart(
        "helpers and built-in objects",
        &[
            (
                "chart/templates/_helpers.tpl",
                "{{- define \"n\" -}}{{ printf \"%s-%s\" .Release.Name .Chart.Name | trunc 63 | trimSuffix \"-\" }}{{- end -}}",
            ),
            (
                "chart/templates/cm.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"n\" . }}\n  labels: {v: {{ .Chart.Version | quote }}, app: {{ .Chart.AppVersion | quote }}}\n",
            ),
        ],
        none(),
        &[],
    );
    same_chart(
        "tpl and required",
        &[(
            "chart/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: {{ tpl \"{{ .Values.replicas }}\" . | quote }}\n  b: {{ required \"need it\" .Values.image.tag | quote }}\n",
        )],
        none(),
        &[],
    );
    same_chart(
        "lookup gives nothing",
        &[(
            "chart/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  found: {{ lookup \"v1\" \"Secret\" \"prod\" \"x\" | empty | quote }}\n",
        )],
        none(),
        &[],
    );
    same_chart(
        "hooks and tests",
        &[
            (
                "chart/templates/job.yaml",
                "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-weight: '-5'}\n",
            ),
            (
                "chart/templates/tests/t.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: t\n  annotations: {helm.sh/hook: test}\n",
            ),
            ("chart/templates/svc.yaml", SERVICE),
        ],
        none(),
        &[],
    );
    same_chart(
        "tests left out",
        &[
            (
                "chart/templates/tests/t.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: t\n  annotations: {helm.sh/hook: test}\n",
            ),
            ("chart/templates/svc.yaml", SERVICE),
        ],
        HelmOptions { skip_tests: true, ..none() },
        &["--skip-tests"],
    );
    let crd = (
        "chart/crds/x.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.example.com}\n",
    );
    same_chart("definitions", &[crd, ("chart/templates/svc.yaml", SERVICE)], none(), &[]);
    same_chart(
        "definitions left out",
        &[crd, ("chart/templates/svc.yaml", SERVICE)],
        HelmOptions { skip_crds: true, ..none() },
        &[],
    );
    let values = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  all: {{ .Values | toJson | quote }}\n";
    same_chart(
        "value files, inline values and parameters in their order",
        &[
            ("chart/templates/cm.yaml", values),
            ("chart/a.yaml", "replicas: 3\nextra: {a: 1}\n"),
            ("b.yaml", "extra: {b: 2}\n"),
        ],
        HelmOptions {
            value_files: vec!["a.yaml".to_owned(), "/b.yaml".to_owned(), "missing.yaml".to_owned()],
            ignore_missing_value_files: true,
            values_object: Some(json!({"replicas": 4, "extra": {"c": [1, 2]}})),
            parameters: vec![
                HelmParameter { name: "image.tag".to_owned(), value: "2.0".to_owned(), force_string: true },
                HelmParameter { name: "extra.d".to_owned(), value: "x,y".to_owned(), force_string: false },
            ],
            file_parameters: vec![HelmFileParameter {
                name: "extra.e".to_owned(),
                path: "a.yaml".to_owned(),
            }],
            ..none()
        },
        &[
            "--values=a.yaml",
            "--values=../b.yaml",
            "--set-json=replicas=4",
            "--set-json=extra.c=[1,2]",
            "--set-string=image.tag=2.0",
            "--set=extra.d=x\\,y",
            "--set-file=extra.e=a.yaml",
        ],
    );
    same_chart(
        "subcharts with conditions, tags, aliases and globals",
        &[
            (
                "chart/Chart.yaml",
                "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies:\n- {name: on, version: 1.0.0, condition: on.enabled}\n- {name: off, version: 1.0.0, condition: off.enabled}\n- {name: on, version: 1.0.0, alias: again}\n",
            ),
            (
                "chart/values.yaml",
                "on: {enabled: true, text: parent}\noff: {enabled: false}\nglobal: {g: 1}\n",
            ),
            ("chart/charts/on/Chart.yaml", "apiVersion: v2\nname: on\nversion: 1.0.0\n"),
            ("chart/charts/on/values.yaml", "text: child\n"),
            (
                "chart/charts/on/templates/cm.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {text: {{ .Values.text }}, g: {{ .Values.global.g | quote }}}\n",
            ),
            ("chart/charts/off/Chart.yaml", "apiVersion: v2\nname: off\nversion: 1.0.0\n"),
            (
                "chart/charts/off/templates/cm.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: off}\n",
            ),
        ],
        none(),
        &[],
    );
    same_chart(
        "library charts and import-values",
        &[
            (
                "chart/Chart.yaml",
                "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies:\n- {name: lib, version: 1.0.0, import-values: [defaults]}\n",
            ),
            ("chart/charts/lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n"),
            ("chart/charts/lib/values.yaml", "exports: {defaults: {fromLib: yes-it-is}}\n"),
            (
                "chart/charts/lib/templates/_x.tpl",
                "{{ define \"lib.cm\" }}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lib}\ndata: {x: {{ .Values.fromLib }}}{{ end }}",
            ),
            ("chart/templates/cm.yaml", "{{ include \"lib.cm\" . }}"),
        ],
        none(),
        &[],
    );
    same_chart(
        "files of the chart",
        &[
            ("chart/files/one.txt", "eins\n"),
            ("chart/files/two.txt", "zwei\n"),
            ("chart/.helmignore", "files/two.txt\n"),
            (
                "chart/templates/cm.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata:\n{{ (.Files.Glob \"files/*\").AsConfig | indent 2 }}\n",
            ),
        ],
        none(),
        &[],
    );
    same_chart(
        "capabilities",
        &[(
            "chart/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  crd: {{ .Capabilities.APIVersions.Has \"example.com/v1/Thing\" | quote }}\n  none: {{ .Capabilities.APIVersions.Has \"example.com/v2\" | quote }}\n  v: {{ .Capabilities.KubeVersion.Minor | quote }}\n",
        )],
        HelmOptions { api_versions: vec!["example.com/v1/Thing".to_owned()], ..none() },
        &["--api-versions=example.com/v1/Thing"],
    );
    same_chart(
        "many documents, lists and awkward scalars",
        &[(
            "chart/templates/all.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {on: 'yes', mode: \"0644\", t: '2020-01-01'}\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  text: |\n    ---\n    not a document\n",
        )],
        none(),
        &[],
    );
}

#[test]
fn a_dependency_in_the_same_repository_needs_no_download() {
    if !has(&tools().helm) {
        return;
    }
    let workbench = Workbench::new(&[
        (
            "apps/web/Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: common, version: 1.0.0, repository: \"file://../../common\"}\n",
        ),
        ("apps/web/templates/svc.yaml", SERVICE),
        ("common/Chart.yaml", "apiVersion: v2\nname: common\nversion: 1.0.0\n"),
        ("common/templates/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common}\n"),
    ]);
    assert_eq!(by_plumb(&workbench, "apps/web", None).len(), 2);
    workbench.write("common/templates/two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n");
    assert_eq!(by_plumb(&workbench, "apps/web", None).len(), 3, "a change in the dependency counts");
    workbench.write("apps/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: far, version: 1.0.0, repository: \"https://example.com\"}\n");
    let error = workbench.render("apps/web", None).unwrap_err().full_message();
    assert!(
        error.contains("apps/web/Chart.yaml") && error.contains("`far` 1.0.0 of https://example.com"),
        "{error}"
    );
}

/// An overlay `overlay` with these files.
fn same_overlay(case: &str, files: &[(&str, &str)]) {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = Workbench::new(&[
        (
            "base/kustomization.yaml",
            "resources: [deployment.yaml, service.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=1]}]\n",
        ),
        ("base/deployment.yaml", DEPLOYMENT),
        ("base/service.yaml", SERVICE),
    ]);
    for (path, content) in files {
        workbench.write(path, content);
    }
    let expected = by_hand(&tools().kustomize, &workbench.root(), &["build", "overlay"]);
    assert!(!expected.is_empty(), "{case}: nothing to compare");
    assert_eq!(by_plumb(&workbench, "overlay", None), expected, "{case}");
}

#[test]
fn overlays() {
    same_overlay("a base", &[("overlay/kustomization.yaml", "resources: [../base]\n")]);
    same_overlay(
        "names, namespace and labels",
        &[(
            "overlay/kustomization.yaml",
            "resources: [../base]\nnamePrefix: a-\nnameSuffix: -z\nnamespace: ns\nlabels: [{pairs: {team: x}, includeSelectors: true}]\ncommonAnnotations: {note: why}\n",
        )],
    );
    same_overlay(
        "images and replicas",
        &[(
            "overlay/kustomization.yaml",
            "resources: [../base]\nimages: [{name: nginx, newName: registry.example.com/nginx, newTag: '2'}]\nreplicas: [{name: web, count: 7}]\n",
        )],
    );
    same_overlay(
        "strategic and JSON patches, inline and in files",
        &[
            (
                "overlay/kustomization.yaml",
                "resources: [../base]\npatches:\n- path: p.yaml\n- target: {kind: Service}\n  patch: |-\n    - {op: replace, path: /spec/ports/0/port, value: 81}\n",
            ),
            (
                "overlay/p.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {terminationGracePeriodSeconds: 5}}}\n",
            ),
        ],
    );
    same_overlay(
        "components",
        &[
            ("overlay/kustomization.yaml", "resources: [../base]\ncomponents: [../components/debug]\n"),
            (
                "components/debug/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: p.yaml, target: {kind: Deployment}}]\n",
            ),
            ("components/debug/p.yaml", "- {op: add, path: /spec/template/spec/hostNetwork, value: true}\n"),
        ],
    );
    same_overlay(
        "generators from files, envs and literals",
        &[
            (
                "overlay/kustomization.yaml",
                "resources: [../base]\nconfigMapGenerator:\n- {name: files, files: [a.txt, key=sub/b.txt]}\n- {name: env, envs: [x.env]}\n- {name: settings, behavior: merge, literals: [b=2]}\nsecretGenerator: [{name: s, literals: [p=q], type: Opaque}]\ngeneratorOptions: {labels: {generated: 'yes'}}\n",
            ),
            ("overlay/a.txt", "eins\n"),
            ("overlay/sub/b.txt", "zwei\n"),
            ("overlay/x.env", "A=1\nB=two words\n"),
        ],
    );
    same_overlay(
        "replacements in a file",
        &[
            ("overlay/kustomization.yaml", "resources: [../base]\nreplacements: [{path: r.yaml}]\n"),
            (
                "overlay/r.yaml",
                "source: {kind: Service, fieldPath: metadata.name}\ntargets: [{select: {kind: Deployment}, fieldPaths: [spec.template.spec.containers.0.name]}]\n",
            ),
        ],
    );
    same_overlay(
        "overlays on overlays, and a base used twice",
        &[
            ("overlay/kustomization.yaml", "resources: [one, two]\n"),
            ("overlay/one/kustomization.yaml", "namePrefix: one-\nresources: [../../base]\n"),
            ("overlay/two/kustomization.yaml", "namePrefix: two-\nresources: [../../base]\n"),
        ],
    );
    same_overlay(
        "transformers and configurations",
        &[
            (
                "overlay/kustomization.yaml",
                "resources: [../base, thing.yaml]\nnamePrefix: p-\nconfigurations: [c.yaml]\ntransformers: [t.yaml]\n",
            ),
            (
                "overlay/thing.yaml",
                "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {service: web}\n",
            ),
            (
                "overlay/c.yaml",
                "nameReference: [{kind: Service, fieldSpecs: [{kind: Thing, path: spec/service}]}]\n",
            ),
            (
                "overlay/t.yaml",
                "apiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: x}\nannotations: {by: transformer}\nfieldSpecs: [{path: metadata/annotations, create: true}]\n",
            ),
        ],
    );
    same_overlay(
        "other names of the file, and the old fields",
        &[(
            "overlay/Kustomization",
            "bases: [../base]\npatchesStrategicMerge:\n- |-\n  apiVersion: v1\n  kind: Service\n  metadata: {name: web}\n  spec: {type: NodePort}\ncommonLabels: {old: 'yes'}\n",
        )],
    );
    same_overlay(
        "definitions and openapi",
        &[
            ("overlay/kustomization.yaml", "resources: [../base, crd.yaml]\ncrds: [crd.json]\n"),
            (
                "overlay/crd.yaml",
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.example.com}\n",
            ),
            ("overlay/crd.json", "{}"),
        ],
    );
    same_overlay(
        "order and build metadata",
        &[(
            "overlay/kustomization.yaml",
            "resources: [../base]\nsortOptions: {order: legacy}\nbuildMetadata: [managedByLabel]\n",
        )],
    );
}

#[test]
fn options_of_the_application_do_what_kustomize_edit_does() {
    if !has(&tools().kustomize) {
        return;
    }
    let files = [
        ("base/kustomization.yaml", "resources: [deployment.yaml]\n"),
        ("base/deployment.yaml", DEPLOYMENT),
        ("overlay/kustomization.yaml", "resources: [../base]\n"),
        (
            "comp/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {comp: 'yes'}\n",
        ),
    ];
    let workbench = Workbench::new(&files);
    let options = KustomizeOptions {
        name_prefix: Some("a-".to_owned()),
        name_suffix: Some("-z".to_owned()),
        namespace: Some("ns".to_owned()),
        images: vec!["nginx=example.com/nginx:$ARGOCD_APP_REVISION_SHORT".to_owned()],
        replicas: vec![KustomizeReplica { name: "web".to_owned(), count: 4 }],
        common_labels: [("team".to_owned(), "$ARGOCD_APP_NAME".to_owned())].into(),
        label_without_selector: true,
        label_include_templates: true,
        common_annotations: [("kept".to_owned(), "$ARGOCD_APP_NAME".to_owned())].into(),
        patches: vec![KustomizePatch {
            patch: Some("- {op: add, path: /spec/paused, value: true}".to_owned()),
            target: Some(PatchTarget { kind: Some("Deployment".to_owned()), ..PatchTarget::default() }),
            ..KustomizePatch::default()
        }],
        components: vec!["../comp".to_owned(), "../none".to_owned()],
        ignore_missing_components: true,
        ..KustomizeOptions::default()
    };
    let found = by_plumb(&workbench, "overlay", Some(SourceTool::Kustomize(Box::new(options))));

    let overlay = workbench.root().join("overlay");
    for edit in [
        &["set", "nameprefix", "--", "a-"][..],
        &["set", "namesuffix", "--", "-z"],
        &["set", "image", "nginx=example.com/nginx:0123456"],
        &["set", "replicas", "web=4"],
        &["add", "label", "--without-selector", "--include-templates", "team:web"],
        &["add", "annotation", "kept:$ARGOCD_APP_NAME"],
        &["set", "namespace", "ns"],
        &["add", "component", "../comp"],
        &["add", "patch", "--kind", "Deployment", "--patch", "- {op: add, path: /spec/paused, value: true}"],
    ] {
        by_hand(&tools().kustomize, &overlay, &[&["edit"], edit].concat());
    }
    assert_eq!(found, by_hand(&tools().kustomize, &workbench.root(), &["build", "overlay"]));
}

#[test]
fn files_of_other_sources_are_values() {
    if !has(&tools().helm) {
        return;
    }
    let workbench = Workbench::new(&[
        ("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n"),
        (
            "chart/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {text: {{ .Values.text }}}\n",
        ),
    ]);
    let other = Workbench::new(&[("env/prod/values.yaml", "text: from-the-other\n"), ("unrelated", "1")]);
    let options = HelmOptions {
        value_files: vec!["$values/env/prod/values.yaml".to_owned()],
        ..HelmOptions::default()
    };
    let mut request = workbench.request("chart", Some(SourceTool::Helm(Box::new(options))));
    request.refs.insert("values".to_owned(), other.request(".", None).files);
    let render = || workbench.renderer.render(&request, plumb_render::Freshness::Cached).unwrap();
    assert_eq!(render().manifests[0].value["data"]["text"], "from-the-other");
    other.write("unrelated", "2");
    assert!(render().cached, "only the file that is used counts");
    other.write("env/prod/values.yaml", "text: changed\n");
    assert_eq!(render().manifests[0].value["data"]["text"], "changed");
}

#[test]
fn charts_that_kustomize_inflates_see_the_cluster() {
    let tools = tools();
    if !has(&tools.kustomize) || !has(&tools.helm) {
        return;
    }
    let workbench = Workbench::new(&[
        (
            "overlay/kustomization.yaml",
            "helmCharts:\n- {name: demo, releaseName: r, namespace: prod, valuesInline: {a: b}}\nnamePrefix: p-\n",
        ),
        ("overlay/charts/demo/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n"),
        ("overlay/charts/demo/values.yaml", "a: c\n"),
        (
            "overlay/charts/demo/templates/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  kube: {{ .Capabilities.KubeVersion.Version }}\n  \
             has: {{ .Capabilities.APIVersions.Has \"example.com/v1\" | quote }}\n  a: {{ .Values.a }}\n",
        ),
    ]);
    let mut request = workbench.request("overlay", None);
    request.cluster.api_versions = ["example.com/v1".to_owned()].into();
    let settings =
        RenderSettings { kustomize_build_options: "--enable-helm".to_owned(), ..RenderSettings::default() };
    request.settings = Arc::new(settings);
    let rendered = workbench
        .renderer
        .render(&request, Freshness::Cached)
        .unwrap_or_else(|error| panic!("{}", error.full_message()));
    let found: Vec<Value> = rendered.manifests.into_iter().map(|manifest| manifest.value).collect();
    let helm = format!("--helm-command={}", tools.helm.display());
    let arguments = [
        "build",
        "overlay",
        "--enable-helm",
        &helm,
        "--helm-kube-version=1.36.0",
        "--helm-api-versions=example.com/v1",
    ];
    assert_eq!(found, by_hand(&tools.kustomize, &workbench.root(), &arguments));
    assert_eq!(found[0]["data"], json!({"kube": "v1.36.0", "has": "true", "a": "b"}));
}
