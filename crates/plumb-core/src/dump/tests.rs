//! Small dumps, judged.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::*;
use crate::app::CompareOptions;
use crate::desired::{DesiredContext, DesiredSet, KindFilter, RenderedManifest, Scopes, build};
use crate::ignore::IgnoreRules;
use crate::object::ObjectKey;
use crate::schema::SchemaSet;
use crate::tracking::{TrackingMethod, TrackingSettings};
use crate::yaml::{Limits, parse_documents};

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              colour: {type: string}
          status: {type: object, properties: {ready: {type: boolean}}}
";

fn dump(text: &str) -> LiveDump {
    let mut live = LiveDump::new();
    read_dump(text.as_bytes(), &mut live).expect("a dump");
    live
}

fn desired(text: &str) -> DesiredSet {
    desired_with(text, &TrackingSettings::default())
}

fn desired_with(text: &str, tracking: &TrackingSettings) -> DesiredSet {
    let documents = parse_documents(text, &Limits::default()).expect("YAML");
    let rendered =
        documents.into_iter().map(|document| RenderedManifest { value: document.value, origin: None });
    build(
        rendered.collect(),
        &DesiredContext {
            app: "shop",
            destination_namespace: Some("team"),
            destination_server: "",
            scopes: &Scopes::built_in(),
            tracking,
            filter: &KindFilter::default(),
        },
    )
}

fn now() -> Timestamp {
    "2026-04-16T23:00:00Z".parse().expect("a time")
}

/// One line per finding: `!` where it counts.
fn check(git: &str, live: &str, expected: &Expect) {
    check_beside((&[], &[]), git, live, expected);
}

/// What other apps ask for, and what further ones rendered.
type Others<'facts> = (&'facts [(&'facts str, &'facts DesiredSet)], &'facts [(String, BTreeSet<ObjectKey>)]);

fn check_beside(others: Others<'_>, git: &str, live: &str, expected: &Expect) {
    check_with(&TrackingSettings::default(), others, git, live, expected);
}

fn check_with(
    tracking: &TrackingSettings,
    (others, recorded_of_others): Others<'_>,
    git: &str,
    live: &str,
    expected: &Expect,
) {
    let (desired, live) = (desired_with(git, tracking), dump(live));
    let instance = tracking_app(&desired, &live, tracking);
    let schemas = SchemaSet::default().with_crds(live.values());
    let app = DumpedApp {
        instance: instance.as_deref(),
        desired: &desired,
        others,
        recorded_of_others,
        live: &live,
        schemas: &schemas,
        tracking,
        rules: &IgnoreRules::default(),
        options: CompareOptions::default(),
        recorded: None,
        second: None,
        now: now(),
    };
    let lines: Vec<String> = judge_all(&app)
        .values()
        .flat_map(|verdict| verdict.findings.iter())
        .map(|finding| {
            let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
            let counts = if finding.counts { "!" } else { " " };
            format!("{counts} {} {} {}", finding.class, finding.key, fields.join(" ")).trim_end().to_owned()
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

fn mark(kind: &str, name: &str) -> String {
    format!("annotations: {{argocd.argoproj.io/tracking-id: \"shop:{kind}:team/{name}\"}}")
}

#[test]
fn defaults_of_a_crd_are_explained_and_edits_are_not() {
    let git = "{apiVersion: example.io/v1, kind: Thing, metadata: {name: a}, spec: {colour: red}}";
    let live = |spec: &str| {
        let mark = mark("example.io/Thing", "a");
        format!(
            "{CRD}---\n{{apiVersion: example.io/v1, kind: Thing, metadata: {{name: a, namespace: team, {mark}}}, \
             spec: {spec}, status: {{ready: true}}}}\n"
        )
    };
    check(
        git,
        &live("{colour: red, size: 1}"),
        &expect!["  SchemaDefault example.io/Thing team/a /spec/size"],
    );
    check(
        git,
        &live("{colour: blue, size: 1}"),
        &expect![[r"
        ! Unexplained example.io/Thing team/a /spec/colour
          SchemaDefault example.io/Thing team/a /spec/size"]],
    );
}

#[test]
fn an_object_of_two_apps_belongs_to_the_one_that_tracks_it() {
    let git = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '1'}}";
    let live = |app: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: team, \
             annotations: {{argocd.argoproj.io/tracking-id: \"{app}:/ConfigMap:team/a\"}}}}, data: {{x: '1'}}}}\n\
             ---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: b, namespace: team, {}}}}}\n",
            mark("/ConfigMap", "b")
        )
    };
    let git = &format!(
        "{git}\n---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: b}}}}\n\
         ---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: '0'}}}}\n"
    );
    let other = desired(git);
    let others: &[(&str, &DesiredSet)] = &[("other", &other)];
    check_beside(
        (others, &[]),
        git,
        &live("shop"),
        &expect![[r"
            ! Behind ConfigMap team/0
              SharedResource ConfigMap team/a
              SharedResource ConfigMap team/b"]],
    );
    check_beside(
        (others, &[]),
        git,
        &live("zoo"),
        &expect![[r"
            ! Behind ConfigMap team/0
            ! Unadopted ConfigMap team/a
              SharedResource ConfigMap team/b"]],
    );
    let zoo: &[(&str, &DesiredSet)] = &[("zoo", &other)];
    check_beside(
        (zoo, &[]),
        git,
        &live("zoo"),
        &expect![[r"
            ! Behind ConfigMap team/0
            ! SharedResource ConfigMap team/a
              SharedResource ConfigMap team/b"]],
    );
    let recorded = ObjectKey::new("", "ConfigMap", Some("team".to_owned()), "a");
    check_beside(
        (&[], &[("zoo".to_owned(), BTreeSet::from([recorded]))]),
        git,
        &live("zoo"),
        &expect![[r"
            ! Behind ConfigMap team/0
            ! SharedResource ConfigMap team/a"]],
    );
}

#[test]
fn missing_untracked_foreign_and_left_over_objects() {
    let git = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: ours}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: missing}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: untracked}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {a: b}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}, data: {a: b}}
";
    let map = |name: &str, mark: &str| {
        format!(
            "- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: team, {mark}}}, data: {{a: b}}}}\n"
        )
    };
    let live = format!(
        "apiVersion: v1\nitems:\n{}{}{}{}{}kind: List\n",
        map("ours", &mark("/ConfigMap", "ours")),
        map("second", &mark("/ConfigMap", "second")),
        map("untracked", ""),
        map("left", &mark("/ConfigMap", "left")),
        map("foreign", "annotations: {argocd.argoproj.io/tracking-id: \"other:/ConfigMap:team/foreign\"}"),
    );
    check(
        git,
        &live,
        &expect![[r"
        ! Unadopted ConfigMap team/foreign
        ! Orphan ConfigMap team/left
        ! Behind ConfigMap team/missing
        ! Unadopted ConfigMap team/untracked"]],
    );
    // Without any mark, no app is known, and it is not judged who owns what.
    let bare = "{apiVersion: v1, kind: ConfigMap, metadata: {name: ours, namespace: team}, data: {a: b}}";
    check("{apiVersion: v1, kind: ConfigMap, metadata: {name: ours}, data: {a: b}}", bare, &expect![""]);
}

#[test]
fn replicas_under_an_autoscaler_of_the_dump() {
    let git = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}";
    let deployment = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: team, {}, managedFields: [\
         {{manager: argocd-controller, operation: Apply, apiVersion: apps/v1, fieldsV1: {{\"f:spec\": {{}}}}}}, \
         {{manager: kube-controller-manager, operation: Update, subresource: scale, apiVersion: apps/v1, \
         time: \"2026-04-16T20:00:00Z\", fieldsV1: {{\"f:spec\": {{\"f:replicas\": {{}}}}}}}}]}}, \
         spec: {{replicas: 4}}}}\n",
        mark("apps/Deployment", "web")
    );
    let scaler = "---\n{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: team}, \
        spec: {minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}\n";
    check(git, &deployment, &expect!["! LiveEdit apps/Deployment team/web /spec/replicas"]);
    check(
        git,
        &format!("{deployment}{scaler}"),
        &expect!["  ControllerOwned apps/Deployment team/web /spec/replicas"],
    );
}

#[test]
fn a_dump_that_is_cut_off_is_refused() {
    let read =
        |text: &str| read_dump(text.as_bytes(), &mut LiveDump::new()).map_err(|error| error.to_string());
    let object = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n";
    assert_eq!(read(&format!("apiVersion: v1\nitems:\n{object}kind: List\n")), Ok(()));
    for (text, expected) in [
        (
            format!("apiVersion: v1\nitems:\n{object}"),
            "the list at line 1 has no kind: the end of the file is missing",
        ),
        (
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {}\nkind: List\n"
                .to_owned(),
            "object 1 of the document at line 1 has no name: the end of the file may be missing",
        ),
        ("{\"kind\": \"List\", \"items\": [{\"kind\":".to_owned(), "it is not complete YAML or JSON"),
        ("# nothing\n".to_owned(), "it has no objects"),
    ] {
        assert_eq!(read(&text), Err(expected.to_owned()), "{text}");
    }
    assert!(read("just text").is_err_and(|error| error.contains("is not an object of a cluster")));
    assert!(read("apiVersion: v1\nmetadata: {name: a}\n").is_err());
    // Nothing of it is used.
    let mut live = LiveDump::new();
    assert!(
        read_dump(
            format!("{}---\nx\n", "{apiVersion: v1, kind: A, metadata: {name: a}}\n").as_bytes(),
            &mut live
        )
        .is_err()
    );
    assert!(live.is_empty());
}

#[test]
fn a_crash_loop_is_found_below_its_deployment() {
    let live = dump(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, uid: d, generation: 1, creationTimestamp: \"2026-03-26T21:00:00Z\"}
spec: {replicas: 1}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions: [{type: Progressing, status: \"True\", lastTransitionTime: \"2026-03-26T21:00:00Z\"}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: team, uid: r, ownerReferences: [{uid: d, kind: Deployment, name: web}]}
spec: {replicas: 1}
status: {replicas: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1-x, namespace: team, uid: p, creationTimestamp: \"2026-03-26T21:00:00Z\", ownerReferences: [{uid: r, kind: ReplicaSet, name: web-1}]}
spec: {containers: [{name: main}]}
status:
  phase: Running
  containerStatuses:
  - name: main
    ready: false
    restartCount: 1154
    state: {waiting: {reason: CrashLoopBackOff, message: back-off}}
    lastState: {terminated: {exitCode: 1, reason: Error}}
",
    );
    let facts = unhealthy(&live, live.keys().filter(|key| key.kind == "Deployment"), now());
    let lines: Vec<String> = facts
        .iter()
        .map(|fact| {
            let since = fact.since.map(|since| since.to_string()).unwrap_or_default();
            format!(
                "{} {} {since} stuck: {}\n{}",
                fact.key,
                fact.status,
                fact.is_stuck,
                fact.causes.join("\n")
            )
        })
        .collect();
    expect![[r"
        apps/Deployment team/web Progressing 2026-03-26T21:00:00Z stuck: true
        apps/Deployment team/web: Progressing: 0 of 1 updated replicas are available
        apps/ReplicaSet team/web-1: Progressing: 0 of 1 replicas are available
        Pod team/web-1-x: container main keeps crashing (CrashLoopBackOff): 1154 restarts since 2026-03-26T21:00:00Z, last exit code 1 (Error)"]].assert_eq(&lines.join("\n"));
    assert!(unhealthy(&LiveDump::new(), live.keys(), now()).is_empty());
}

/// The object of an app has the mark that its control plane writes, and no difference follows from it.
#[test]
fn objects_are_owned_as_the_settings_mark_them() {
    const GIT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: \"1\"}}";
    let label = "labels: {app.kubernetes.io/instance: shop}";
    let annotation = mark("/ConfigMap", "a");
    let of_installation = annotation.replace('}', ", argocd.argoproj.io/installation-id: east}");
    let checked = |method, installation: Option<&str>, marks: &str, expected: Expect| {
        let tracking = TrackingSettings {
            method,
            installation_id: installation.map(str::to_owned),
            ..TrackingSettings::default()
        };
        let live = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: team, {marks}}}, data: {{x: \"1\"}}}}"
        );
        check_with(&tracking, (&[], &[]), GIT, &live, &expected);
    };
    checked(TrackingMethod::Label, None, label, expect![[""]]);
    checked(TrackingMethod::Annotation, None, &annotation, expect![[""]]);
    checked(TrackingMethod::AnnotationAndLabel, None, &format!("{label}, {annotation}"), expect![[""]]);
    checked(TrackingMethod::Annotation, Some("east"), &of_installation, expect![[""]]);
}

/// An object without the mark of the app's control plane is not the app's.
#[test]
fn a_mark_of_another_installation_is_not_the_apps() {
    let live = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: team, {}}}}}",
        mark("/ConfigMap", "a").replace('}', ", argocd.argoproj.io/installation-id: west}")
    );
    let (desired, live) = (desired("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), dump(&live));
    let found = |installation: Option<&str>| {
        let installation_id = installation.map(str::to_owned);
        tracking_app(&desired, &live, &TrackingSettings { installation_id, ..TrackingSettings::default() })
    };
    assert_eq!([found(None), found(Some("east"))], [None, None]);
    assert_eq!(found(Some("west")).as_deref(), Some("shop"));
}
