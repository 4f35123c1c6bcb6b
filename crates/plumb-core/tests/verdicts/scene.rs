//! What Git asks for, what the cluster has and who wrote it, what the API server answers; and the verdict in short.

use expect_test::Expect;
use plumb_core::app::{CompareOptions, IgnoreRule};
use plumb_core::desired::{DesiredObject, ObjectOptions};
use plumb_core::drift::{
    Answers, ApiFailure, Attempt, Autoscaler, DryRun, Evidence, Facts, FailureCause, Finding, HealRecord,
    Mutator, Outcome, Previous, Question, SecondRender, Verdict, judge, rule_groups,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use serde_json::{Value, json};

/// The answer of the API server to a dry-run.
pub(crate) enum Answer {
    /// The live object, with these fields of the root instead.
    Object(Value),
    Refused(ApiFailure),
    Unavailable,
}

pub(crate) struct Scene {
    /// `apiVersion kind`.
    kind: &'static str,
    git: Value,
    /// `null`: nothing.
    pub(crate) live: Value,
    /// `manager Apply|Update second[ subresource| apiVersion]` and its `fieldsV1`.
    pub(crate) managers: Vec<(&'static str, Value)>,
    /// Fields of the root that were applied before; `None`: the same as Git has now.
    before: Option<Value>,
    knows_previous: bool,
    /// The same commit rendered what was applied before.
    is_rerendered: bool,
    /// Fields of the root in a second render; `None`: the render cannot vary.
    second: Option<Value>,
    pub(crate) answer: Answer,
    mutators: Vec<Mutator>,
    autoscalers: Vec<Autoscaler>,
    pub(crate) heals: Vec<HealRecord>,
    /// Findings of the previous verdict.
    pub(crate) earlier: Vec<Finding>,
    pub(crate) strict: bool,
    /// Ignored, with a dry-run for every object.
    pub(crate) ignored: Option<&'static str>,
    pub(crate) ignored_by_jq: Option<&'static str>,
    pub(crate) ignored_manager: Option<&'static str>,
    pub(crate) last_applied: Option<Value>,
}

impl Scene {
    pub(crate) fn new(kind: &'static str, git: Value, live: Value) -> Self {
        Self {
            kind,
            git,
            live,
            managers: Vec::new(),
            before: None,
            knows_previous: true,
            is_rerendered: false,
            second: None,
            answer: Answer::Unavailable,
            mutators: Vec::new(),
            autoscalers: Vec::new(),
            heals: Vec::new(),
            earlier: Vec::new(),
            strict: false,
            ignored: None,
            ignored_by_jq: None,
            ignored_manager: None,
            last_applied: None,
        }
    }

    pub(crate) fn by(mut self, manager: &'static str, fields: Value) -> Self {
        self.managers.push((manager, fields));
        self
    }

    pub(crate) fn applied_before(mut self, before: Value) -> Self {
        self.before = Some(before);
        self
    }

    pub(crate) fn after_restart(mut self) -> Self {
        self.knows_previous = false;
        self
    }

    pub(crate) fn rendered_again(mut self, second: Value) -> Self {
        self.second = Some(second);
        self
    }

    /// What was applied came from the same commit on another day.
    pub(crate) fn of_the_same_commit(mut self) -> Self {
        self.is_rerendered = true;
        self
    }

    pub(crate) fn server_makes(mut self, object: Value) -> Self {
        self.answer = Answer::Object(object);
        self
    }

    pub(crate) fn refused(mut self, code: u16, message: &str, causes: &[(&str, &str, &str)]) -> Self {
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

    pub(crate) fn policy(mut self, name: &str) -> Self {
        self.mutators.push(Mutator { kind: "MutatingAdmissionPolicy".to_owned(), name: name.to_owned() });
        self
    }

    pub(crate) fn autoscaler(self, name: &str) -> Self {
        self.autoscaled_by("HorizontalPodAutoscaler", name, false)
    }

    pub(crate) fn autoscaled_by(mut self, kind: &str, name: &str, scales_to_zero: bool) -> Self {
        let autoscaler = Autoscaler { kind: kind.to_owned(), name: name.to_owned(), scales_to_zero };
        self.autoscalers.push(autoscaler);
        self
    }

    pub(crate) fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
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
        let second = self.second.as_ref().map(|fields| manifest(object(fields, Vec::new())));
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
        let by_manager = self.ignored_manager.map(|manager| IgnoreRule {
            group: "*".to_owned(),
            kind: "*".to_owned(),
            managed_fields_managers: vec![manager.to_owned()],
            ..IgnoreRule::default()
        });
        let rules = by_pointer.into_iter().chain(by_jq).chain(by_manager);
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
                    _ if self.is_rerendered => Previous::Rerendered,
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
                earlier: &self.earlier,
                render_may_vary: second.is_some(),
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
                                let second = SecondRender::Object(second.as_ref());
                                evidence.answers.second_render = Some(second);
                            }
                            Question::LiveAt { .. } => evidence.answers.live_at = Some(None),
                        }
                    }
                }
            }
        }
        panic!("the judge does not stop asking");
    }
}

/// One line per finding: `!` where it counts, class, fields, actor.
pub(crate) fn check(scene: Scene, expected: Expect) {
    let verdict = scene.verdict();
    for finding in verdict.findings.iter() {
        let groups = rule_groups();
        for name in finding.rule.split(", ") {
            let rule = groups.iter().flat_map(|group| &group.rules).find(|rule| rule.name == name).unwrap();
            assert!(rule.classes.contains(&finding.class), "{name} gives {}", finding.class);
        }
    }
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
pub(crate) fn said(scene: &Scene) -> String {
    let verdict = scene.verdict();
    let lines = verdict.findings.iter().flat_map(|finding| {
        finding.evidence.iter().cloned().chain(std::iter::once(format!("-> {}", finding.fix.text)))
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// The operations of the patches that the findings of a scene offer.
pub(crate) fn offered(scene: &Scene) -> String {
    let verdict = scene.verdict();
    let patches = verdict.findings.iter().filter_map(|finding| finding.fix.patch.as_deref());
    patches.flat_map(|patch| patch.lines().skip(1)).collect::<Vec<&str>>().join("\n")
}

/// The schemas of the kinds that the scenes use, in the format of the API server.
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
            "enabled": {"type": "boolean"}, "other": {"type": "boolean"},
            "allowPrivilegeEscalation": {"type": "boolean"},
            "security": {"type": "object", "properties": {"enforced": {"type": "boolean", "default": true}}},
            "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "args": {"type": "array", "items": text},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": text, "port": {"type": "integer"}}}},
            "endpoints": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"], "items": {"type": "object", "properties": {
                    "name": text, "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}}},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"name": text, "on": {"type": "boolean"}}}},
            "target": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "name": text, "options": {"type": "object", "properties": {"deep": texts}}}}}}});
    let spec = |name: &str| json!({"spec": {"$ref": format!("#/components/schemas/{name}")}});
    SchemaSet::from_openapi([&json!({"components": {"schemas": {
        "io.k8s.api.core.v1.Container": {"type": "object", "properties": {
            "name": text, "image": text, "imagePullPolicy": text,
            "args": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
            "securityContext": {"type": "object", "properties": {"privileged": {"type": "boolean"}, "other": texts}}}},
        "io.k8s.api.core.v1.PodSpec": {"type": "object", "properties": {
            "nodeName": text, "serviceAccount": text, "serviceAccountName": text, "containers": containers,
            "dnsPolicy": text, "tolerations": {"type": "array", "items": {"type": "object"}}, "hostNetwork": {"type": "boolean"}, "enableServiceLinks": {"type": "boolean"},
            "securityContext": {"type": "object", "properties": {"runAsUser": {"type": "integer"}}}}},
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
        "io.k8s.api.core.v1.ServiceSpec": {"type": "object", "properties": {"clusterIP": text, "sessionAffinity": text,
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
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration": kind("admissionregistration.k8s.io", "v1",
            "ValidatingWebhookConfiguration", json!({"webhooks": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {"name": text,
                    "clientConfig": {"type": "object", "properties": {"caBundle": text}}}}}})),
        "example.v1.Thing": kind("example.io", "v1", "Thing", thing)
    }}})])
}

pub(crate) fn thing(git: Value, live: Value) -> Scene {
    Scene::new("example.io/v1 Thing", json!({"spec": git}), json!({"spec": live}))
}

pub(crate) fn config(git: Value, live: Value) -> Scene {
    Scene::new("v1 ConfigMap", json!({"data": git}), json!({"data": live}))
        .by("argocd-controller Apply 1", json!({"f:data": {"f:level": {}}}))
}
