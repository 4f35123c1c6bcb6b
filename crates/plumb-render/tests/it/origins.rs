//! Which file of the repository an object of an overlay is made from.

use std::collections::BTreeMap;

use plumb_core::app::{KustomizeOptions, SourceTool};
use serde_json::Value;

use crate::parity::by_hand;
use crate::shapes::{copy, directories};
use crate::workbench::{Workbench, has, tools};

const MANY: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\napiVersion: v1\nkind: Service\n\
    metadata: {name: one}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}\n";

/// `name: file:line`, with a star where the object is the document itself.
fn found(workbench: &Workbench, path: &str, tool: Option<SourceTool>) -> BTreeMap<String, String> {
    let rendered = workbench.render(path, tool).unwrap_or_else(|error| panic!("{}", error.full_message()));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let origins = rendered.manifests.iter().map(|manifest| {
        let value = &manifest.value;
        let place = manifest.origin.as_ref().map_or_else(String::new, |origin| {
            format!("{}:{}{}", origin.file, origin.line, if origin.verbatim { "*" } else { "" })
        });
        (format!("{}/{}", text(&value["kind"]), text(&value["metadata"]["name"])), place)
    });
    origins.collect()
}

fn expect(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect()
}

#[test]
fn objects_of_overlays_know_their_file_and_line() {
    if !has(&tools().kustomize) {
        return;
    }
    let workbench = Workbench::new(&[
        ("base/many.yaml", MANY),
        ("base/plain.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n"),
        (
            "base/kustomization.yaml",
            "resources: [many.yaml, plain.yaml]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n",
        ),
        (
            "over/kustomization.yaml",
            "namePrefix: eu-\nnameSuffix: -v2\nresources: [../base, own.yaml]\npatches:\n- patch: |-\n    \
             {apiVersion: v1, kind: Service, metadata: {name: one}, spec: {type: NodePort}}\n",
        ),
        ("over/own.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: own}\n"),
    ]);
    for manifest in workbench.render("base", None).unwrap().manifests {
        assert!(!manifest.value.to_string().contains("config.kubernetes.io"), "{}", manifest.value);
    }
    let base = found(&workbench, "base", None);
    assert_eq!(
        base,
        expect(&[
            ("ConfigMap/listed", "base/many.yaml:9"),
            ("ConfigMap/made-4h2mbtbbt6", ""),
            ("ConfigMap/one", "base/many.yaml:1*"),
            ("ConfigMap/plain", "base/plain.yaml:1*"),
            ("Service/one", "base/many.yaml:5*"),
        ])
    );
    let expected = expect(&[
        ("ConfigMap/eu-listed-v2", "base/many.yaml:9"),
        ("ConfigMap/eu-made-v2-4h2mbtbbt6", ""),
        ("ConfigMap/eu-one-v2", "base/many.yaml:1"),
        ("ConfigMap/eu-plain-v2", "base/plain.yaml:1"),
        ("Secret/eu-own-v2", "over/own.yaml:1"),
        ("Service/eu-one-v2", "base/many.yaml:5"),
    ]);
    assert_eq!(found(&workbench, "over", None), expected);
    assert_eq!(found(&workbench, "over", None), expected, "the same from the cache");
    let prefixed = KustomizeOptions { name_prefix: Some("app-".to_owned()), ..KustomizeOptions::default() };
    let own = found(&workbench, "base", Some(SourceTool::Kustomize(Box::new(prefixed))));
    assert_eq!(own["ConfigMap/app-plain"], "base/plain.yaml:1");
}

#[test]
fn what_could_be_two_documents_is_none() {
    if !has(&tools().kustomize) {
        return;
    }
    let named = |name: &str, namespace: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n")
    };
    let workbench = Workbench::new(&[
        ("a/a.yaml", &named("web", "a")),
        ("a/b.yaml", &named("web", "b")),
        ("a/kustomization.yaml", "resources: [a.yaml, b.yaml]\n"),
        ("twice/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
        ("twice/y.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p-web}\n"),
        ("twice/kustomization.yaml", "namePrefix: p-\nresources: [x.yaml, y.yaml]\n"),
        ("generated/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"),
        (
            "generated/kustomization.yaml",
            "resources: [web.yaml]\nconfigMapGenerator: [{name: web-config, literals: [a=b]}]\n\
             generatorOptions: {disableNameSuffixHash: true}\n",
        ),
    ]);
    let rendered = workbench.render("a", None).unwrap();
    let files: Vec<&str> =
        rendered.manifests.iter().map(|manifest| manifest.origin.as_ref().unwrap().file.as_str()).collect();
    assert_eq!(files, ["a/a.yaml", "a/b.yaml"], "told by their namespaces");
    let twice = found(&workbench, "twice", None);
    assert_eq!(twice["ConfigMap/p-web"], "", "web with its prefix, or p-web without one");
    assert_eq!(twice["ConfigMap/p-p-web"], "");
    assert_eq!(found(&workbench, "generated", None)["ConfigMap/web-config"], "");
}

/// The origins that Kustomize reports itself, which it does only together with another result.
#[test]
fn no_file_is_named_that_kustomize_would_not_name() {
    if !has(&tools().kustomize) {
        return;
    }
    let (mut n_named, mut n_told) = (0, 0);
    for overlay in directories("overlays") {
        let workbench = Workbench::new(&[]);
        copy(&workbench, &overlay, "apps/one");
        let beside = workbench.directory.path().join("origins");
        std::fs::create_dir(&beside).unwrap();
        let wrapper = "resources: [../source/apps/one/overlay]\nbuildMetadata: [originAnnotations]\n";
        std::fs::write(beside.join("kustomization.yaml"), wrapper).unwrap();
        let told: BTreeMap<String, String> = by_hand(&tools().kustomize, &beside, &["build", "."])
            .iter()
            .filter_map(|object| {
                let origin = object["metadata"]["annotations"]["config.kubernetes.io/origin"].as_str()?;
                let file = origin.lines().find_map(|line| line.strip_prefix("path: ../source/"))?;
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                Some((
                    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"])),
                    file.to_owned(),
                ))
            })
            .collect();
        n_told += told.len();
        for (name, place) in found(&workbench, "apps/one/overlay", None) {
            let Some((file, _)) = place.split_once(':') else { continue };
            assert_eq!(told.get(&name).map(String::as_str), Some(file), "{name} of {}", overlay.display());
            n_named += 1;
        }
    }
    assert!(n_told > 5 && n_named * 10 >= n_told * 8, "{n_named} of {n_told} objects");
}
