use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::desired::{DesiredContext, DesiredSet, KindFilter, Origin, RenderedManifest, Scopes, build};
use crate::object::{Manifest, ObjectKey};
use crate::schema::SchemaSet;
use crate::tracking::TrackingSettings;
use crate::yaml::{Limits, parse_documents};

fn desired(app: &str, text: &str) -> DesiredSet {
    let documents = parse_documents(text, &Limits::default()).expect("YAML");
    let origin = |line| Some(Origin { source: 0, file: format!("{app}.yaml"), line, verbatim: true });
    let rendered = documents
        .into_iter()
        .map(|document| RenderedManifest { origin: origin(document.line), value: document.value });
    build(
        rendered.collect(),
        &DesiredContext {
            app,
            destination_namespace: Some("team"),
            destination_server: "",
            scopes: &Scopes::built_in(),
            tracking: &TrackingSettings::default(),
            filter: &KindFilter::default(),
        },
    )
}

fn schemas() -> SchemaSet {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.io"},
    "spec": {"group": "example.io", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
        "versions": [{"name": "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer", "default": 1},
                "colour": {"type": "string"},
                "refs": {"type": "array", "items": {"type": "object", "properties": {
                    "key": {"type": "string"}, "policy": {"type": "string", "default": "None"}}}},
            }}}}}}]}});
    SchemaSet::default().with_crds([&Manifest::new(crd).expect("a CRD")])
}

/// Checks apps by name and file; the text is what `plumb lint` prints.
fn check(files: &[(&str, &str)], expected: &Expect) {
    let sets: Vec<DesiredSet> = files.iter().map(|(name, text)| desired(name, text)).collect();
    let apps: Vec<LintApp<'_>> = files
        .iter()
        .zip(&sets)
        .map(|((name, _), desired)| LintApp {
            name,
            destination: "here",
            desired,
            second: None,
            creates: None,
            is_checked: true,
        })
        .collect();
    let read = |app: &str, _: &Origin| {
        files.iter().find(|(name, _)| *name == app).map(|(_, text)| text.as_bytes().to_vec())
    };
    let findings = with_lines(lint(&apps, &schemas()), read);
    expected.assert_eq(&text(&findings, apps.len(), None));
}

#[test]
fn fields_that_differ_without_meaning() {
    check(
        &[(
            "shop",
            "
apiVersion: example.io/v1
kind: Thing
metadata: {name: a}
spec:
  refs:
  - key: x
  - {key: y, policy: Some}
  color: red
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: child}
spec:
  syncPolicy:
    automated:
      prune: false
      selfHeal: true
  source: {helm: {valuesObject: {on: false}}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  creationTimestamp: null
  annotations: {deployment.kubernetes.io/revision: '3'}
spec:
  template:
    metadata: {creationTimestamp: null}
    spec:
      hostNetwork: false
      containers:
      - name: main
        resources:
          limits: {cpu: 1000m, memory: 1Gi}
status: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {hostname: '', tty: ''}
",
        )],
        &expect![[r#"
            shop.yaml:9: error: RejectedField: shop: example.io/Thing team/a: /spec/color is not a field of example.io/v1 Thing
                did you mean `colour`?
            shop.yaml:26: warning: RejectedField: shop: apps/Deployment team/web: only the API server or a controller sets /metadata/annotations/deployment.kubernetes.io~1revision, /status
                remove the lines
            shop.yaml:17: warning: PhantomDefault: shop: argoproj.io/Application team/child: Git sets what is the same as leaving the field out: /spec/syncPolicy/automated/prune: false
                remove the lines: the live object does not have them, and Argo CD shows it as OutOfSync
            shop.yaml:31: hint: PhantomDefault: shop: apps/Deployment team/web: Git sets what is the same as leaving the field out: /spec/template/spec/hostNetwork: false
                remove the lines: the live object does not have them
            shop.yaml:7: hint: SchemaDefault: shop: example.io/Thing team/a: the API server fills in defaults inside a list: /spec/refs/0/policy: "None"
                set them in Git, or nothing: plumb does not count them, Argo CD shows the object as OutOfSync
            shop.yaml:35: hint: EquivalentValue: shop: apps/Deployment team/web: the API server writes values differently: /spec/template/spec/containers/0/resources/limits/cpu: "1000m" is stored as "1"
                use the spelling of the API server

            1 app: 1 error, 2 warnings, 3 hints"#]],
    );
}

#[test]
fn two_apps_with_one_object() {
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
    check(
        &[("one", map), ("two", map)],
        &expect![[r"
        one.yaml:1: error: SharedResource: one: ConfigMap team/a: app two (two.yaml:1) has the same object
            keep it in one app: each sync of one makes the other OutOfSync
        two.yaml:1: error: SharedResource: two: ConfigMap team/a: app one (one.yaml:1) has the same object
            keep it in one app: each sync of one makes the other OutOfSync

        2 apps: 2 errors, 0 warnings, 0 hints"]],
    );
}

#[test]
fn secrets_are_named_and_not_shown() {
    check(
        &[(
            "shop",
            "
apiVersion: v1
kind: Secret
metadata: {name: a}
stringData:
  empty: ''
  vault: <path:secret/data/db#password>
  word: <password>
  later: ref+vault://secret/db
  ca.crt: -----BEGIN CERTIFICATE-----
  password: hunter2
---
{apiVersion: v1, kind: Secret, metadata: {name: b}, stringdata: {password: hunter2}}
---
{apiVersion: v1, kind: Secret, metadata: {name: token}, type: kubernetes.io/service-account-token}
---
{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: s}, spec: {encryptedData: {a: AgBy}}}
",
        )],
        &expect![[r"
            shop.yaml:11: error: PlainSecret: shop: Secret team/a: the Secret has 1 value in Git, which everyone who can read the repository can read
                encrypt it (`plumb seal`), or fetch it (an ExternalSecret), and change the values: the history of Git keeps them
            shop.yaml:13: error: PlainSecret: shop: Secret team/b: the Secret has 1 value in Git, which everyone who can read the repository can read
                encrypt it (`plumb seal`), or fetch it (an ExternalSecret), and change the values: the history of Git keeps them

            1 app: 2 errors, 0 warnings, 0 hints"]],
    );
}

#[test]
fn what_makes_secrets_is_checked_across_apps() {
    let external = |name: &str, store: &str, more: &str| {
        format!(
            "---\napiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {{name: {name}}}\nspec:\n  \
             secretStoreRef: {store}\n{more}"
        )
    };
    let data = "  data:\n  - secretKey: password\n    remoteRef: {key: shop/db}\n";
    let platform =
        "{apiVersion: external-secrets.io/v1, kind: SecretStore, metadata: {name: vault}, spec: {}}\n";
    let mut shop = external("good", "{name: vault}", data);
    shop += &external("misspelled", "{name: valt}", data);
    shop += &external("outside", "{kind: ClusterSecretStore, name: aws}", data);
    shop += &external(
        "keys",
        "{name: vault}",
        "  target: {name: good}\n  data:\n  - secretKey: a b\n    remoteRef: {key: x}\n",
    );
    check(
        &[("platform", platform), ("shop", &shop)],
        &expect![[r#"
        shop.yaml:4: error: DerivedSecret: shop: external-secrets.io/ExternalSecret team/good: it makes Secret good, and so does ExternalSecret keys
            keep one of them, or let one merge (spec.target.creationPolicy: Merge)
        shop.yaml:31: error: DerivedSecret: shop: external-secrets.io/ExternalSecret team/keys: it makes Secret good, and so does ExternalSecret good
            keep one of them, or let one merge (spec.target.creationPolicy: Merge)
        shop.yaml:36: error: DerivedSecret: shop: external-secrets.io/ExternalSecret team/keys: spec.data[0].secretKey is "a b", which no Secret can have as a key
            correct it: the operator cannot write the Secret
        shop.yaml:15: warning: DerivedSecret: shop: external-secrets.io/ExternalSecret team/misspelled: no app of this repository has SecretStore valt
            check its name; `plumb doctor --secrets` looks for it in the cluster
        shop.yaml:24: hint: DerivedSecret: shop: external-secrets.io/ExternalSecret team/outside: no app of this repository has ClusterSecretStore aws
            check its name; `plumb doctor --secrets` looks for it in the cluster

        2 apps: 3 errors, 1 warning, 1 hint"#]],
    );
}

#[test]
fn credentials_outside_of_secrets_are_hinted_at_and_not_shown() {
    // Put together here, so that no scanner takes this file for a leak.
    let token = format!("gh{}_{}", "p", "A1B2C3D4E5F6G7H8I9J0KLMNOPQRSTUVWXYZ");
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{config: 'token={token}', motd: hello}}\n"
    );
    check(
        &[("shop", &text)],
        &expect![[r"
        shop.yaml:3: warning: Credential: shop: ConfigMap team/a: data.config looks like a GitHub token
            move it into a Secret, encrypted or fetched, and change it: the history of Git keeps it

        1 app: 0 errors, 1 warning, 0 hints"]],
    );
}

#[test]
fn waves_hooks_and_claims() {
    check(
        &[(
            "shop",
            "
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {template: {spec: {serviceAccountName: migrate, containers: [{name: m, env: [{valueFrom: {secretKeyRef: {name: outside}}}]}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {generateName: smoke-, annotations: {argocd.argoproj.io/hook: PostSync}}
spec: {template: {spec: {serviceAccountName: migrate}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: migrate}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      volumes:
      - name: config
        configMap: {name: late}
      - name: other
        configMap: {name: late-too, optional: true}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: '1'}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: late-too, annotations: {argocd.argoproj.io/sync-wave: '1'}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: odd, annotations: {argocd.argoproj.io/sync-wave: first}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: safe, annotations: {argocd.argoproj.io/sync-options: Prune=false}}}
",
        )],
        &expect![[r#"
            shop.yaml:5: error: UnreachableWave: shop: batch/Job team/migrate: it is applied in phase PreSync, wave 0 and needs ServiceAccount team/migrate, which is applied in wave 0: the first sync never gets there
                make ServiceAccount team/migrate a PreSync hook with an earlier wave, or run the hook in a later phase
            shop.yaml:22: error: UnreachableWave: shop: apps/Deployment team/web: it is applied in wave 0 and needs ConfigMap team/late, which is applied in wave 1: the first sync never gets there
                give ConfigMap team/late a sync wave of at most 0
            shop.yaml:30: warning: UnreachableWave: shop: ConfigMap team/odd: the sync wave "first" is not a number: the object is in wave 0
                write a whole number in quotes
            shop.yaml:7: warning: HookDeletePolicy: shop: the hook has generateName and no delete policy: each sync leaves one more object
                add the annotation argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded
            shop.yaml:4: hint: HookDeletePolicy: shop: batch/Job team/migrate: the hook has no delete policy: its object stays until the next sync
                add the annotation argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded
            shop.yaml:32: hint: UnprotectedClaim: shop: PersistentVolumeClaim team/data: a sync with prune deletes the claim and its data once Git no longer has it
                add the annotation argocd.argoproj.io/sync-options: Prune=false,Delete=false

            1 app: 2 errors, 2 warnings, 2 hints"#]],
    );
}

#[test]
fn broken_documents() {
    check(
        &[(
            "shop",
            "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {on: true}}}
---
just text
",
        )],
        &expect![[r"
            shop.yaml:4: error: InvalidManifest: shop: ConfigMap team/a: the object is there 2 times (shop.yaml:2, shop.yaml:4): the last one counts
                keep one of them
            shop.yaml:6: error: InvalidManifest: shop: ConfigMap team/b: /metadata/labels/true is not text: the API server refuses the object
                put it in quotes
            shop.yaml:8: error: InvalidManifest: shop: not a Kubernetes object: a Kubernetes object is a map, this is a string
                remove the document, or exclude the file

            1 app: 3 errors, 0 warnings, 0 hints"]],
    );
}

#[test]
fn a_second_render_that_differs() {
    let one =
        desired("shop", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {time: '1', same: x}}");
    let two =
        desired("shop", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {time: '2', same: x}}");
    let app = LintApp {
        name: "shop",
        destination: "",
        desired: &one,
        second: Some(&two),
        creates: None,
        is_checked: true,
    };
    let findings = lint(&[app], &SchemaSet::default());
    let shown: Vec<String> =
        findings.iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect();
    assert_eq!(shown, ["UnstableRender a second render of the same files differs: /data/time"]);
    let stable = LintApp { second: Some(&one), ..app };
    assert_eq!(lint(&[stable], &SchemaSet::default()), []);
}

/// A password that the chart makes up is not in Git, and a namespace that the options create is there in time.
#[test]
fn what_only_looks_wrong() {
    let secret = |password: &str| {
        format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, stringData: {{password: {password}}}}}"
        )
    };
    let late = "{apiVersion: v1, kind: Namespace, metadata: {name: team, annotations: {argocd.argoproj.io/sync-wave: '3'}}}";
    let one = desired("shop", &format!("{}\n---\n{late}", secret("x7")));
    let two = desired("shop", &format!("{}\n---\n{late}", secret("q1")));
    let app = LintApp {
        name: "shop",
        destination: "",
        desired: &one,
        second: Some(&two),
        creates: None,
        is_checked: true,
    };
    let rules = |app: LintApp<'_>| -> Vec<LintRule> {
        lint(&[app], &SchemaSet::default()).iter().map(|finding| finding.rule).collect()
    };
    assert_eq!(rules(app), [LintRule::UnreachableWave, LintRule::UnstableRender]);
    let namespace = ObjectKey::of_namespace("team");
    assert_eq!(rules(LintApp { creates: Some(&namespace), ..app }), [LintRule::UnstableRender]);
    assert!(rules(LintApp { second: None, ..app }).contains(&LintRule::PlainSecret));
}

#[test]
fn an_app_that_is_only_compared_with_is_not_checked() {
    let secret = desired("other", "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: b}}");
    let app = LintApp {
        name: "other",
        destination: "",
        desired: &secret,
        second: None,
        creates: None,
        is_checked: false,
    };
    assert_eq!(lint(&[app], &SchemaSet::default()), []);
}

#[test]
fn formats_escape_what_others_wrote() {
    let mut finding = LintFinding::new(LintRule::InvalidManifest, "a&b", "<b>|\n::error::x", "fix");
    finding.origin = Some(Origin { source: 0, file: "a b.yaml".to_owned(), line: 7, verbatim: true });
    let findings = [finding];
    let github = github(&findings, None);
    assert_eq!(github.lines().count(), 1, "{github}");
    assert!(junit(&findings, &["a&b", "quiet"]).contains("classname=\"a&amp;b\""));
    assert!(junit(&findings, &["a&b", "quiet"]).contains("name=\"no findings\"/>"));
    assert!(markdown(&findings, None).contains("\\<b\\>\\| ::error::x"));
    let sarif = sarif(&findings, "1");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(*place, json!({"artifactLocation": {"uri": "a%20b.yaml"}, "region": {"startLine": 7}}));
    let data = data(&findings, None);
    assert_eq!((&data["findings"][0]["line"], &data["summary"]["errors"]), (&json!(7), &json!(1)));
}

#[test]
fn every_rule_is_found_by_its_name() {
    for rule in LintRule::ALL {
        assert_eq!(LintRule::from_name(&rule.name().to_lowercase()), Some(rule));
    }
    assert_eq!(LintRule::from_name("x"), None);
}
