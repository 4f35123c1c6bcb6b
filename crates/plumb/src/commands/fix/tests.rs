//! Changes of Applications, and of the sets that make them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use expect_test::{Expect, expect};
use plumb_core::app::AppId;
use plumb_core::desired::Scopes;
use plumb_core::drift::DriftClass;
use plumb_core::fix::{DryRunComparison, FixGoal, IgnoreEntry};
use plumb_core::object::{FieldPath, ObjectKey};
use plumb_crd::Application;
use serde_json::{Value, json};

use super::application_files::{ApplicationFiles, Written};
use super::case::{Case, Unit, UnitChange};
use super::plan::{Plan, Planning, plan};
use super::readers::Readers;
use crate::local::LocalRenderer;
use crate::render_here::RenderArgs;

/// The plan for two objects that need the same kind of change, of an app with one file.
fn planned(root: &Path, file: &str, owners: &Value, change: &dyn Fn(&ObjectKey) -> UnitChange) -> Plan {
    std::fs::write(root.join("shop.yaml"), file).unwrap();
    let cache = root.join(".git").display().to_string();
    let flags = RenderArgs::augment_args(clap::Command::new("test"));
    let flags = flags.get_matches_from(["test", "--cache-dir", &cache]);
    let renderer = LocalRenderer::new(&RenderArgs::from_arg_matches(&flags).unwrap()).unwrap();
    let live = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd", "ownerReferences": owners},
        "spec": {"project": "default", "destination": {"namespace": "shop"}}});
    let case = Case {
        id: AppId { namespace: "argocd".to_owned(), name: "shop".to_owned() },
        instance: "shop".to_owned(),
        namespace: None,
        scopes: Scopes::built_in(),
        sources: BTreeMap::new(),
        goal: FixGoal::ArgoCd,
        written: Written::of(&Application::from_json(&live).unwrap()),
        objects: Vec::new(),
    };
    let keys = ["one", "two"].map(|name| ObjectKey::new("apps", "Deployment", Some("shop".to_owned()), name));
    let unit = |key: &ObjectKey| Unit {
        case: 0,
        class: DriftClass::AdmissionMutated,
        key: key.clone(),
        change: change(key),
    };
    let units: Vec<Unit> = keys.iter().map(unit).collect();
    let planning = Planning {
        cases: &[case],
        proposed: &units,
        renderer: &renderer,
        applications: &ApplicationFiles::search(&BTreeSet::from([root.to_owned()])),
        readers: &Readers::default(),
    };
    plan(&planning, &units)
}

/// The file afterwards, how many objects it is changed for, and what is left to the user.
fn check(file: &str, owners: &Value, change: &dyn Fn(&ObjectKey) -> UnitChange, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let plan = planned(&root, file, owners, change);
    let mut lines = Vec::new();
    for step in &plan.steps {
        lines.push(format!("for {} objects\n", step.units.len()));
        lines.extend(step.files.values().map(|content| String::from_utf8(content.clone()).unwrap()));
    }
    lines.extend(plan.refused.iter().map(|advice| format!("{}: {}\n", advice.key, advice.text)));
    expected.assert_eq(&lines.concat());
}

fn compare(_: &ObjectKey) -> UnitChange {
    let (why, instruction) = ("a policy sets the image".to_owned(), "annotate it yourself".to_owned());
    UnitChange::Compare(DryRunComparison { why, instruction })
}

fn ignore(key: &ObjectKey) -> UnitChange {
    UnitChange::Ignore(IgnoreEntry {
        key: key.clone(),
        pointers: vec![FieldPath::from_pointer("/spec/paused")],
        expressions: Vec::new(),
        why: "a policy sets this".to_owned(),
    })
}

const APPLICATION: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop # of the team
spec: {project: default}
";

const SET: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: shops}
spec:
  template:
    metadata:
      name: '{{name}}'
    spec:
      project: default
";

fn owners() -> Value {
    json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "shops", "uid": "u"}])
}

#[test]
fn the_annotation_for_dry_runs_is_written_once_with_its_reason() {
    check(
        APPLICATION,
        &json!([]),
        &compare,
        &expect![[r"
            for 2 objects
            apiVersion: argoproj.io/v1alpha1
            kind: Application
            metadata:
              name: shop # of the team
              annotations:
                # a policy sets the image
                argocd.argoproj.io/compare-options: ServerSideDiff=true,IncludeMutationWebhook=true
            spec: {project: default}
        "]],
    );
    let refuses = APPLICATION.replace(
        "  name: shop # of the team\n",
        "  name: shop\n  annotations: {argocd.argoproj.io/compare-options: ServerSideDiff=false}\n",
    );
    check(
        &refuses,
        &json!([]),
        &compare,
        &expect![[r"
            apps/Deployment shop/one: annotate it yourself (not done: the app asks for no dry runs)
            apps/Deployment shop/two: annotate it yourself (not done: the app asks for no dry runs)
        "]],
    );
}

#[test]
fn an_app_of_a_set_is_changed_in_the_template_of_the_set() {
    check(
        SET,
        &owners(),
        &ignore,
        &expect![[r"
            for 2 objects
            apiVersion: argoproj.io/v1alpha1
            kind: ApplicationSet
            metadata: {name: shops}
            spec:
              template:
                metadata:
                  name: '{{name}}'
                spec:
                  project: default
                  ignoreDifferences:
                    # a policy sets this
                    - group: apps
                      kind: Deployment
                      name: one
                      namespace: shop
                      jsonPointers:
                        - /spec/paused
                    # a policy sets this
                    - group: apps
                      kind: Deployment
                      name: two
                      namespace: shop
                      jsonPointers:
                        - /spec/paused
        "]],
    );
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let plan = planned(&root, APPLICATION, &owners(), &ignore);
    let first = plan.refused.first().map(|advice| advice.text.clone()).unwrap_or_default();
    assert!(
        first.starts_with("add to spec.template.spec.ignoreDifferences of the ApplicationSet shops: "),
        "{first}"
    );
}
