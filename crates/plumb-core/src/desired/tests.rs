use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::object::{FieldPath, GroupKind, Manifest, NotAnObject, ObjectKey};
use crate::tracking::{TRACKING_ANNOTATION, TrackingMethod, TrackingSettings};

#[derive(Debug)]
struct Settings {
    namespace: Option<&'static str>,
    scopes: Scopes,
    tracking: TrackingSettings,
    filter: KindFilter,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: Some("prod"),
            scopes: Scopes::built_in(),
            tracking: TrackingSettings::default(),
            filter: KindFilter::default(),
        }
    }
}

impl Settings {
    fn context(&self) -> DesiredContext<'_> {
        DesiredContext {
            app: "web",
            destination_namespace: self.namespace,
            destination_server: "https://kubernetes.default.svc",
            scopes: &self.scopes,
            tracking: &self.tracking,
            filter: &self.filter,
        }
    }

    fn build(&self, values: Vec<serde_json::Value>) -> DesiredSet {
        let rendered = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| RenderedManifest { value, origin: Some(at(index + 1)) })
            .collect();
        build(rendered, &self.context())
    }
}

fn at(line: usize) -> Origin {
    Origin { source: 0, file: "all.yaml".to_owned(), line, verbatim: true }
}

fn build_all(values: Vec<serde_json::Value>) -> DesiredSet {
    Settings::default().build(values)
}

/// `Kind namespace/name` of every object, hooks behind.
fn names(set: &DesiredSet) -> Vec<String> {
    let hooks = set.hooks.iter().map(|hook| {
        let name = hook.manifest.name().or(hook.manifest.generate_name()).unwrap_or_default();
        format!("hook {} {:?}", name, hook.phases)
    });
    set.objects.keys().map(ToString::to_string).chain(hooks).collect()
}

fn object(api_version: &str, kind: &str, name: &str) -> serde_json::Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn annotated(annotations: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "annotations": annotations}})
}

fn options(annotations: &serde_json::Value) -> ObjectOptions {
    ObjectOptions::parse(&Manifest::new(annotated(annotations)).unwrap())
}

#[test]
fn scope_decides_on_the_namespace() {
    let mut role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "reader");
    role["metadata"]["namespace"] = json!("stray");
    let mut there = object("v1", "ConfigMap", "there");
    there["metadata"]["namespace"] = json!("there");
    let set = build_all(vec![
        role,
        there,
        object("v1", "ConfigMap", "here"),
        object("x.example.com/v1", "Thing", "t"),
    ]);
    assert_eq!(
        names(&set),
        [
            "ConfigMap prod/here",
            "ConfigMap there/there",
            "rbac.authorization.k8s.io/ClusterRole reader",
            "x.example.com/Thing prod/t",
        ]
    );
    let marks: Vec<_> =
        set.objects.values().filter_map(|object| object.manifest.annotation(TRACKING_ANNOTATION)).collect();
    assert_eq!(
        marks,
        [
            "web:/ConfigMap:prod/here",
            "web:/ConfigMap:there/there",
            "web:rbac.authorization.k8s.io/ClusterRole:prod/reader",
            "web:x.example.com/Thing:prod/t",
        ]
    );
    let (_, role) = set.objects.last_key_value().unwrap();
    assert_eq!(role.origin, Some(at(4)));
    assert_eq!(set.problems, []);
}

#[test]
fn a_crd_of_the_set_announces_the_scope_of_its_kind_but_the_cluster_knows_better() {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example.com"},
        "spec": {"group": "x.example.com", "scope": "Cluster", "names": {"kind": "Thing"}},
    });
    let thing = object("x.example.com/v1", "Thing", "t");
    let mut settings = Settings::default();
    let set = settings.build(vec![thing.clone(), crd.clone()]);
    assert_eq!(
        names(&set),
        ["apiextensions.k8s.io/CustomResourceDefinition things.x.example.com", "x.example.com/Thing t"]
    );
    let crds: Vec<_> = set.objects.values().filter(|object| object.key.kind.starts_with("Custom")).collect();
    assert_eq!(crds[0].manifest.value(), &crd, "a CRD carries no mark");

    settings.scopes.insert(GroupKind::new("x.example.com", "Thing"), Scope::Namespaced);
    assert_eq!(names(&settings.build(vec![thing, crd]))[1], "x.example.com/Thing prod/t");
}

#[test]
fn a_file_that_was_passed_over_loses_no_object() {
    let settings = Settings::default();
    let map = RenderedManifest { value: object("v1", "ConfigMap", "a"), origin: Some(at(1)) };
    let unrelated = RenderedManifest::passed_over(0, "app/values.yaml".to_owned());
    let set = build(vec![unrelated, map], &settings.context());
    assert_eq!(names(&set), ["ConfigMap prod/a"]);
    assert_eq!(set.problems, [DesiredProblem::PassedOver { file: "app/values.yaml".to_owned() }]);
    assert!(set.is_whole());
}

#[test]
fn lists_are_taken_apart() {
    let set = build_all(vec![
        json!({"apiVersion": "v1", "kind": "List", "items": [
            object("v1", "ConfigMap", "a"),
            {"apiVersion": "v1", "kind": "List", "items": [object("v1", "ConfigMap", "b")]},
            null,
        ]}),
        json!({"apiVersion": "v1", "kind": "SecretList", "items": [{"metadata": {"name": "c"}}]}),
        json!({"apiVersion": "v1", "kind": "List", "items": null}),
        json!({"apiVersion": "v1", "kind": "List", "items": []}),
        json!({"apiVersion": "x/v1", "kind": "Box", "metadata": {"name": "d"}, "items": null, "spec": {}}),
        json!(null),
    ]);
    assert_eq!(names(&set), ["ConfigMap prod/a", "ConfigMap prod/b", "Secret prod/c", "x/Box prod/d"]);
    assert_eq!(set.problems, []);
}

#[test]
fn the_last_of_several_counts() {
    let mut second = object("v1", "ConfigMap", "a");
    second["data"] = json!({"n": "2"});
    let set = build_all(vec![object("v1", "ConfigMap", "a"), second, object("v1", "ConfigMap", "b")]);
    let key = set.objects.keys().next().unwrap().clone();
    assert_eq!(set.objects[&key].origin, Some(at(2)));
    assert_eq!(set.objects[&key].manifest.value()["data"], json!({"n": "2"}));
    assert_eq!(set.problems, [DesiredProblem::Repeated { key, count: 2, origins: vec![at(1), at(2)] }]);
    assert!(set.is_whole());

    // A hook and an object of the same name are one object.
    let set = build_all(vec![
        object("batch/v1", "Job", "j"),
        annotated(&json!({"argocd.argoproj.io/hook": "Sync"})),
    ]);
    assert_eq!(names(&set), ["hook j [Sync]"]);
    assert_eq!(set.problems.len(), 1);
}

#[test]
fn what_is_wrong_is_said_and_the_rest_is_kept() {
    let settings = Settings {
        namespace: None,
        filter: KindFilter::new(
            &[KindRule {
                api_groups: vec!["cilium.io".to_owned()],
                kinds: vec!["*".to_owned()],
                clusters: vec![],
            }],
            &[],
        ),
        ..Settings::default()
    };
    let mut unquoted = object("v1", "Namespace", "n");
    unquoted["metadata"]["labels"] = json!({"a/b": 5, "b": null, "c": "x"});
    let set = settings.build(vec![
        json!("text"),
        json!({"kind": "ConfigMap"}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}),
        object("v1", "ConfigMap", "lost"),
        object("cilium.io/v2", "CiliumIdentity", "left-out"),
        object("v1", "Event", "left-out-too"),
        unquoted,
    ]);
    let key = |group: &str, kind: &str, name: &str| ObjectKey::new(group, kind, None, name);
    assert_eq!(names(&set), ["ConfigMap lost", "Namespace n"]);
    assert_eq!(
        set.problems,
        [
            DesiredProblem::NotAnObject {
                reason: NotAnObject::NotAMap { found: "a string" },
                origin: Some(at(1))
            },
            DesiredProblem::NotAnObject {
                reason: NotAnObject::Field { field: "apiVersion", expected: "a non-empty string" },
                origin: Some(at(2))
            },
            DesiredProblem::NameMissing { kind: "ConfigMap".to_owned(), origin: Some(at(3)) },
            DesiredProblem::NamespaceMissing { key: key("", "ConfigMap", "lost") },
            DesiredProblem::Excluded { key: key("cilium.io", "CiliumIdentity", "left-out") },
            DesiredProblem::Excluded { key: key("", "Event", "left-out-too") },
            DesiredProblem::NotText {
                key: Some(key("", "Namespace", "n")),
                field: FieldPath::from_pointer("/metadata/labels/a~1b"),
                origin: Some(at(7))
            },
        ]
    );
    assert!(!set.is_whole());
}

#[test]
fn inclusions_leave_out_the_rest_and_rules_may_name_clusters() {
    let rule = |group: &str, cluster: &str| KindRule {
        api_groups: vec![group.to_owned()],
        kinds: Vec::new(),
        clusters: vec![cluster.to_owned()],
    };
    let filter =
        KindFilter::new(&[rule("{a,b}.example.com", "https://*.test")], &[rule("*", "*"), rule("[", "*")]);
    let kind = |group: &str| GroupKind::new(group, "Thing");
    assert!(filter.excludes(&kind("a.example.com"), "https://one.test"));
    assert!(!filter.excludes(&kind("a.example.com"), "https://one.prod"));
    assert!(!filter.excludes(&kind("c.example.com"), "https://one.test"));
    assert!(filter.excludes(&GroupKind::new("", "Event"), "https://one.prod"));
    assert!(filter.excludes(&GroupKind::new("coordination.k8s.io", "Lease"), "https://one.prod"));
    let narrow = KindFilter::new(&[], &[rule("apps", "*")]);
    assert!(narrow.excludes(&kind("batch"), "https://one.prod"));
    assert!(!narrow.excludes(&kind("apps"), "https://one.prod"));
    let elsewhere = KindFilter::new(&[], &[rule("apps", "https://one.test")]);
    assert!(!elsewhere.excludes(&kind("batch"), "https://one.prod"), "no inclusion names this cluster");
}

#[test]
fn kinds_are_names_and_groups_are_globs() {
    let rule = |kinds: &[&str]| KindRule {
        api_groups: vec!["*.example.com".to_owned()],
        kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
        clusters: Vec::new(),
    };
    let excludes = |kinds: &[&str], kind: &str| {
        KindFilter::new(&[rule(kinds)], &[]).excludes(&GroupKind::new("a.example.com", kind), "https://one")
    };
    assert!(excludes(&["Thing"], "Thing") && excludes(&["*"], "Thing") && excludes(&[], "Thing"));
    assert!(!excludes(&["Th*"], "Thing") && !excludes(&["thing"], "Thing"));
}

#[test]
fn hooks_are_told_by_either_annotation() {
    let check = |annotations: serde_json::Value, is_hook: bool, skip: bool, phases: &[HookPhase]| {
        let manifest = Manifest::new(annotated(&annotations)).unwrap();
        let options = ObjectOptions::parse(&manifest);
        assert_eq!(
            (options.is_hook, options.skip, HookPhase::of(&manifest).as_slice()),
            (is_hook, skip, phases),
            "{annotations}"
        );
    };
    let argo = |text: &str| json!({"argocd.argoproj.io/hook": text});
    let helm = |text: &str| json!({"helm.sh/hook": text});
    check(json!({}), false, false, &[]);
    check(argo("PreSync"), true, false, &[HookPhase::PreSync]);
    check(argo(" Sync, PostSync ,Sync"), true, false, &[HookPhase::Sync, HookPhase::PostSync]);
    check(argo("PreDelete,PostDelete"), true, false, &[HookPhase::PreDelete, HookPhase::PostDelete]);
    check(argo("presync"), true, false, &[]);
    check(argo(""), true, false, &[]);
    check(argo("Skip"), false, true, &[]);
    check(argo("Skip,SyncFail"), true, false, &[HookPhase::SyncFail]);
    check(helm("pre-install,pre-upgrade"), true, false, &[HookPhase::PreSync]);
    check(helm("post-upgrade,pre-delete"), true, false, &[HookPhase::PostSync, HookPhase::PreDelete]);
    check(helm("test"), true, false, &[]);
    check(helm("crd-install"), false, false, &[]);
    let both = |argo: &str, helm: &str| json!({"argocd.argoproj.io/hook": argo, "helm.sh/hook": helm});
    check(both("Sync", "pre-install"), true, false, &[HookPhase::Sync]);
    check(both("unknown", "pre-install"), true, false, &[HookPhase::PreSync]);
    check(both("Skip", "pre-install"), false, true, &[]);
}

#[test]
fn hooks_are_set_apart_in_the_order_of_the_source() {
    let mut named = annotated(&json!({"helm.sh/hook": "pre-install"}));
    named["metadata"]["name"] = json!("z");
    let generated = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "generateName": "a-", "annotations": {"argocd.argoproj.io/hook": "PostSync"}}});
    let nameless = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {
        "annotations": {"argocd.argoproj.io/hook": "PostSync"}}});
    let mut earlier = generated.clone();
    earlier["metadata"]["annotations"]["argocd.argoproj.io/hook"] = json!("PreSync");
    let hooks = vec![named, generated.clone(), generated, earlier, nameless.clone(), nameless];
    let set = build_all(hooks);
    assert_eq!(
        names(&set),
        [
            "hook z [PreSync]",
            "hook a- [PostSync]",
            // Otherwise a sync would give both the same name.
            "hook a-2- [PostSync]",
            "hook a- [PreSync]",
            "hook  [PostSync]",
            "hook 2- [PostSync]",
        ]
    );
    assert_eq!(set.hooks[0].namespace.as_deref(), Some("prod"));
    assert_eq!(set.hooks[1].manifest.annotation(TRACKING_ANNOTATION), Some("web:batch/Job:prod/"));
    assert_eq!(set.problems, []);
}

#[test]
fn delete_policies_of_both_kinds_add_up() {
    let policies = |annotations: serde_json::Value| options(&annotations).delete_policies;
    assert_eq!(policies(json!({})), []);
    assert_eq!(policies(json!({"helm.sh/hook": "test"})), [DeletePolicy::BeforeHookCreation]);
    assert_eq!(
        policies(json!({
            "argocd.argoproj.io/hook": "Sync",
            "argocd.argoproj.io/hook-delete-policy": "HookSucceeded, nonsense",
            "helm.sh/hook-delete-policy": "hook-failed,hook-succeeded",
        })),
        [DeletePolicy::HookSucceeded, DeletePolicy::HookFailed]
    );
}

#[test]
fn waves_fall_back_to_the_weight_and_then_to_zero() {
    let wave = |argo: &str, helm: &str| {
        options(&json!({"argocd.argoproj.io/sync-wave": argo, "helm.sh/hook-weight": helm})).wave.0
    };
    assert_eq!(wave("-5", "3"), -5);
    assert_eq!(wave("+7", "3"), 7);
    assert_eq!(wave("1.5", "3"), 3);
    assert_eq!(wave(" 1", "x"), 0);
    assert_eq!(wave("99999999999", "3"), i32::MAX);
    assert_eq!(wave("-99999999999", "3"), i32::MIN);
}

#[test]
fn sync_options_are_exact_words() {
    let parse = |text: &str| options(&json!({"argocd.argoproj.io/sync-options": text}));
    assert_eq!(parse("Prune=False,prune=false,Prune =false"), ObjectOptions::default());
    assert_eq!(parse("Prune=false").prune, Some(PruneOption::Never));
    assert_eq!(parse("Prune=true,Prune=confirm").prune, Some(PruneOption::Confirm));
    assert_eq!(parse("Delete=confirm, Delete=false").delete, Some(PruneOption::Never));
    assert_eq!(parse("ServerSideApply=true,ServerSideApply=false").server_side_apply, Some(false));
    let all =
        parse(" PruneLast=true , Validate=false,SkipDryRunOnMissingResource=true,Replace=true,Force=true");
    assert_eq!(
        all,
        ObjectOptions {
            prune_last: true,
            skip_validation: true,
            skip_dry_run_on_missing: true,
            replace: true,
            force: true,
            ..ObjectOptions::default()
        }
    );
    let kept = options(&json!({
        "helm.sh/resource-policy": "keep", "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    }));
    assert!(kept.helm_keep && kept.compare.ignore_extraneous);
}

/// Anything JSON can say.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        ".{0,8}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::Array),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Something that looks like an object, with any part of it broken.
fn any_document() -> impl Strategy<Value = serde_json::Value> {
    let annotation = prop_oneof![
        Just("argocd.argoproj.io/hook"),
        Just("argocd.argoproj.io/sync-wave"),
        Just("argocd.argoproj.io/sync-options"),
        Just("argocd.argoproj.io/tracking-id"),
        Just("helm.sh/hook"),
        Just("other"),
    ];
    let annotations = prop::collection::btree_map(
        annotation,
        prop_oneof![Just(json!("Sync")), Just(json!("pre-install")), Just(json!("Skip")), any_json()],
        0..3,
    );
    let metadata = (prop::option::of("[ab]"), prop::option::of("[cd]"), prop::option::of("[ef]-"), annotations)
        .prop_map(|(name, namespace, generate, annotations)| {
            json!({"name": name, "namespace": namespace, "generateName": generate, "annotations": annotations})
        });
    let kind = prop_oneof![
        Just(json!("ConfigMap")),
        Just(json!("Namespace")),
        Just(json!("List")),
        Just(json!("ConfigMapList")),
        any_json()
    ];
    let object = (prop_oneof![Just(json!("v1")), any_json()], kind, prop_oneof![metadata, any_json()], any_json())
        .prop_map(|(version, kind, metadata, spec)| {
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})
        })
        .boxed();
    let list = prop::collection::vec(object.clone(), 0..3)
        .prop_map(|items| json!({"apiVersion": "v1", "kind": "List", "items": items}));
    prop_oneof![4 => object, 1 => list, 1 => any_json()]
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let method = prop_oneof![
        Just(TrackingMethod::Annotation),
        Just(TrackingMethod::Label),
        Just(TrackingMethod::AnnotationAndLabel)
    ];
    (method, any::<bool>(), any::<bool>()).prop_map(|(method, installation, namespace)| Settings {
        namespace: namespace.then_some("prod"),
        tracking: TrackingSettings {
            method,
            installation_id: installation.then(|| "here".to_owned()),
            ..TrackingSettings::default()
        },
        ..Settings::default()
    })
}

proptest! {
    /// The output is a fixed point, and the same input gives the same output.
    #[test]
    fn building_again_changes_nothing(
        documents in prop::collection::vec(any_document(), 0..6),
        settings in any_settings(),
    ) {
        let set = settings.build(documents.clone());
        prop_assert_eq!(&settings.build(documents), &set);

        let rendered = set.objects.values().map(|object| (&object.manifest, &object.origin))
            .chain(set.hooks.iter().map(|hook| (&hook.manifest, &hook.origin)))
            .map(|(manifest, origin)| RenderedManifest {
                value: manifest.value().clone(),
                origin: origin.clone(),
            })
            .collect();
        let again = build(rendered, &settings.context());
        prop_assert_eq!(again.objects, set.objects);
        prop_assert_eq!(again.hooks, set.hooks);
    }

    #[test]
    fn the_place_in_the_source_is_nothing_that_is_asked_for(documents in prop::collection::vec(any_document(), 1..6)) {
        let set = Settings::default().build(documents);
        let mut moved = set.clone();
        moved.objects.values_mut().for_each(|object| object.origin = None);
        moved.hooks.iter_mut().for_each(|hook| hook.origin = None);
        prop_assert!(set.asks_the_same(&moved));
        let less = if moved.objects.pop_first().is_some() { true } else { moved.hooks.pop().is_some() };
        prop_assert_eq!(set.asks_the_same(&moved), !less);
        prop_assert_eq!(moved.asks_the_same(&set), !less);
    }

    #[test]
    fn every_object_stands_under_its_key_and_is_tracked(documents in prop::collection::vec(any_document(), 0..6)) {
        let settings = Settings::default();
        for (key, object) in &settings.build(documents).objects {
            prop_assert_eq!(key, &object.key);
            prop_assert_eq!(object.manifest.key(), Some(key.clone()));
            // No group can be called so, and no tracking id says it: the server refuses the object.
            if key.group.contains(':') {
                continue;
            }
            let owner = crate::tracking::owner_of(&object.manifest, &settings.tracking);
            prop_assert_eq!(owner.map(|owner| owner.app), Some("web".to_owned()));
        }
    }

    #[test]
    fn a_wave_is_the_number_that_was_written(wave in any::<i32>()) {
        prop_assert_eq!(options(&json!({"argocd.argoproj.io/sync-wave": wave.to_string()})).wave, Wave(wave));
    }
}

#[test]
fn a_set_fits_the_scopes_that_it_was_built_with() {
    let set = |namespace: Option<&str>| {
        let metadata = serde_json::json!({"name": "x", "namespace": namespace});
        let value = serde_json::json!({"apiVersion": "x.io/v1", "kind": "Grant", "metadata": metadata});
        let manifest = Manifest::new(value).unwrap();
        let key = manifest.key().unwrap();
        let object =
            DesiredObject { key: key.clone(), manifest, options: ObjectOptions::default(), origin: None };
        DesiredSet { objects: [(key, object)].into(), ..DesiredSet::default() }
    };
    let scopes = |scope| Scopes::from_iter([(GroupKind::new("x.io", "Grant"), scope)]);
    for (namespace, scope, has_destination, expected) in [
        (Some("a"), Scope::Namespaced, true, true),
        (Some("a"), Scope::Cluster, true, false),
        (None, Scope::Cluster, true, true),
        (None, Scope::Namespaced, true, false),
        // It never had a namespace.
        (None, Scope::Namespaced, false, true),
    ] {
        let case = (namespace, scope, has_destination);
        assert_eq!(set(namespace).fits(&scopes(scope), has_destination), expected, "{case:?}");
    }
    assert!(set(Some("a")).fits(&Scopes::default(), true), "the kind is not served yet");
}
