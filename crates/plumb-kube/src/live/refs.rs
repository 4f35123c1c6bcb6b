//! Which objects an object refers to by name.

use plumb_core::object::{GroupKind, ObjectKey};
use serde::Deserialize;
use serde_json::{Value, json};

/// The pseudo kind under which a `StatefulSet` refers to all claims that it creates. The claim `data-db-3`
/// was created from the template `data` of the set `db`, and Kubernetes does not always set an owner
/// reference in the claim.
pub(super) const CLAIMS_OF_SET: &str = "plumb.dev/ClaimsOfStatefulSet";

/// True for kinds whose references [`references`] finds.
fn has_references(kind: &GroupKind) -> bool {
    let group = kind.group.as_str();
    match kind.kind.as_str() {
        "Pod" | "ReplicationController" | "ServiceAccount" | "PersistentVolumeClaim" | "PersistentVolume" => {
            group.is_empty()
        }
        "Secret" => group.is_empty(),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => group == "apps",
        "Job" | "CronJob" => group == "batch",
        "Ingress" => group == "networking.k8s.io",
        "RoleBinding" | "ClusterRoleBinding" => group == "rbac.authorization.k8s.io",
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            group == "admissionregistration.k8s.io"
        }
        "CustomResourceDefinition" => group == "apiextensions.k8s.io",
        "APIService" => group == "apiregistration.k8s.io",
        "HorizontalPodAutoscaler" => group == "autoscaling",
        "VerticalPodAutoscaler" => group == "autoscaling.k8s.io",
        "ScaledObject" => group == "keda.sh",
        "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute" | "Gateway" => {
            group == "gateway.networking.k8s.io"
        }
        _ => false,
    }
}

/// The parts of an object in which its references are; `None` for a kind without references. The schema of a CRD takes ten
/// times its text once it is parsed, and refers to nothing.
pub(super) fn read(kind: &GroupKind, raw: &str) -> Option<Value> {
    #[derive(Deserialize)]
    struct Definition {
        spec: DefinitionSpec,
    }
    #[derive(Deserialize)]
    struct DefinitionSpec {
        #[serde(default)]
        conversion: Value,
    }
    if kind.kind == "CustomResourceDefinition" && kind.group == "apiextensions.k8s.io" {
        let definition: Definition = serde_json::from_str(raw).ok()?;
        return Some(json!({"spec": {"conversion": definition.spec.conversion}}));
    }
    if has_references(kind) { serde_json::from_str(raw).ok() } else { None }
}

/// All objects that an object refers to. Long because it is a table: one arm per kind.
pub(super) fn references(kind: &GroupKind, object: &Value) -> Vec<ObjectKey> {
    let mut found = Found { namespace: text(object, &["metadata", "namespace"]), keys: Vec::new() };
    let spec = &object["spec"];
    match kind.kind.as_str() {
        "Pod" => found.pod(spec),
        "Deployment" | "ReplicaSet" | "DaemonSet" | "Job" | "ReplicationController" => {
            found.pod(&spec["template"]["spec"]);
        }
        "StatefulSet" => found.stateful_set(object),
        "CronJob" => found.pod(&spec["jobTemplate"]["spec"]["template"]["spec"]),
        "Ingress" => found.ingress(spec),
        "RoleBinding" | "ClusterRoleBinding" => found.binding(object),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            for webhook in items(&object["webhooks"]) {
                found.service(&webhook["clientConfig"]["service"]);
            }
        }
        "CustomResourceDefinition" => {
            found.service(&spec["conversion"]["webhook"]["clientConfig"]["service"]);
        }
        "APIService" => found.service(&spec["service"]),
        "HorizontalPodAutoscaler" | "ScaledObject" => found.scaled(&spec["scaleTargetRef"]),
        "VerticalPodAutoscaler" => found.scaled(&spec["targetRef"]),
        "ServiceAccount" => {
            for secret in items(&object["secrets"]).chain(items(&object["imagePullSecrets"])) {
                found.core("Secret", &secret["name"]);
            }
        }
        "Secret" => {
            found.core(
                "ServiceAccount",
                &object["metadata"]["annotations"]["kubernetes.io/service-account.name"],
            );
        }
        "PersistentVolumeClaim" => {
            found.cluster("", "PersistentVolume", &spec["volumeName"]);
            found.cluster("storage.k8s.io", "StorageClass", &spec["storageClassName"]);
        }
        "PersistentVolume" => {
            found.cluster("storage.k8s.io", "StorageClass", &spec["storageClassName"]);
            if let (Some(namespace), Some(name)) =
                (spec["claimRef"]["namespace"].as_str(), spec["claimRef"]["name"].as_str())
            {
                found.push("", "PersistentVolumeClaim", Some(namespace), name);
            }
        }
        "Gateway" => {
            found.cluster("gateway.networking.k8s.io", "GatewayClass", &spec["gatewayClassName"]);
            for listener in items(&spec["listeners"]) {
                for certificate in items(&listener["tls"]["certificateRefs"]) {
                    found.referent(certificate, "", "Secret");
                }
            }
        }
        "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute" => {
            for parent in items(&spec["parentRefs"]) {
                found.referent(parent, "gateway.networking.k8s.io", "Gateway");
            }
            for rule in items(&spec["rules"]) {
                for backend in items(&rule["backendRefs"]) {
                    found.referent(backend, "", "Service");
                }
            }
        }
        _ => {}
    }
    found.keys.sort();
    found.keys.dedup();
    found.keys
}

/// The images of a pod's containers.
pub(super) fn images(pod: &Value) -> Vec<&str> {
    let spec = &pod["spec"];
    let mut images: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .iter()
        .flat_map(|group| items(&spec[*group]))
        .filter_map(|container| container["image"].as_str())
        .collect();
    images.sort_unstable();
    images.dedup();
    images
}

/// The set of claims that a claim belongs to by its name: `data-db` for `data-db-3`.
pub(super) fn claim_set(claim: &str) -> Option<&str> {
    let (set, ordinal) = claim.rsplit_once('-')?;
    let is_number = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !set.is_empty()).then_some(set)
}

struct Found<'a> {
    namespace: Option<&'a str>,
    keys: Vec<ObjectKey>,
}

impl<'a> Found<'a> {
    fn push(&mut self, group: &str, kind: &str, namespace: Option<&str>, name: &str) {
        if name.is_empty() {
            return;
        }
        self.keys.push(ObjectKey::new(group, kind, namespace.map(str::to_owned), name));
    }

    /// An object of the core group in the same namespace.
    fn core(&mut self, kind: &str, name: &Value) {
        if let Some(name) = name.as_str() {
            self.push("", kind, self.namespace, name);
        }
    }

    fn cluster(&mut self, group: &str, kind: &str, name: &Value) {
        if let Some(name) = name.as_str() {
            self.push(group, kind, None, name);
        }
    }

    fn service(&mut self, service: &Value) {
        if let (Some(namespace), Some(name)) = (service["namespace"].as_str(), service["name"].as_str()) {
            self.push("", "Service", Some(namespace), name);
        }
    }

    /// A reference with group, kind and namespace of its own, each with a default.
    fn referent(&mut self, referent: &Value, group: &str, kind: &str) {
        let group = referent["group"].as_str().unwrap_or(group);
        let kind = referent["kind"].as_str().unwrap_or(kind);
        let namespace = referent["namespace"].as_str().or(self.namespace);
        if let Some(name) = referent["name"].as_str() {
            self.push(group, kind, namespace, name);
        }
    }

    fn scaled(&mut self, target: &Value) {
        let group =
            target["apiVersion"].as_str().and_then(|v| v.rsplit_once('/')).map_or("", |(group, _)| group);
        // KEDA leaves kind and group out for Deployments.
        let kind = target["kind"].as_str().unwrap_or("Deployment");
        let group = if target["kind"].is_null() && group.is_empty() { "apps" } else { group };
        if let Some(name) = target["name"].as_str() {
            self.push(group, kind, self.namespace, name);
        }
    }

    fn pod(&mut self, spec: &'a Value) {
        self.core("ServiceAccount", &spec["serviceAccountName"]);
        self.cluster("scheduling.k8s.io", "PriorityClass", &spec["priorityClassName"]);
        self.cluster("node.k8s.io", "RuntimeClass", &spec["runtimeClassName"]);
        for secret in items(&spec["imagePullSecrets"]) {
            self.core("Secret", &secret["name"]);
        }
        for volume in items(&spec["volumes"]) {
            self.core("ConfigMap", &volume["configMap"]["name"]);
            self.core("Secret", &volume["secret"]["secretName"]);
            self.core("PersistentVolumeClaim", &volume["persistentVolumeClaim"]["claimName"]);
            for source in items(&volume["projected"]["sources"]) {
                self.core("ConfigMap", &source["configMap"]["name"]);
                self.core("Secret", &source["secret"]["name"]);
            }
        }
        for group in ["initContainers", "containers", "ephemeralContainers"] {
            for container in items(&spec[group]) {
                for source in items(&container["envFrom"]) {
                    self.core("ConfigMap", &source["configMapRef"]["name"]);
                    self.core("Secret", &source["secretRef"]["name"]);
                }
                for variable in items(&container["env"]) {
                    self.core("ConfigMap", &variable["valueFrom"]["configMapKeyRef"]["name"]);
                    self.core("Secret", &variable["valueFrom"]["secretKeyRef"]["name"]);
                }
            }
        }
    }

    fn stateful_set(&mut self, object: &'a Value) {
        let spec = &object["spec"];
        self.pod(&spec["template"]["spec"]);
        self.core("Service", &spec["serviceName"]);
        let Some(set) = object["metadata"]["name"].as_str() else { return };
        for template in items(&spec["volumeClaimTemplates"]) {
            if let Some(template) = template["metadata"]["name"].as_str() {
                self.push("", CLAIMS_OF_SET, self.namespace, &format!("{template}-{set}"));
            }
        }
    }

    fn ingress(&mut self, spec: &Value) {
        self.cluster("networking.k8s.io", "IngressClass", &spec["ingressClassName"]);
        self.core("Service", &spec["defaultBackend"]["service"]["name"]);
        for tls in items(&spec["tls"]) {
            self.core("Secret", &tls["secretName"]);
        }
        for rule in items(&spec["rules"]) {
            for path in items(&rule["http"]["paths"]) {
                self.core("Service", &path["backend"]["service"]["name"]);
            }
        }
    }

    fn binding(&mut self, object: &Value) {
        let role = &object["roleRef"];
        match role["kind"].as_str() {
            Some("ClusterRole") => self.cluster("rbac.authorization.k8s.io", "ClusterRole", &role["name"]),
            Some("Role") => {
                if let Some(name) = role["name"].as_str() {
                    self.push("rbac.authorization.k8s.io", "Role", self.namespace, name);
                }
            }
            Some(_) | None => {}
        }
        for subject in items(&object["subjects"]) {
            if subject["kind"] == "ServiceAccount" {
                let namespace = subject["namespace"].as_str().or(self.namespace);
                if let Some(name) = subject["name"].as_str() {
                    self.push("", "ServiceAccount", namespace, name);
                }
            }
        }
    }
}

fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(object, |value, step| value.get(step))?.as_str()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(group: &str, object: &Value, expected: &Expect) {
        let kind = GroupKind::new(group, object["kind"].as_str().unwrap());
        let read = read(&kind, &object.to_string()).unwrap();
        let lines: Vec<String> = references(&kind, &read).iter().map(ToString::to_string).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_workload_refers_to_all_that_its_pods_need() {
        let object = json!({"kind": "Deployment", "metadata": {"namespace": "a"}, "spec": {"template": {"spec": {
            "serviceAccountName": "web", "priorityClassName": "high", "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"configMap": {"name": "files"}}, {"secret": {"secretName": "tls"}},
                {"persistentVolumeClaim": {"claimName": "data"}},
                {"projected": {"sources": [{"configMap": {"name": "root-ca"}}, {"secret": {"name": "token"}}]}}],
            "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "init"}}}]}],
            "containers": [{"envFrom": [{"configMapRef": {"name": "env"}}, {"configMapRef": {"name": "env"}}]}]}}}});
        check(
            "apps",
            &object,
            &expect![[r"
            ConfigMap a/env
            ConfigMap a/files
            ConfigMap a/root-ca
            PersistentVolumeClaim a/data
            Secret a/init
            Secret a/pull
            Secret a/tls
            Secret a/token
            ServiceAccount a/web
            scheduling.k8s.io/PriorityClass high"]],
        );
    }

    #[test]
    fn bindings_routes_and_scalers() {
        check(
            "rbac.authorization.k8s.io",
            &json!({"kind": "ClusterRoleBinding", "metadata": {}, "roleRef": {"kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "b", "name": "bot"}, {"kind": "User", "name": "x"}]}),
            &expect![[r"
                ServiceAccount b/bot
                rbac.authorization.k8s.io/ClusterRole view"]],
        );
        check(
            "autoscaling",
            &json!({"kind": "HorizontalPodAutoscaler", "metadata": {"namespace": "a"},
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
            &expect!["apps/Deployment a/web"],
        );
        check(
            "networking.k8s.io",
            &json!({"kind": "Ingress", "metadata": {"namespace": "a"}, "spec": {"ingressClassName": "nginx",
                "tls": [{"secretName": "cert"}], "rules": [{"http": {"paths": [{"backend": {"service": {"name": "web"}}}]}}]}}),
            &expect![[r"
                Secret a/cert
                Service a/web
                networking.k8s.io/IngressClass nginx"]],
        );
    }

    #[test]
    fn nonsense_refers_to_nothing() {
        for value in [json!(null), json!([]), json!({"spec": "x"}), json!({"spec": {"template": [1]}})] {
            for kind in ["Pod", "Deployment", "StatefulSet", "Ingress", "RoleBinding", "HTTPRoute"] {
                assert!(references(&GroupKind::new("", kind), &value).is_empty());
            }
        }
    }

    #[test]
    fn a_claims_name_tells_its_set() {
        assert_eq!(claim_set("data-db-12"), Some("data-db"));
        assert_eq!(claim_set("data-db-x"), None);
        assert_eq!(claim_set("-1"), None);
        assert_eq!(claim_set("plain"), None);
    }
}
