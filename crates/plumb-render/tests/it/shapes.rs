//! Charts and overlays as large and as tangled as people write them (`testdata`): the same objects as the programs give.

use std::path::{Path, PathBuf};

use plumb_core::app::{HelmOptions, SourceTool};

use crate::parity::{by_hand, by_plumb};
use crate::workbench::{Workbench, has, tools};

/// The directories below one of `testdata`.
pub(crate) fn directories(of: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(of);
    let mut found: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {of}");
    found
}

/// Copies a directory into the workbench's source.
pub(crate) fn copy(workbench: &Workbench, from: &Path, to: &str) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{to}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            copy(workbench, &path, &name);
        } else {
            workbench.write(&name, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn charts() {
    if !has(&tools().helm) {
        return;
    }
    let mut n_objects = 0;
    for chart in directories("charts") {
        let workbench = Workbench::new(&[]);
        copy(&workbench, &chart, "chart");
        let names =
            std::fs::read_dir(&chart).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let extra = names.filter(|name| name.starts_with("values-")).map(|name| vec![name]);
        for value_files in std::iter::once(Vec::new()).chain(extra) {
            for versions in [vec![], vec!["cert-manager.io/v1", "monitoring.coreos.com/v1/PrometheusRule"]] {
                let mut arguments: Vec<String> = [
                    "template",
                    ".",
                    "--name-template=web",
                    "--namespace=prod",
                    "--kube-version=1.36.0",
                    "--include-crds",
                ]
                .map(str::to_owned)
                .into();
                arguments.extend(value_files.iter().map(|name| format!("--values={name}")));
                arguments.extend(versions.iter().map(|version| format!("--api-versions={version}")));
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let expected = by_hand(&tools().helm, &workbench.root().join("chart"), &arguments);
                let options = HelmOptions {
                    value_files: value_files.clone(),
                    api_versions: versions.iter().map(|version| (*version).to_owned()).collect(),
                    ..HelmOptions::default()
                };
                let found = by_plumb(&workbench, "chart", Some(SourceTool::Helm(Box::new(options))));
                assert_eq!(found, expected, "{} {value_files:?} {versions:?}", chart.display());
                n_objects += found.len();
            }
        }
    }
    assert!(n_objects > 100, "{n_objects}");
}

#[test]
fn overlays() {
    if !has(&tools().kustomize) {
        return;
    }
    for overlay in directories("overlays") {
        let workbench = Workbench::new(&[]);
        copy(&workbench, &overlay, "apps/one");
        let expected = by_hand(&tools().kustomize, &workbench.root().join("apps/one"), &["build", "overlay"]);
        assert!(expected.len() > 2, "{}", overlay.display());
        assert_eq!(by_plumb(&workbench, "apps/one/overlay", None), expected, "{}", overlay.display());
    }
}
