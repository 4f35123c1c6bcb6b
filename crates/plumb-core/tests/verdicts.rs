//! Verdicts in short: what Git asks, what the cluster holds and who wrote it there, what the server answers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]
#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

use expect_test::{Expect, expect};
use plumb_core::app::{CompareOptions, IgnoreRule};
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, Attempt, Autoscaler, DryRun, Evidence, Facts, FailureCause, HealRecord, Mutator,
    Outcome, Previous, Question, SecondRender, Verdict, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{FieldPath, Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use serde_json::{Value, json};

/// What the server answers to a dry-run.
enum Answer {
    /// The live object, with these fields of the root instead.
    Object(Value),
    Refused(ApiFailure),
    Unavailable,
}

struct Scene {
    /// `apiVersion kind`.
    kind: &'static str,
    git: Value,
    /// `null`: nothing.
    live: Value,
    /// `manager Apply|Update second[ subresource| apiVersion]` and its `fieldsV1`.
    managers: Vec<(&'static str, Value)>,
    /// Fields of the root that were applied before; `None`: the same as Git has now.
    before: Option<Value>,
    knows_previous: bool,
    answer: Answer,
    mutators: Vec<Mutator>,
    autoscalers: Vec<Autoscaler>,
    heals: Vec<HealRecord>,
    strict: bool,
    /// Ignored, with the server asked about every object all the same.
    ignored: Option<&'static str>,
    ignored_by_jq: Option<&'static str>,
    last_applied: Option<Value>,
}

impl Scene {
    fn new(kind: &'static str, git: Value, live: Value) -> Self {
        Self {
            kind,
            git,
            live,
            managers: Vec::new(),
            before: None,
            knows_previous: true,
            answer: Answer::Unavailable,
            mutators: Vec::new(),
            autoscalers: Vec::new(),
            heals: Vec::new(),
            strict: false,
            ignored: None,
            ignored_by_jq: None,
            last_applied: None,
        }
    }

    fn by(mut self, manager: &'static str, fields: Value) -> Self {
        self.managers.push((manager, fields));
        self
    }

    fn applied_before(mut self, before: Value) -> Self {
        self.before = Some(before);
        self
    }

    fn after_restart(mut self) -> Self {
        self.knows_previous = false;
        self
    }

    fn server_makes(mut self, object: Value) -> Self {
        self.answer = Answer::Object(object);
        self
    }

    fn refused(mut self, code: u16, message: &str, causes: &[(&str, &str, &str)]) -> Self {
        let causes = causes.iter().map(|(reason, field, message)| FailureCause {
            reason: (*reason).to_owned(),
            message: (*message).to_owned(),
            field: (*field).to_owned(),
        });
        self.answer = Answer::Refused(ApiFailure {
            code,
            reason: "Refused".to_owned(),
            message: message.to_owned(),
            causes: causes.collect(),
        });
        self
    }

    fn policy(mut self, name: &str) -> Self {
        self.mutators.push(Mutator { kind: "MutatingAdmissionPolicy".to_owned(), name: name.to_owned() });
        self
    }

    fn autoscaler(mut self, name: &str) -> Self {
        let kind = "HorizontalPodAutoscaler".to_owned();
        self.autoscalers.push(Autoscaler { kind, name: name.to_owned() });
        self
    }

    fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    fn verdict(&self) -> Verdict {
        let key = ObjectKey::new("", self.kind.split_once(' ').unwrap().1, Some("n".to_owned()), "x");
        let now = "2026-02-01T00:00:00Z".parse().unwrap();
        let object = |fields: &Value, managers: Vec<Value>| {
            let (api_version, kind) = self.kind.split_once(' ').unwrap();
            let mut value = json!({"apiVersion": api_version, "kind": kind});
            value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            value["metadata"]["name"] = json!("x");
            value["metadata"]["namespace"] = json!("n");
            if !managers.is_empty() {
                value["metadata"]["managedFields"] = Value::Array(managers);
            }
            value
        };
        let managers = self.managers.iter().map(|(writer, fields)| {
            let words: Vec<&str> = writer.split(' ').collect();
            let mut entry = json!({"manager": words[0], "operation": words[1], "fieldsV1": fields,
                "time": format!("2026-01-01T00:00:0{}Z", words[2])});
            if let Some(word) = words.get(3) {
                entry[if word.contains('/') { "apiVersion" } else { "subresource" }] = json!(word);
            }
            entry
        });
        let manifest = |value: Value| Manifest::new(value).unwrap();
        let desired = DesiredObject {
            key: key.clone(),
            manifest: manifest(object(&self.git, Vec::new())),
            options: ObjectOptions::default(),
            origin: None,
        };
        let is_there = !self.live.is_null();
        let mut live = object(if is_there { &self.live } else { &self.git }, managers.collect());
        if let Some(last_applied) = &self.last_applied {
            let text = object(last_applied, Vec::new()).to_string();
            live["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(text);
        }
        let predicted = match &self.answer {
            Answer::Object(fields) => {
                let mut value = live.clone();
                value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
                Some(manifest(value))
            }
            Answer::Refused(_) | Answer::Unavailable => None,
        };
        let before = self.before.as_ref().map(|fields| manifest(object(fields, Vec::new())));
        let live = manifest(live);
        let by_pointer = self.ignored.map(|pointer| IgnoreRule {
            group: "*".to_owned(),
            kind: "*".to_owned(),
            json_pointers: vec![pointer.to_owned()],
            ..IgnoreRule::default()
        });
        let by_jq = self.ignored_by_jq.map(|expression| IgnoreRule {
            group: "*".to_owned(),
            kind: "*".to_owned(),
            jq_path_expressions: vec![expression.to_owned()],
            ..IgnoreRule::default()
        });
        let rules = by_pointer.into_iter().chain(by_jq);
        let (schemas, (rules, _)) = (schemas(), IgnoreRules::compile(rules));
        let mut evidence = Evidence {
            key: &key,
            desired: Some(&desired),
            live: Some(&live).filter(|_| is_there),
            schemas: &schemas,
            rules: &rules,
            options: CompareOptions {
                strict: self.strict,
                server_side_diff: self.ignored.map(|_| true),
                ..CompareOptions::default()
            },
            facts: Facts {
                app: "app",
                previous: match (&before, self.knows_previous) {
                    (_, false) => Previous::Unknown,
                    (Some(before), _) => Previous::Changed(Some(before)),
                    (None, _) => Previous::Same,
                },
                attempt: match &self.answer {
                    Answer::Refused(failure) => Attempt::Refused(failure),
                    Answer::Object(_) | Answer::Unavailable => Attempt::None,
                },
                mutators: &self.mutators,
                autoscalers: &self.autoscalers,
                heals: &self.heals,
                ..Facts::default()
            },
            answers: Answers::default(),
            now,
        };
        for _ in 0..4 {
            match judge(&evidence) {
                Outcome::Settled(verdict) => return *verdict,
                Outcome::Ask(questions) => {
                    for question in questions {
                        match question {
                            Question::DryRun => {
                                evidence.answers.dry_run = Some(match (&self.answer, &predicted) {
                                    (_, Some(object)) => DryRun::Object(object),
                                    (Answer::Refused(failure), _) => DryRun::Refused(failure),
                                    (Answer::Object(_) | Answer::Unavailable, _) => DryRun::Unavailable,
                                });
                            }
                            Question::SecondRender => {
                                evidence.answers.second_render = Some(SecondRender::Unavailable);
                            }
                            Question::LiveAt { .. } => evidence.answers.live_at = Some(None),
                        }
                    }
                }
            }
        }
        panic!("the judge asks without end");
    }
}

/// One line per finding: `!` where it counts, class, fields, actor.
fn check(scene: Scene, expected: Expect) {
    let verdict = scene.verdict();
    let lines: Vec<String> = verdict
        .findings
        .iter()
        .map(|finding| {
            let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
            let counts = if finding.counts { "! " } else { "" };
            let by = finding.actor.as_ref().map(|actor| format!(" by {actor}")).unwrap_or_default();
            format!("{counts}{} {}{by}", finding.class, fields.join(" "))
        })
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

/// What the findings of a scene say, and what they advise.
fn said(scene: &Scene) -> String {
    let verdict = scene.verdict();
    let lines = verdict.findings.iter().flat_map(|finding| {
        finding.evidence.iter().cloned().chain(std::iter::once(format!("-> {}", finding.fix.text)))
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// The types that the scenes need, in the words of the API server's documents.
fn schemas() -> SchemaSet {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let selector = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "matchLabels": texts,
        "matchExpressions": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"}}});
    let metadata = json!({"type": "object", "properties": {"name": text, "namespace": text, "labels": texts,
        "annotations": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"}}});
    let containers = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"], "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}});
    let kind = |group: &str, version: &str, kind: &str, fields: Value| {
        let mut properties = json!({"apiVersion": text, "kind": text, "metadata": metadata});
        properties.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"type": "object", "properties": properties,
            "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": kind}]})
    };
    let list_of_texts = json!({"type": "array", "items": text, "x-kubernetes-list-type": "atomic"});
    let role = json!({
        "aggregationRule": {"type": "object", "properties": {
            "clusterRoleSelectors": {"type": "array", "items": selector, "x-kubernetes-list-type": "atomic"}}},
        "rules": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object",
            "properties": {"verbs": list_of_texts, "resources": list_of_texts}}}});
    let thing = json!({"spec": {"type": "object", "properties": {
            "note": text, "every": text, "cpu": text, "workers": {"type": "integer"},
            "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "args": {"type": "array", "items": text},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "port": {"type": "integer"}}}},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"name": text}}},
            "target": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "name": text, "options": {"type": "object", "properties": {"deep": texts}}}}}}});
    let spec = |name: &str| json!({"spec": {"$ref": format!("#/components/schemas/{name}")}});
    SchemaSet::from_openapi([&json!({"components": {"schemas": {
        "io.k8s.api.core.v1.Container": {"type": "object", "properties": {
            "name": text, "image": text, "imagePullPolicy": text,
            "args": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
            "securityContext": {"type": "object", "properties": {"privileged": {"type": "boolean"}, "other": texts}}}},
        "io.k8s.api.core.v1.PodSpec": {"type": "object", "properties": {
            "nodeName": text, "containers": containers}},
        "io.k8s.api.apps.v1.DeploymentSpec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "template": {"type": "object", "properties": {
                "metadata": metadata,
                "spec": {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}}}}},
        "io.k8s.api.apps.v1.Deployment": kind("apps", "v1", "Deployment", spec("io.k8s.api.apps.v1.DeploymentSpec")),
        "io.k8s.api.apps.v1.StatefulSetSpec": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "serviceName": text,
            "updateStrategy": {"type": "object", "properties": {"type": text,
                "rollingUpdate": {"type": "object", "properties": {"partition": {"type": "integer"}}}}},
            "volumeClaimTemplates": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object",
                "properties": {"metadata": metadata, "spec": {"type": "object", "properties": {"size": text}}}}}}},
        "io.k8s.api.apps.v1.StatefulSet": kind("apps", "v1", "StatefulSet", spec("io.k8s.api.apps.v1.StatefulSetSpec")),
        "io.k8s.api.core.v1.ServiceSpec": {"type": "object", "properties": {"clusterIP": text,
            "clusterIPs": {"type": "array", "x-kubernetes-list-type": "atomic", "items": text}}},
        "io.k8s.api.core.v1.Service": kind("", "v1", "Service", spec("io.k8s.api.core.v1.ServiceSpec")),
        "io.k8s.api.rbac.v1.ClusterRole": kind("rbac.authorization.k8s.io", "v1", "ClusterRole", role),
        "io.k8s.api.core.v1.ConfigMap": kind("", "v1", "ConfigMap", json!({"data": texts})),
        "io.k8s.api.core.v1.ServiceAccount": kind("", "v1", "ServiceAccount", json!({"imagePullSecrets":
            {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {"name": text}}}})),
        "io.k8s.api.networking.v1.NetworkPolicySpec": {"type": "object", "properties": {"podSelector": selector,
            "ingress": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {
                "from": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object",
                    "properties": {"podSelector": selector, "note": text}}}}}}}},
        "io.k8s.api.networking.v1.NetworkPolicy": kind("networking.k8s.io", "v1", "NetworkPolicy",
            spec("io.k8s.api.networking.v1.NetworkPolicySpec")),
        "io.k8s.api.networking.v1.IngressSpec": {"type": "object", "properties": {"ingressClassName": text,
            "tls": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}}}},
        "io.k8s.api.networking.v1.Ingress": kind("networking.k8s.io", "v1", "Ingress",
            spec("io.k8s.api.networking.v1.IngressSpec")),
        "io.k8s.api.rbac.v1.RoleBinding": kind("rbac.authorization.k8s.io", "v1", "RoleBinding", json!({
            "roleRef": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"name": text, "kind": text}},
            "subjects": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object",
                "properties": {"kind": text, "name": text}}}})),
        "example.v1.Thing": kind("example.io", "v1", "Thing", thing)
    }}})])
}

fn thing(git: Value, live: Value) -> Scene {
    Scene::new("example.io/v1 Thing", json!({"spec": git}), json!({"spec": live}))
}

fn config(git: Value, live: Value) -> Scene {
    Scene::new("v1 ConfigMap", json!({"data": git}), json!({"data": live}))
        .by("argocd-controller Apply 1", json!({"f:data": {"f:level": {}}}))
}

#[test]
fn a_refusal_of_any_code_is_shown_in_the_servers_words() {
    for code in [400, 403, 404, 409, 410, 422] {
        let scene = || {
            config(json!({"level": "2"}), json!({"level": "1"}))
                .applied_before(json!({"data": {"level": "1"}}))
                .refused(code, "admission webhook \"guard\" denied the request: no such team", &[])
        };
        check(scene(), expect!["! Blocked /data/level"]);
        assert!(said(&scene()).contains("denied the request: no such team"), "{code}");
    }
    // The same for an object that is not there; but what is missing around it comes with the sync.
    let missing = |code, message: &str| {
        let mut scene = config(json!({"level": "2"}), json!({})).refused(code, message, &[]);
        scene.live = Value::Null;
        scene
    };
    check(
        missing(404, "admission webhook \"guard\" denied the request: no such team"),
        expect!["! Blocked "],
    );
    check(missing(404, "namespaces \"n\" not found"), expect!["! Behind "]);
    // A server that is busy or broken has refused nothing.
    for code in [429, 500, 503] {
        check(
            config(json!({"level": "2"}), json!({"level": "1"}))
                .applied_before(json!({"data": {"level": "1"}}))
                .refused(code, "try again later", &[]),
            expect!["! Behind /data/level"],
        );
    }
}

#[test]
fn a_server_that_cannot_be_asked_proves_no_admission() {
    let scene = || config(json!({"level": "2"}), json!({"level": "1"})).policy("mirror");
    check(scene(), expect!["! Unexplained /data/level"]);
    check(scene().refused(503, "try again later", &[]), expect!["! Unexplained /data/level"]);
    check(
        scene().server_makes(json!({"data": {"level": "1"}})),
        expect!["AdmissionMutated /data/level by MutatingAdmissionPolicy `mirror`"],
    );
    // What may have left Git is not called the server's because the server is silent.
    let dropped = || {
        thing(json!({"steps": [{"name": "a"}]}), json!({"steps": [{"name": "a", "policy": "x"}]}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:steps": {}}}))
    };
    check(
        dropped().applied_before(json!({"spec": {"steps": [{"name": "a", "policy": "x"}]}})),
        expect!["! Behind /spec/steps/0/policy"],
    );
    check(
        dropped().applied_before(json!({"spec": {"steps": [{"name": "a"}], "note": "x"}})),
        expect!["SchemaDefault /spec/steps/0/policy"],
    );
    check(dropped().after_restart(), expect!["! Unexplained /spec/steps/0/policy"]);
}

#[test]
fn a_key_more_in_a_map_that_is_one_value_is_an_edit() {
    let network = |git: Value, live: Value, owned: Value| {
        Scene::new("networking.k8s.io/v1 NetworkPolicy", json!({"spec": git}), json!({"spec": live}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", json!({"f:spec": owned}))
    };
    check(
        network(
            json!({"podSelector": {}}),
            json!({"podSelector": {"matchLabels": {"x": "y"}}}),
            json!({"f:podSelector": {}}),
        ),
        expect!["! LiveEdit /spec/podSelector/matchLabels/x by kubectl-patch"],
    );
    check(
        network(
            json!({"ingress": [{"from": [{"podSelector": {}}]}]}),
            json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"x": "y"}}, "note": "z"}]}]}),
            json!({"f:ingress": {}}),
        ),
        expect![[r"
            ! LiveEdit /spec/ingress/0/from/0/podSelector/matchLabels/x by kubectl-patch
            UnclaimedAddition /spec/ingress/0/from/0/note by kubectl-patch"]],
    );
    check(
        thing(
            json!({"target": {"name": "a", "options": {"deep": {}}}}),
            json!({"target": {"name": "a", "options": {"deep": {"x": "y"}}}}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by("kubectl-patch Update 2", json!({"f:spec": {"f:target": {}}})),
        expect!["! LiveEdit /spec/target/options/deep/x by kubectl-patch"],
    );
    // What would be there after an apply too was filled in, though whoever changed something beside it owns it.
    let filled = json!({"target": {"name": "b", "options": {"deep": {"x": "y"}}}});
    check(
        thing(json!({"target": {"name": "a", "options": {"deep": {}}}}), filled)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", json!({"f:spec": {"f:target": {}}}))
            .server_makes(json!({"spec": {"target": {"name": "a", "options": {"deep": {"x": "y"}}}}})),
        expect![[r"
            ! LiveEdit /spec/target/name by kubectl-patch
            SchemaDefault /spec/target/options/deep/x"]],
    );
}

#[test]
fn what_the_server_chooses_is_looked_at_like_anything_else() {
    let ingress = || {
        Scene::new(
            "networking.k8s.io/v1 Ingress",
            json!({"spec": {"tls": []}}),
            json!({"spec": {"tls": [], "ingressClassName": "public"}}),
        )
    };
    let ours = json!({"f:spec": {"f:tls": {}}});
    let class = json!({"f:spec": {"f:ingressClassName": {}}});
    check(
        ingress().by("argocd-controller Apply 1", ours.clone()),
        expect!["SchemaDefault /spec/ingressClassName"],
    );
    let patched = || {
        ingress().by("argocd-controller Apply 1", ours.clone()).by("kubectl-patch Update 2", class.clone())
    };
    check(patched(), expect!["UnclaimedAddition /spec/ingressClassName by kubectl-patch"]);
    check(patched().strict(), expect!["! UnclaimedAddition /spec/ingressClassName by kubectl-patch"]);
    check(
        ingress()
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:tls": {}, "f:ingressClassName": {}}}))
            .applied_before(json!({"spec": {"tls": [], "ingressClassName": "public"}}))
            .server_makes(json!({"spec": {"tls": []}})),
        expect!["! Behind /spec/ingressClassName"],
    );
    // The control plane's choice is a default like the server's, and so is one without a record.
    check(
        ingress()
            .by("argocd-controller Apply 1", ours.clone())
            .by("kube-controller-manager Update 2", class.clone()),
        expect!["SchemaDefault /spec/ingressClassName by kube-controller-manager"],
    );
    check(ingress().strict(), expect!["SchemaDefault /spec/ingressClassName"]);
    let mut left = ingress()
        .by("argocd-controller Apply 2", ours.clone())
        .by("kubectl-client-side-apply Update 1", class.clone());
    left.last_applied = Some(json!({"spec": {"tls": [], "ingressClassName": "public"}}));
    check(left, expect!["! StaleOwnership /spec/ingressClassName by kubectl-client-side-apply"]);

    let pod = |image: &str, policy: &str| {
        let containers = json!([{"name": "c", "image": image}]);
        let filled = json!([{"name": "c", "image": image, "imagePullPolicy": policy}]);
        let spec = |containers: &Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let owned = json!({"f:spec": {"f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"c\"}": {"f:imagePullPolicy": {}}}}}}});
        Scene::new("apps/v1 Deployment", spec(&containers), spec(&filled))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-patch Update 2", owned)
    };
    let place = "/spec/template/spec/containers/0/imagePullPolicy";
    for (image, policy, is_default) in [
        ("nginx:1", "IfNotPresent", true),
        ("nginx:1", "Always", false),
        ("nginx", "Always", true),
        ("nginx:latest", "Always", true),
        ("host:5000/nginx", "Always", true),
        ("host:5000/nginx:1", "IfNotPresent", true),
        ("nginx@sha256:0", "IfNotPresent", true),
        ("nginx:latest", "Never", false),
    ] {
        let verdict = pod(image, policy).verdict();
        let [finding] = &*verdict.findings else { panic!("{:?}", verdict.findings) };
        assert_eq!(finding.fields[0].to_string(), place);
        let class = if is_default { "SchemaDefault" } else { "UnclaimedAddition" };
        assert_eq!(finding.class.name(), class, "{image} {policy}");
    }
}

#[test]
fn what_a_policy_takes_away_is_the_policys() {
    let ours = json!({"f:spec": {"f:note": {}, "f:args": {}, "f:tags": {"v:\"a\"": {}},
        "f:ports": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}}});
    let stripped = |git: Value, live: Value| {
        thing(git, live.clone())
            .by("argocd-controller Apply 1", ours.clone())
            .policy("strip")
            .server_makes(json!({"spec": live}))
    };
    check(
        stripped(json!({"ports": [{"name": "a"}, {"name": "b"}]}), json!({"ports": [{"name": "a"}]})),
        expect!["AdmissionMutated /spec/ports/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"tags": ["a", "b"]}), json!({"tags": ["a"]})),
        expect!["AdmissionMutated /spec/tags/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["a"]})),
        expect!["AdmissionMutated /spec/args/1 by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]})),
        expect!["AdmissionMutated /spec/args by MutatingAdmissionPolicy `strip`"],
    );
    check(
        stripped(json!({"note": "x"}), json!({})),
        expect!["AdmissionMutated /spec/note by MutatingAdmissionPolicy `strip`"],
    );
    // The policy is there, and yet it was somebody else: an apply would bring it back.
    check(
        stripped(json!({"args": ["a", "b"]}), json!({"args": ["a"]}))
            .server_makes(json!({"spec": {"args": ["a", "b"]}})),
        expect!["! LiveEdit /spec/args/1"],
    );
    let mut unasked = stripped(json!({"tags": ["a", "b"]}), json!({"tags": ["a"]}));
    unasked.answer = Answer::Unavailable;
    check(unasked, expect!["! LiveEdit /spec/tags/1"]);
}

#[test]
fn who_widens_a_list_must_be_known_for_a_controller() {
    let binding = |manager: &'static str| {
        let (one, two) = (json!({"kind": "User", "name": "a"}), json!({"kind": "User", "name": "b"}));
        Scene::new(
            "rbac.authorization.k8s.io/v1 RoleBinding",
            json!({"subjects": [one]}),
            json!({"subjects": [one, two]}),
        )
        .by("argocd-controller Apply 1", json!({"f:roleRef": {}}))
        .by(manager, json!({"f:subjects": {}}))
    };
    check(binding("someone Update 2"), expect!["! LiveEdit /subjects/1 by someone"]);
    check(binding("deploy-script Update 2"), expect!["! LiveEdit /subjects/1 by deploy-script"]);
    check(binding("team-operator Update 2"), expect!["ControllerOwned /subjects/1 by team-operator"]);
    // Whoever writes the status of an object is its controller.
    check(
        binding("shopd Update 2").by("shopd Update 2 status", json!({"f:status": {"f:ready": {}}})),
        expect!["ControllerOwned /subjects/1 by shopd"],
    );
    let args = |manager: &'static str| {
        thing(json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:args": {}}}))
    };
    check(args("someone Update 2"), expect!["! LiveEdit /spec/args by someone"]);
    check(args("queue-controller Update 2"), expect!["ControllerOwned /spec/args by queue-controller"]);

    let replicas = |manager: &'static str| {
        Scene::new("apps/v1 Deployment", json!({"spec": {"replicas": 1}}), json!({"spec": {"replicas": 3}}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:replicas": {}}}))
    };
    check(replicas("someone Update 2 scale"), expect!["! LiveEdit /spec/replicas by someone"]);
    check(
        replicas("queue-autoscaler Update 2 scale"),
        expect!["ControllerOwned /spec/replicas by queue-autoscaler"],
    );
    check(
        replicas("someone Update 2 scale").autoscaler("web"),
        expect!["ControllerOwned /spec/replicas by someone"],
    );
}

#[test]
fn a_refusal_names_the_fields_that_cannot_change() {
    let ours = json!({"f:spec": {"f:serviceName": {}, "f:replicas": {}, "f:volumeClaimTemplates": {}}});
    let set = |git: Value| {
        let live = json!({"serviceName": "a", "replicas": 1,
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"size": "1"}}]});
        let only = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template' and 'minReadySeconds' are forbidden";
        Scene::new("apps/v1 StatefulSet", json!({"spec": git}), json!({"spec": live}))
            .by("argocd-controller Apply 1", ours.clone())
            .applied_before(json!({"spec": live}))
            .refused(
                422,
                &format!("StatefulSet.apps \"x\" is invalid: spec: Forbidden: {only}"),
                &[("FieldValueForbidden", "spec", only)],
            )
    };
    let templates = json!([{"metadata": {"name": "d"}, "spec": {"size": "2"}}]);
    let renamed = || set(json!({"serviceName": "b", "replicas": 2, "volumeClaimTemplates": templates}));
    check(renamed(), expect!["! Blocked /spec/serviceName /spec/volumeClaimTemplates/0/spec/size"]);
    assert!(said(&renamed()).contains("-> the field cannot be changed in place: replace the object"));
    check(set(json!({"serviceName": "a", "replicas": 1})), expect!["! Blocked /spec/volumeClaimTemplates"]);

    let role = |name: &str| json!({"roleRef": {"kind": "Role", "name": name}});
    let binding = || {
        Scene::new("rbac.authorization.k8s.io/v1 RoleBinding", role("b"), role("a"))
            .by("argocd-controller Apply 1", json!({"f:roleRef": {}}))
            .applied_before(role("a"))
            .refused(
                422,
                "RoleBinding \"x\" is invalid: roleRef: Invalid value: {}: cannot change roleRef",
                &[("FieldValueInvalid", "roleRef", "Invalid value: {}: cannot change roleRef")],
            )
    };
    check(binding(), expect!["! Blocked /roleRef/name"]);
    // A field that is ignored is not named, and does not hide the refusal.
    let mut ignoring = binding();
    ignoring.ignored = Some("/roleRef/name");
    check(ignoring, expect!["! Blocked /roleRef"]);
    assert!(said(&binding()).contains("-> the field cannot be changed in place: replace the object"));
}

#[test]
fn a_choice_that_forbids_the_default_of_the_former_one_can_be_applied() {
    let switched = Scene::new(
        "apps/v1 StatefulSet",
        json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}),
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:updateStrategy": {"f:type": {}}}}))
    .applied_before(json!({"spec": {"updateStrategy": {"type": "RollingUpdate"}}}))
    .refused(
        422,
        "spec.updateStrategy.rollingUpdate: Invalid value: {}: only allowed for updateStrategy 'RollingUpdate'",
        &[("FieldValueInvalid", "spec.updateStrategy.rollingUpdate", "only allowed for 'RollingUpdate'")],
    );
    assert!(switched.verdict().advice.managed_fields.is_some());
    check(
        switched,
        expect![[r"
        ! Behind /spec/updateStrategy/rollingUpdate /spec/updateStrategy/type
        SchemaDefault /spec/updateStrategy/rollingUpdate/partition"]],
    );
}

#[test]
fn an_edited_strategy_takes_the_options_of_its_type_with_it() {
    let strategy = |fields: Value| json!({"f:spec": {"f:updateStrategy": fields}});
    let live = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    let edited = |owned: Value| {
        Scene::new(
            "apps/v1 StatefulSet",
            json!({"spec": {"replicas": 1, "updateStrategy": {"type": "OnDelete"}}}),
            json!({"spec": {"replicas": 1, "updateStrategy": live}}),
        )
        .by("argocd-controller Apply 1", json!({"f:spec": {"f:replicas": {}}}))
        .by("kubectl-edit Update 2", strategy(owned))
    };
    let with_options = json!({"f:type": {}, "f:rollingUpdate": {".": {}, "f:partition": {}}});
    let scene = edited(with_options);
    let moved = scene.verdict().advice.managed_fields.unwrap().to_string();
    assert!(moved.contains("f:rollingUpdate"), "{moved}");
    check(
        scene,
        expect![[r"
        ! LiveEdit /spec/updateStrategy/type by kubectl-edit
        UnclaimedAddition /spec/updateStrategy/rollingUpdate/partition by kubectl-edit"]],
    );
    assert!(edited(json!({"f:type": {}})).verdict().advice.managed_fields.is_none());
}

#[test]
fn replicas_that_git_leaves_open_are_somebodys_where_they_are_not_the_default() {
    let scaled = |replicas: i64| {
        let live = json!({"spec": {"replicas": replicas, "template": {}}});
        Scene::new("apps/v1 Deployment", json!({"spec": {"template": {}}}), live)
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:template": {}}}))
    };
    check(scaled(1), expect!["SchemaDefault /spec/replicas"]);
    check(scaled(3), expect!["UnclaimedAddition /spec/replicas"]);
    check(scaled(3).autoscaler("web"), expect!["ControllerOwned /spec/replicas"]);
    let mut strict = scaled(3);
    strict.strict = true;
    assert!(strict.verdict().advice.managed_fields.is_some(), "so that an apply takes it back");
    check(strict, expect!["! UnclaimedAddition /spec/replicas"]);
}

#[test]
fn a_refusal_names_what_git_writes() {
    let service = |address: &str| json!({"spec": {"clusterIP": address}});
    let scene = Scene::new(
        "v1 Service",
        service("10.0.0.7"),
        json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}),
    )
    .by("argocd-controller Apply 1", json!({"f:spec": {"f:clusterIP": {}}}))
    .applied_before(service("None"))
    .refused(
        422,
        "Service \"x\" is invalid: spec.clusterIPs[0]: Invalid value: may not change once set",
        &[
            ("FieldValueInvalid", "spec.clusterIPs[0]", "may not change once set"),
            ("FieldValueInvalid", "<nil>", "some validation rules were not checked"),
        ],
    );
    check(
        scene,
        expect![[r"
        ! Blocked /spec/clusterIP
        SchemaDefault /spec/clusterIPs"]],
    );
    let container = |image: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    let scene = Scene::new("apps/v1 Deployment", container(json!(["a"])), container(json!("a:1")))
        .by("argocd-controller Apply 1", json!({}))
        .applied_before(container(json!("a:1")))
        .refused(
            422,
            "failed to create typed patch object",
            &[(
                "FieldValueTypeInvalid",
                "spec.template.spec.containers[name=\"c\"].image",
                "expected string, got &value.valueUnstructured",
            )],
        );
    check(scene, expect!["! Blocked /spec/template/spec/containers/0/image"]);
}

#[test]
fn a_value_that_a_controller_prints_in_its_own_way_is_the_same() {
    let reprinted = |field: &str, git: &str, live: &str, manager: &'static str| {
        let (ours, mut theirs) = (json!({"f:metadata": {"f:labels": {}}}), json!({"f:spec": {}}));
        theirs["f:spec"][format!("f:{field}")] = json!({});
        thing(json!({field: git}), json!({field: live}))
            .by("argocd-controller Apply 1", ours)
            .by(manager, theirs)
    };
    for (git, live) in [
        ("8760h", "8760h0m0s"),
        ("8760h0m0s", "8760h"),
        ("60s", "1m"),
        ("0.5s", "500ms"),
        ("0.5", "500m"),
        ("500m", "0.5"),
        ("1Gi", "1024Mi"),
    ] {
        let verdict = reprinted("every", git, live, "parcel-operator Update 2").verdict();
        assert_eq!(verdict.findings[0].class.name(), "EquivalentValue", "{git} {live}");
    }
    for (git, live) in [("60s", "2m"), ("0.5", "600m"), ("1.0", "1"), ("1h", "one hour")] {
        let verdict = reprinted("every", git, live, "parcel-operator Update 2").verdict();
        assert_eq!(verdict.findings[0].class.name(), "LiveEdit", "{git} {live}");
    }
    // A person means what they write, and a text that is just a text means itself.
    check(
        reprinted("every", "60s", "1m", "kubectl-edit Update 2"),
        expect!["! LiveEdit /spec/every by kubectl-edit"],
    );
    let owner = json!({"f:metadata": {"f:labels": {}}});
    check(
        thing(json!({"args": ["60s"]}), json!({"args": ["1m"]}))
            .by("argocd-controller Apply 1", owner.clone())
            .by("parcel-operator Update 2", json!({"f:spec": {"f:args": {}}})),
        expect!["! LiveEdit /spec/args/0 by parcel-operator"],
    );
    check(
        Scene::new("v1 ConfigMap", json!({"data": {"every": "60s"}}), json!({"data": {"every": "1m0s"}}))
            .by("argocd-controller Apply 1", owner)
            .by("parcel-operator Update 2", json!({"f:data": {"f:every": {}}})),
        expect!["! LiveEdit /data/every by parcel-operator"],
    );
}

#[test]
fn what_was_applied_and_is_not_ours_any_more_was_edited() {
    let elsewhere = || {
        thing(json!({"note": "a"}), json!({"note": "b"}))
            .by("argocd-controller Apply 1", json!({"f:spec": {"f:every": {}}}))
            .server_makes(json!({"spec": {"note": "a"}}))
    };
    check(elsewhere(), expect!["! LiveEdit /spec/note"]);
    check(
        elsewhere().by("kubectl-edit Update 2 example.io/v2", json!({"f:spec": {"f:notes": {}}})),
        expect!["! LiveEdit /spec/note by kubectl-edit"],
    );
}

#[test]
fn a_client_side_apply_within_the_second_of_ours_came_after_it() {
    let note = json!({"f:spec": {"f:note": {}}});
    let tie = |git: Value, live: Value| {
        thing(git, live)
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-client-side-apply Update 1", note.clone())
    };
    check(
        tie(json!({"note": "a"}), json!({"note": "b"})),
        expect!["! LiveEdit /spec/note by kubectl-client-side-apply"],
    );
    // What Git does not have was there before: it must not live on because the two were quick.
    check(
        tie(json!({}), json!({"note": "b"})),
        expect!["! StaleOwnership /spec/note by kubectl-client-side-apply"],
    );
}

#[test]
fn a_custom_resource_may_be_scaled_at_another_field() {
    let scaled = |manager: &'static str| {
        thing(json!({"workers": 1}), json!({"workers": 3}))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:workers": {}}}))
    };
    check(
        scaled("kube-controller-manager Update 2 scale").autoscaler("web"),
        expect!["ControllerOwned /spec/workers by kube-controller-manager"],
    );
    check(scaled("kubectl Update 2 scale"), expect!["! LiveEdit /spec/workers by kubectl"]);
    check(scaled("kubectl Update 2").autoscaler("web"), expect!["! LiveEdit /spec/workers by kubectl"]);
}

#[test]
fn an_addition_that_strict_takes_away_again_and_again_is_a_tug_of_war() {
    let scene = |rounds: usize| {
        let mut scene = config(json!({"level": "1"}), json!({"level": "1", "extra": "x"}))
            .by("shop-operator Update 2", json!({"f:data": {"f:extra": {}}}))
            .strict();
        scene.heals.push(HealRecord {
            field: FieldPath::from_pointer("/data/extra"),
            healed_at: vec!["2026-02-01T00:00:00Z".parse().unwrap(); rounds],
            stopped: false,
        });
        scene
    };
    check(scene(4), expect!["! UnclaimedAddition /data/extra by shop-operator"]);
    check(scene(5), expect!["! TugOfWar /data/extra by shop-operator"]);
    assert!(scene(5).verdict().advice.heal.is_empty());
}

#[test]
fn the_rules_of_an_aggregated_role_are_its_controllers_whoever_wrote_them_last() {
    let gets = |verb: &str| json!([{"verbs": [verb], "resources": ["pods"]}]);
    let scene = |aggregation: Value, writer: &'static str| {
        let role = |verb: &str| {
            let mut role = json!({"rules": gets(verb)});
            if !aggregation.is_null() {
                role["aggregationRule"] = aggregation.clone();
            }
            role
        };
        Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role("get"), role("list"))
            .by("argocd-controller Apply 1", json!({"f:aggregationRule": {}}))
            .by(writer, json!({"f:rules": {}}))
    };
    let aggregation = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]});
    check(
        scene(aggregation.clone(), "clusterrole-aggregation-controller Apply 2"),
        expect!["ControllerOwned /rules/0/verbs/0 by clusterrole-aggregation-controller"],
    );
    check(scene(aggregation, "kubectl-edit Update 2"), expect!["ControllerOwned /rules/0/verbs/0"]);
    check(
        scene(Value::Null, "kubectl-edit Update 2"),
        expect!["! LiveEdit /rules/0/verbs/0 by kubectl-edit"],
    );
}

#[test]
fn an_empty_list_that_the_server_shows_as_null_is_no_part_of_an_edit_beside_it() {
    let rules = |verb: &str, resources: Value| json!({"rules": [{"verbs": [verb], "resources": resources}]});
    let scene = |answer: Value| {
        Scene::new(
            "rbac.authorization.k8s.io/v1 ClusterRole",
            rules("get", json!([])),
            rules("list", Value::Null),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {}}))
        .by("kubectl-edit Update 2", json!({"f:rules": {}}))
        .server_makes(rules("get", answer))
    };
    check(
        scene(Value::Null),
        expect![[r"
            ! LiveEdit /rules/0/verbs/0 by kubectl-edit
            PhantomDefault /rules/0/resources"]],
    );
}

#[test]
fn another_choice_where_only_one_may_stand_goes_when_gits_comes_back() {
    let place = "spec.template.spec.containers[0].securityContext";
    let spec = |context: Value| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "securityContext": context}]}}}});
    let owned = |field: &str| json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {"f:securityContext": {field: {}}}}}}}});
    let scene = |writer: &'static str| {
        Scene::new(
            "apps/v1 Deployment",
            spec(json!({"privileged": true})),
            spec(json!({"other": {"a": "1"}})),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(writer, owned("f:other"))
        .refused(
            422,
            "invalid",
            &[
                ("FieldValueForbidden", &format!("{place}.other"), "may not specify more than 1 type"),
                ("FieldValueNotFound", "spec.template.spec.containers[0].name", "Not found"),
            ],
        )
    };
    let edited = scene("kubectl-edit Update 2").verdict();
    let counted: Vec<String> = edited
        .findings
        .iter()
        .filter(|finding| finding.counts)
        .map(|finding| format!("{} {}", finding.class, finding.fields.len()))
        .collect();
    assert!(!counted.iter().any(|line| line.starts_with("Blocked")), "{counted:?}");
    assert!(edited.advice.managed_fields.is_some(), "the other choice is taken over, so that it goes");
}

#[test]
fn a_refusal_of_what_a_sync_would_not_send_blocks_nothing() {
    let claim = |size: &str| json!({"spec": {"cpu": size}});
    let scene = |manager: &'static str| {
        Scene::new("example.io/v1 Thing", claim("4"), claim("9"))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by(manager, json!({"f:spec": {"f:cpu": {}}}))
            .refused(422, "only grows", &[("FieldValueInvalid", "spec.cpu", "only grows")])
    };
    let mut grown = scene("kube-controller-manager Update 2");
    grown.ignored = Some("/spec/note");
    check(grown, expect!["ControllerOwned /spec/cpu by kube-controller-manager"]);
    let mut edited = scene("kubectl-edit Update 2");
    edited.ignored = Some("/spec/note");
    assert!(said(&edited).contains("the server refuses it: only grows"), "{}", said(&edited));
}

#[test]
fn an_autoscaler_that_was_switched_off_excuses_nothing() {
    let scene = |live: i64, writer: &'static str| {
        Scene::new(
            "apps/v1 Deployment",
            json!({"spec": {"replicas": 3}}),
            json!({"spec": {"replicas": live}}),
        )
        .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
        .by(writer, json!({"f:spec": {"f:replicas": {}}}))
        .autoscaler("web")
    };
    check(scene(5, "kubectl Update 2 scale"), expect!["ControllerOwned /spec/replicas by kubectl"]);
    check(scene(0, "kubectl Update 2 scale"), expect!["! LiveEdit /spec/replicas by kubectl"]);
    check(
        scene(0, "kube-controller-manager Update 2 scale"),
        expect!["ControllerOwned /spec/replicas by kube-controller-manager"],
    );
}

#[test]
fn what_git_dropped_lives_on_by_an_older_writer_of_the_same_field() {
    let scene = |writer: &'static str, ours: Value| {
        Scene::new("v1 ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {"a": "1", "b": "2"}}))
            .by("argocd-controller Apply 5", json!({"f:data": ours}))
            .by(writer, json!({"f:data": {"f:a": {}, "f:b": {}}}))
            .applied_before(json!({"data": {"a": "1", "b": "2"}}))
    };
    let (both, one) = (json!({"f:a": {}, "f:b": {}}), json!({"f:a": {}}));
    check(scene("bootstrap Apply 1", both.clone()), expect!["! StaleOwnership /data/b by bootstrap"]);
    assert!(scene("bootstrap Apply 1", both.clone()).verdict().advice.managed_fields.is_some());
    // Git never had it, or the other one wrote it after us.
    check(scene("bootstrap Apply 1", one), expect!["UnclaimedAddition /data/b by bootstrap"]);
    check(scene("bootstrap Apply 9", both), expect!["UnclaimedAddition /data/b by bootstrap"]);
}

#[test]
fn an_ignored_item_hides_nothing_of_gits() {
    let role = |names: &[&str]| {
        let rules: Vec<Value> =
            names.iter().map(|name| json!({"resources": [name], "verbs": ["get"]})).collect();
        json!({"rules": rules})
    };
    let scene = |live: &[&str], ignored: &'static str| {
        let mut scene = Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role(&["a"]), role(live))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-edit Update 2", json!({"f:rules": {}}));
        scene.ignored_by_jq = Some(ignored);
        scene
    };
    let leases = r#".rules[] | select(.resources == ["x"])"#;
    check(scene(&["x", "a"], leases), expect![""]);
    check(scene(&["a", "x"], leases), expect![""]);
    check(scene(&["x"], leases), expect!["! LiveEdit /rules/0/resources/0 by kubectl-edit"]);
    check(scene(&["x", "b"], leases), expect!["! LiveEdit /rules/0/resources/0 /rules/1 by kubectl-edit"]);
    // An ignored item behind an edited one is not named; nor is one that the rules name on both sides.
    check(scene(&["b", "x"], leases), expect!["! LiveEdit /rules/0/resources/0 by kubectl-edit"]);
    let mut named =
        Scene::new("rbac.authorization.k8s.io/v1 ClusterRole", role(&["a", "b"]), role(&["c", "d"]))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("kubectl-edit Update 2", json!({"f:rules": {}}));
    named.ignored = Some("/rules/0");
    check(named, expect!["! LiveEdit /rules/1/resources/0 by kubectl-edit"]);
}

#[test]
fn a_refusal_of_gits_own_value_takes_nothing_of_others_away() {
    let spec = |fields: Value| json!({"spec": fields});
    let scene =
        Scene::new("example.io/v1 Thing", spec(json!({"every": "wrong"})), spec(json!({"note": "theirs"})))
            .by("argocd-controller Apply 1", json!({"f:metadata": {"f:labels": {}}}))
            .by("an-operator Update 2", json!({"f:spec": {"f:note": {}}}))
            .applied_before(json!({"spec": {}}))
            .refused(422, "invalid", &[("FieldValueInvalid", "spec.every", "must be a duration")]);
    assert!(scene.verdict().advice.managed_fields.is_none());
    assert!(said(&scene).contains("the server refuses it: must be a duration"), "{}", said(&scene));
}
