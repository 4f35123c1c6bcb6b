//! The references of one object.

use serde_json::Value;

use super::Reference;
use super::walk::{At, Found, Need};
use crate::object::{FieldPath, Manifest, ObjectKey};

/// How many claims of a `StatefulSet` are named. Those of its pods are found by the pods themselves.
const MOST_ORDINALS: u64 = 100;

/// Every object that this one names, sorted, each once per field. `namespace` is that of the object, for one that leaves
/// it to the app.
pub fn references(object: &Manifest, namespace: Option<&str>) -> Vec<Reference> {
    let namespace = object.namespace().or(namespace);
    let mut found = Found { namespace, references: Vec::new() };
    let root = At::root(object.value());
    if let Some(namespace) = namespace.filter(|name| !name.is_empty()) {
        let field = FieldPath::root().field("metadata").field("namespace");
        found.push(ObjectKey::of_namespace(namespace), field, Need::Blocks);
    }
    if !of_built_in(&mut found, object, &root) {
        match target_of_autoscaler(object) {
            Some(target) => of_autoscaler(&mut found, &root, target),
            None => of_custom(&mut found, &root),
        }
    }
    found.references.sort();
    found.references.dedup();
    found.references
}

/// False for a kind that is not one of Kubernetes' own. Long because it is a table: one arm per kind.
fn of_built_in<'object>(found: &mut Found<'object>, object: &Manifest, root: &At<'object>) -> bool {
    let spec = root.get("spec");
    match (object.group(), object.kind()) {
        ("", "Pod") => {
            found.pod(&spec);
            for volume in spec.get("volumes").items().filter(|volume| volume.value.get("ephemeral").is_some())
            {
                if let (Some(pod), Some(name)) = (object.name(), volume.get("name").text()) {
                    let namespace = found.namespace.map(str::to_owned);
                    let key = ObjectKey::new("", "PersistentVolumeClaim", namespace, format!("{pod}-{name}"));
                    found.push(key, volume.path.clone(), Need::Blocks);
                }
            }
        }
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => {
            found.pod(&spec.below(&["template", "spec"]));
        }
        ("apps", "StatefulSet") => found.stateful_set(object, &spec),
        ("batch", "CronJob") => found.pod(&spec.below(&["jobTemplate", "spec", "template", "spec"])),
        ("networking.k8s.io", "Ingress") => found.ingress(root, &spec),
        ("networking.k8s.io", "IngressClass") => {
            found.referent(&spec.get("parameters"), ("", ""), Need::Works);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => found.binding(root),
        ("admissionregistration.k8s.io", kind) if kind.ends_with("WebhookConfiguration") => {
            for webhook in root.get("webhooks").items() {
                found.named("", "Service", &webhook.below(&["clientConfig", "service"]), Need::Works);
            }
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => {
            let kind = object.kind().trim_end_matches("Binding");
            found.cluster(object.group(), kind, &spec.get("policyName"), Need::Works);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let service = spec.below(&["conversion", "webhook", "clientConfig", "service"]);
            found.named("", "Service", &service, Need::Works);
        }
        ("apiregistration.k8s.io", "APIService") => {
            found.named("", "Service", &spec.get("service"), Need::Blocks);
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            found.referent(&spec.get("scaleTargetRef"), ("apps", "Deployment"), Need::Works);
        }
        ("", "ServiceAccount") => {
            for secret in root.get("secrets").items().chain(root.get("imagePullSecrets").items()) {
                found.core("Secret", &secret.get("name"), Need::Works);
            }
        }
        ("", "Secret") => {
            let account = root.below(&["metadata", "annotations", "kubernetes.io/service-account.name"]);
            found.core("ServiceAccount", &account, Need::Works);
        }
        ("", "PersistentVolumeClaim") => found.claim(&spec),
        ("", "PersistentVolume") => found.volume_of_cluster(&spec),
        ("storage.k8s.io", "StorageClass") => found.storage_class(root),
        ("gateway.networking.k8s.io", _) => found.gateway(&spec),
        ("policy", "PodDisruptionBudget") | ("networking.k8s.io", "NetworkPolicy") => {}
        (group, _) if is_built_in(group) => {}
        _ => return false,
    }
    true
}

fn of_custom<'object>(found: &mut Found<'object>, root: &At<'object>) {
    let spec = root.get("spec");
    for template in
        [spec.below(&["template", "spec"]), spec.below(&["jobTemplate", "spec", "template", "spec"])]
    {
        if template.get("containers").value.is_array() {
            found.pod(&template);
        }
    }
    found.custom(&spec, 0);
}

/// The field in which an autoscaler that is a custom resource names what it scales.
fn target_of_autoscaler(object: &Manifest) -> Option<&'static str> {
    match (object.group(), object.kind()) {
        ("keda.sh", "ScaledObject") => Some("scaleTargetRef"),
        ("autoscaling.k8s.io", "VerticalPodAutoscaler") => Some("targetRef"),
        _ => None,
    }
}

/// An autoscaler scales its target and nothing else, in its own namespace. What the texts of its triggers name is no workload,
/// whatever they say: an autoscaler excuses the replicas of what it refers to.
fn of_autoscaler<'object>(found: &mut Found<'object>, root: &At<'object>, target: &str) {
    let spec = root.get("spec");
    let before = found.references.len();
    found.custom(&spec, 0);
    let beside = found.references.split_off(before);
    let namespace = found.namespace.map(str::to_owned);
    let is_no_workload = |key: &ObjectKey| {
        matches!(key.kind.as_str(), "ConfigMap" | "Secret" | "ServiceAccount")
            || key.kind.contains("TriggerAuthentication")
    };
    let place = spec.get(target);
    let beside = beside.into_iter().filter(|known| is_no_workload(&known.to));
    found.references.extend(beside.filter(|known| !known.field.starts_with(&place.path)));
    let before = found.references.len();
    // KEDA leaves out the kind of a Deployment.
    found.referent(&place, ("apps", "Deployment"), Need::Works);
    for known in found.references.split_off(before) {
        let to = ObjectKey::new(&*known.to.group, &*known.to.kind, namespace.clone(), &*known.to.name);
        found.push(to, known.field, known.need);
    }
}

/// Is it an API group of Kubernetes itself?
pub(crate) fn is_built_in(group: &str) -> bool {
    !group.contains('.')
        || matches!(
            group,
            "admissionregistration.k8s.io"
                | "apiextensions.k8s.io"
                | "apiregistration.k8s.io"
                | "authentication.k8s.io"
                | "authorization.k8s.io"
                | "certificates.k8s.io"
                | "coordination.k8s.io"
                | "discovery.k8s.io"
                | "events.k8s.io"
                | "flowcontrol.apiserver.k8s.io"
                | "networking.k8s.io"
                | "node.k8s.io"
                | "rbac.authorization.k8s.io"
                | "resource.k8s.io"
                | "scheduling.k8s.io"
                | "storage.k8s.io"
        )
}

impl<'object> Found<'object> {
    fn stateful_set(&mut self, object: &Manifest, spec: &At<'object>) {
        self.pod(&spec.below(&["template", "spec"]));
        self.core("Service", &spec.get("serviceName"), Need::Works);
        let number = |at: At<'_>, absent: u64| at.value.as_u64().unwrap_or(absent);
        let first = number(spec.below(&["ordinals", "start"]), 0);
        let n_replicas = number(spec.get("replicas"), 1).min(MOST_ORDINALS);
        for template in spec.get("volumeClaimTemplates").items() {
            let class = template.below(&["spec", "storageClassName"]);
            self.cluster("storage.k8s.io", "StorageClass", &class, Need::Blocks);
            let (Some(name), Some(set)) = (template.below(&["metadata", "name"]).text(), object.name())
            else {
                continue;
            };
            for ordinal in first..first.saturating_add(n_replicas) {
                let claim = format!("{name}-{set}-{ordinal}");
                let key =
                    ObjectKey::new("", "PersistentVolumeClaim", self.namespace.map(str::to_owned), claim);
                // The StatefulSet creates it.
                self.push(key, template.path.clone(), Need::Optional);
            }
        }
    }

    fn claim(&mut self, spec: &At<'object>) {
        self.cluster("", "PersistentVolume", &spec.get("volumeName"), Need::Blocks);
        self.cluster("storage.k8s.io", "StorageClass", &spec.get("storageClassName"), Need::Blocks);
        for source in [spec.get("dataSource"), spec.get("dataSourceRef")] {
            let group = source.get("apiGroup").text().unwrap_or_default();
            let kind = source.get("kind").text().unwrap_or("PersistentVolumeClaim");
            self.named(group, kind, &source, Need::Blocks);
        }
    }

    fn volume_of_cluster(&mut self, spec: &At<'object>) {
        self.cluster("storage.k8s.io", "StorageClass", &spec.get("storageClassName"), Need::Works);
        self.named("", "PersistentVolumeClaim", &spec.get("claimRef"), Need::Optional);
        let csi = spec.get("csi");
        self.cluster("storage.k8s.io", "CSIDriver", &csi.get("driver"), Need::Works);
        for secret in [
            "controllerPublishSecretRef",
            "nodeStageSecretRef",
            "nodePublishSecretRef",
            "controllerExpandSecretRef",
        ] {
            self.named("", "Secret", &csi.get(secret), Need::Works);
        }
    }

    /// The parameters name a Secret in two fields.
    fn storage_class(&mut self, root: &At<'object>) {
        self.cluster("storage.k8s.io", "CSIDriver", &root.get("provisioner"), Need::Works);
        let parameters = root.get("parameters");
        for (name, value) in parameters.value.as_object().into_iter().flatten() {
            let Some(stem) = name.strip_suffix("-secret-name") else { continue };
            let namespace = parameters.get(&format!("{stem}-secret-namespace"));
            if let (Some(secret), Some(namespace)) = (value.as_str(), namespace.text()) {
                let key = ObjectKey::new("", "Secret", Some(namespace.to_owned()), secret);
                self.push(key, parameters.path.field(name.as_str()), Need::Works);
            }
        }
    }

    fn ingress(&mut self, root: &At<'object>, spec: &At<'object>) {
        let (group, class) = ("networking.k8s.io", "IngressClass");
        self.cluster(group, class, &spec.get("ingressClassName"), Need::Works);
        let annotations = root.below(&["metadata", "annotations"]);
        self.cluster(group, class, &annotations.get("kubernetes.io/ingress.class"), Need::Works);
        self.cluster(
            "cert-manager.io",
            "ClusterIssuer",
            &annotations.get("cert-manager.io/cluster-issuer"),
            Need::Works,
        );
        self.local("cert-manager.io", "Issuer", &annotations.get("cert-manager.io/issuer"), Need::Works);
        self.backend(&spec.get("defaultBackend"));
        for tls in spec.get("tls").items() {
            self.core("Secret", &tls.get("secretName"), Need::Works);
        }
        for rule in spec.get("rules").items() {
            for path in rule.below(&["http", "paths"]).items() {
                self.backend(&path.get("backend"));
            }
        }
    }

    fn backend(&mut self, backend: &At<'object>) {
        self.core("Service", &backend.below(&["service", "name"]), Need::Works);
        let resource = backend.get("resource");
        let group = resource.get("apiGroup").text().unwrap_or_default();
        if let Some(kind) = resource.get("kind").text() {
            self.named(group, kind, &resource, Need::Works);
        }
    }

    fn binding(&mut self, root: &At<'object>) {
        const GROUP: &str = "rbac.authorization.k8s.io";
        let role = root.get("roleRef");
        match role.get("kind").text() {
            Some("ClusterRole") => self.cluster(GROUP, "ClusterRole", &role.get("name"), Need::Works),
            Some("Role") => self.local(GROUP, "Role", &role.get("name"), Need::Works),
            Some(_) | None => {}
        }
        let accounts = root.get("subjects");
        for subject in accounts.items().filter(|subject| subject.get("kind").text() == Some("ServiceAccount"))
        {
            self.named("", "ServiceAccount", &subject, Need::Works);
        }
    }

    /// Gateways and routes.
    fn gateway(&mut self, spec: &At<'object>) {
        const GROUP: &str = "gateway.networking.k8s.io";
        self.cluster(GROUP, "GatewayClass", &spec.get("gatewayClassName"), Need::Works);
        for listener in spec.get("listeners").items() {
            for certificate in listener.below(&["tls", "certificateRefs"]).items() {
                self.referent(&certificate, ("", "Secret"), Need::Works);
            }
        }
        for parent in spec.get("parentRefs").items() {
            self.referent(&parent, (GROUP, "Gateway"), Need::Works);
        }
        for rule in spec.get("rules").items() {
            for backend in rule.get("backendRefs").items() {
                self.referent(&backend, ("", "Service"), Need::Works);
            }
        }
    }
}

/// Do the labels have all that a selector asks for? An empty selector selects nothing here.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let Some(wanted) = selector.as_object().filter(|wanted| !wanted.is_empty()) else { return false };
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}
