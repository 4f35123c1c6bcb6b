//! What the API server fills into built-in kinds. Its `OpenAPI` documents do not say so (the defaults live in Go
//! code), and an apply dry-run cannot tell a default from a value that is already there. The table is used to
//! *explain* an addition, and to prove that an atomic list is unchanged; a field that is missing here is still
//! recognised by having no owner.

use serde_json::{Map, Value, json};

/// How the server came to fill in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFill {
    /// A fixed default.
    Default,
    /// Chosen by the server: an address, a port, a name.
    Allocated,
}

/// What the API server itself puts into the fields of one built-in type. Looked up once, when a schema is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fills(&'static [(&'static str, &'static str, Fill)]);

impl Fills {
    /// Nothing.
    pub(super) const NONE: Self = Self(&[]);

    pub(super) fn of_type(type_name: &str) -> Self {
        let short = type_name.strip_prefix("io.k8s.api.").unwrap_or(type_name);
        let start = TABLE.partition_point(|(of, _, _)| *of < short);
        let (_, from_here) = TABLE.split_at(start);
        let (of_type, _) = from_here.split_at(from_here.partition_point(|(of, _, _)| *of == short));
        Self(of_type)
    }

    /// Is `value` what the server puts into `field`?
    pub(super) fn fill(
        self,
        field: &str,
        value: &Value,
        siblings: &Map<String, Value>,
    ) -> Option<ServerFill> {
        let (_, _, fill) = self.0.iter().find(|(_, name, _)| *name == field)?;
        fill.is_it(value, siblings)
    }
}

/// Does the API server choose the value of a field of this name, in some built-in type? Such a value belongs to one
/// object in one cluster.
pub fn is_allocated_field(name: &str) -> bool {
    TABLE.iter().any(|(_, field, fill)| *field == name && matches!(fill, Allocated))
}

impl Fill {
    fn is_it(&self, value: &Value, siblings: &Map<String, Value>) -> Option<ServerFill> {
        let is_default = match self {
            Allocated => return Some(ServerFill::Allocated),
            Text(text) => value.as_str() == Some(text),
            Number(number) => value.as_i64() == Some(*number),
            Flag(flag) => value.as_bool() == Some(*flag),
            Empty => value.as_object().is_some_and(Map::is_empty),
            AnyOf(texts) => value.as_str().is_some_and(|value| texts.contains(&value)),
            By(choose) => *value == choose(siblings),
            ListOf(texts) => value.as_array().is_some_and(|items| {
                items.len() == texts.len()
                    && items.iter().zip(*texts).all(|(item, text)| item.as_str() == Some(text))
            }),
            Sibling(name) => siblings.get(*name) == Some(value),
            Json(texts) => {
                let is_it =
                    |text: &&str| serde_json::from_str::<Value>(text).is_ok_and(|known| known == *value);
                texts.iter().any(is_it)
            }
        };
        is_default.then_some(ServerFill::Default)
    }
}

/// Images without a tag, or with the tag `latest`, are pulled always.
fn pull_policy(container: &Map<String, Value>) -> Value {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let tag = name.rsplit('/').next().and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
    let is_moving = tag == Some("latest") || (tag.is_none() && digest.is_none());
    json!(if is_moving { "Always" } else { "IfNotPresent" })
}

/// A Job with a limit for each index has none for all of them.
fn backoff_limit(job: &Map<String, Value>) -> Value {
    json!(if job.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 })
}

fn pod_replacement(job: &Map<String, Value>) -> Value {
    json!(if job.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" })
}

/// A network policy with rules for what goes out is about that, too.
fn policy_types(policy: &Map<String, Value>) -> Value {
    let has_egress = policy.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) }
}

fn list_kind(names: &Map<String, Value>) -> Value {
    json!(format!("{}List", names.get("kind").and_then(Value::as_str).unwrap_or_default()))
}

fn singular(names: &Map<String, Value>) -> Value {
    json!(names.get("kind").and_then(Value::as_str).unwrap_or_default().to_lowercase())
}

/// What the server writes into a field that was left out.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Text(&'static str),
    Number(i64),
    Flag(bool),
    /// An empty map.
    Empty,
    /// Depends on other fields, but is one of these.
    AnyOf(&'static [&'static str]),
    ListOf(&'static [&'static str]),
    /// Follows from the other fields of the same map.
    By(fn(&Map<String, Value>) -> Value),
    /// The same value as another field of the same map.
    Sibling(&'static str),
    /// One of these values, as JSON.
    Json(&'static [&'static str]),
    /// Whatever it likes.
    Allocated,
}

use Fill::{Allocated, AnyOf, By, Empty, Flag, Json, ListOf, Number, Sibling, Text};

const UP_POLICIES: &str =
    r#"[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}]"#;
const DOWN_POLICIES: &str = r#"[{"periodSeconds":15,"type":"Percent","value":100}]"#;
const SCALE_UP: &str = r#"{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}"#;
const SCALE_DOWN: &str =
    r#"{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"}"#;
const CPU_AT_80: &str = r#"[{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}]"#;

/// Type (without `io.k8s.api.`), field, fill; sorted by type and field.
const TABLE: &[(&str, &str, Fill)] = &[
    ("admissionregistration.v1.MatchResources", "matchPolicy", Text("Equivalent")),
    ("admissionregistration.v1.MatchResources", "namespaceSelector", Empty),
    ("admissionregistration.v1.MatchResources", "objectSelector", Empty),
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", "failurePolicy", Text("Fail")),
    ("admissionregistration.v1.MutatingWebhook", "failurePolicy", Text("Fail")),
    ("admissionregistration.v1.MutatingWebhook", "matchPolicy", Text("Equivalent")),
    ("admissionregistration.v1.MutatingWebhook", "namespaceSelector", Empty),
    ("admissionregistration.v1.MutatingWebhook", "objectSelector", Empty),
    ("admissionregistration.v1.MutatingWebhook", "reinvocationPolicy", Text("Never")),
    ("admissionregistration.v1.MutatingWebhook", "timeoutSeconds", Number(10)),
    ("admissionregistration.v1.NamedRuleWithOperations", "scope", Text("*")),
    ("admissionregistration.v1.RuleWithOperations", "scope", Text("*")),
    ("admissionregistration.v1.ServiceReference", "port", Number(443)),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", "failurePolicy", Text("Fail")),
    ("admissionregistration.v1.ValidatingWebhook", "failurePolicy", Text("Fail")),
    ("admissionregistration.v1.ValidatingWebhook", "matchPolicy", Text("Equivalent")),
    ("admissionregistration.v1.ValidatingWebhook", "namespaceSelector", Empty),
    ("admissionregistration.v1.ValidatingWebhook", "objectSelector", Empty),
    ("admissionregistration.v1.ValidatingWebhook", "timeoutSeconds", Number(10)),
    ("apps.v1.DaemonSetSpec", "revisionHistoryLimit", Number(10)),
    ("apps.v1.DaemonSetUpdateStrategy", "type", Text("RollingUpdate")),
    ("apps.v1.DeploymentSpec", "progressDeadlineSeconds", Number(600)),
    ("apps.v1.DeploymentSpec", "replicas", Number(1)),
    ("apps.v1.DeploymentSpec", "revisionHistoryLimit", Number(10)),
    ("apps.v1.DeploymentStrategy", "type", Text("RollingUpdate")),
    ("apps.v1.ReplicaSetSpec", "replicas", Number(1)),
    ("apps.v1.RollingUpdateDaemonSet", "maxSurge", Number(0)),
    ("apps.v1.RollingUpdateDaemonSet", "maxUnavailable", Number(1)),
    ("apps.v1.RollingUpdateDeployment", "maxSurge", Text("25%")),
    ("apps.v1.RollingUpdateDeployment", "maxUnavailable", Text("25%")),
    ("apps.v1.RollingUpdateStatefulSetStrategy", "partition", Number(0)),
    ("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", "whenDeleted", Text("Retain")),
    ("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy", "whenScaled", Text("Retain")),
    ("apps.v1.StatefulSetSpec", "podManagementPolicy", Text("OrderedReady")),
    ("apps.v1.StatefulSetSpec", "replicas", Number(1)),
    ("apps.v1.StatefulSetSpec", "revisionHistoryLimit", Number(10)),
    ("apps.v1.StatefulSetUpdateStrategy", "type", Text("RollingUpdate")),
    ("autoscaling.v1.HorizontalPodAutoscalerSpec", "minReplicas", Number(1)),
    ("autoscaling.v1.HorizontalPodAutoscalerSpec", "targetCPUUtilizationPercentage", Number(80)),
    ("autoscaling.v2.HPAScalingRules", "policies", Json(&[UP_POLICIES, DOWN_POLICIES])),
    ("autoscaling.v2.HPAScalingRules", "selectPolicy", Text("Max")),
    ("autoscaling.v2.HPAScalingRules", "stabilizationWindowSeconds", Number(0)),
    ("autoscaling.v2.HorizontalPodAutoscalerBehavior", "scaleDown", Json(&[SCALE_DOWN])),
    ("autoscaling.v2.HorizontalPodAutoscalerBehavior", "scaleUp", Json(&[SCALE_UP])),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", "metrics", Json(&[CPU_AT_80])),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", "minReplicas", Number(1)),
    ("batch.v1.CronJobSpec", "concurrencyPolicy", Text("Allow")),
    ("batch.v1.CronJobSpec", "failedJobsHistoryLimit", Number(1)),
    ("batch.v1.CronJobSpec", "successfulJobsHistoryLimit", Number(3)),
    ("batch.v1.CronJobSpec", "suspend", Flag(false)),
    ("batch.v1.JobSpec", "backoffLimit", By(backoff_limit)),
    ("batch.v1.JobSpec", "completionMode", Text("NonIndexed")),
    ("batch.v1.JobSpec", "completions", Number(1)),
    ("batch.v1.JobSpec", "manualSelector", Flag(false)),
    ("batch.v1.JobSpec", "parallelism", Number(1)),
    ("batch.v1.JobSpec", "podReplacementPolicy", By(pod_replacement)),
    ("batch.v1.JobSpec", "selector", Allocated),
    ("batch.v1.JobSpec", "suspend", Flag(false)),
    ("batch.v1.PodFailurePolicyOnPodConditionsPattern", "status", Text("True")),
    ("certificates.v1.CertificateSigningRequestSpec", "extra", Allocated),
    ("certificates.v1.CertificateSigningRequestSpec", "groups", Allocated),
    ("certificates.v1.CertificateSigningRequestSpec", "uid", Allocated),
    ("certificates.v1.CertificateSigningRequestSpec", "username", Allocated),
    ("core.v1.AzureDiskVolumeSource", "cachingMode", Text("ReadWrite")),
    ("core.v1.AzureDiskVolumeSource", "fsType", Text("ext4")),
    ("core.v1.AzureDiskVolumeSource", "kind", Text("Shared")),
    ("core.v1.AzureDiskVolumeSource", "readOnly", Flag(false)),
    ("core.v1.ClientIPConfig", "timeoutSeconds", Number(10_800)),
    ("core.v1.ConfigMapVolumeSource", "defaultMode", Number(420)),
    ("core.v1.Container", "imagePullPolicy", By(pull_policy)),
    ("core.v1.Container", "resources", Empty),
    ("core.v1.Container", "terminationMessagePath", Text("/dev/termination-log")),
    ("core.v1.Container", "terminationMessagePolicy", Text("File")),
    ("core.v1.ContainerPort", "protocol", Text("TCP")),
    ("core.v1.DownwardAPIVolumeSource", "defaultMode", Number(420)),
    ("core.v1.EndpointPort", "protocol", Text("TCP")),
    ("core.v1.EphemeralContainer", "imagePullPolicy", By(pull_policy)),
    ("core.v1.EphemeralContainer", "resources", Empty),
    ("core.v1.EphemeralContainer", "terminationMessagePath", Text("/dev/termination-log")),
    ("core.v1.EphemeralContainer", "terminationMessagePolicy", Text("File")),
    ("core.v1.GRPCAction", "service", Text("")),
    ("core.v1.HTTPGetAction", "path", Text("/")),
    ("core.v1.HTTPGetAction", "scheme", Text("HTTP")),
    ("core.v1.HostPathVolumeSource", "type", Text("")),
    ("core.v1.ISCSIPersistentVolumeSource", "iscsiInterface", Text("default")),
    ("core.v1.ISCSIVolumeSource", "iscsiInterface", Text("default")),
    ("core.v1.NamespaceSpec", "finalizers", Allocated),
    ("core.v1.ObjectFieldSelector", "apiVersion", Text("v1")),
    ("core.v1.PersistentVolumeClaim", "apiVersion", Text("v1")),
    ("core.v1.PersistentVolumeClaim", "kind", Text("PersistentVolumeClaim")),
    ("core.v1.PersistentVolumeClaimSpec", "storageClassName", Allocated),
    ("core.v1.PersistentVolumeClaimSpec", "volumeMode", Text("Filesystem")),
    ("core.v1.PersistentVolumeClaimSpec", "volumeName", Allocated),
    ("core.v1.PersistentVolumeClaimStatus", "phase", Text("Pending")),
    ("core.v1.PersistentVolumeSpec", "claimRef", Allocated),
    ("core.v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy", Text("Retain")),
    ("core.v1.PersistentVolumeSpec", "volumeMode", Text("Filesystem")),
    ("core.v1.PodSpec", "dnsPolicy", Text("ClusterFirst")),
    ("core.v1.PodSpec", "enableServiceLinks", Flag(true)),
    ("core.v1.PodSpec", "nodeName", Allocated),
    ("core.v1.PodSpec", "preemptionPolicy", Allocated),
    ("core.v1.PodSpec", "priority", Allocated),
    ("core.v1.PodSpec", "restartPolicy", Text("Always")),
    ("core.v1.PodSpec", "schedulerName", Text("default-scheduler")),
    ("core.v1.PodSpec", "securityContext", Empty),
    ("core.v1.PodSpec", "serviceAccount", Sibling("serviceAccountName")),
    ("core.v1.PodSpec", "serviceAccountName", Text("default")),
    ("core.v1.PodSpec", "terminationGracePeriodSeconds", Number(30)),
    ("core.v1.Probe", "failureThreshold", Number(3)),
    ("core.v1.Probe", "periodSeconds", Number(10)),
    ("core.v1.Probe", "successThreshold", Number(1)),
    ("core.v1.Probe", "timeoutSeconds", Number(1)),
    ("core.v1.ProjectedVolumeSource", "defaultMode", Number(420)),
    ("core.v1.RBDPersistentVolumeSource", "keyring", Text("/etc/ceph/keyring")),
    ("core.v1.RBDPersistentVolumeSource", "pool", Text("rbd")),
    ("core.v1.RBDPersistentVolumeSource", "user", Text("admin")),
    ("core.v1.RBDVolumeSource", "keyring", Text("/etc/ceph/keyring")),
    ("core.v1.RBDVolumeSource", "pool", Text("rbd")),
    ("core.v1.RBDVolumeSource", "user", Text("admin")),
    ("core.v1.ReplicationControllerSpec", "replicas", Number(1)),
    ("core.v1.Secret", "type", Text("Opaque")),
    ("core.v1.SecretVolumeSource", "defaultMode", Number(420)),
    ("core.v1.ServiceAccountTokenProjection", "expirationSeconds", Number(3600)),
    ("core.v1.ServicePort", "nodePort", Allocated),
    ("core.v1.ServicePort", "protocol", Text("TCP")),
    ("core.v1.ServicePort", "targetPort", Sibling("port")),
    ("core.v1.ServiceSpec", "allocateLoadBalancerNodePorts", Flag(true)),
    ("core.v1.ServiceSpec", "clusterIP", Allocated),
    ("core.v1.ServiceSpec", "clusterIPs", Allocated),
    ("core.v1.ServiceSpec", "externalTrafficPolicy", Text("Cluster")),
    ("core.v1.ServiceSpec", "healthCheckNodePort", Allocated),
    ("core.v1.ServiceSpec", "internalTrafficPolicy", Text("Cluster")),
    ("core.v1.ServiceSpec", "ipFamilies", Allocated),
    ("core.v1.ServiceSpec", "ipFamilyPolicy", Allocated),
    ("core.v1.ServiceSpec", "sessionAffinity", Text("None")),
    ("core.v1.ServiceSpec", "type", Text("ClusterIP")),
    ("core.v1.TopologySpreadConstraint", "nodeAffinityPolicy", Text("Honor")),
    ("core.v1.TopologySpreadConstraint", "nodeTaintsPolicy", Text("Ignore")),
    ("discovery.v1.EndpointPort", "name", Text("")),
    ("discovery.v1.EndpointPort", "protocol", Text("TCP")),
    ("flowcontrol.v1.ExemptPriorityLevelConfiguration", "lendablePercent", Number(0)),
    ("flowcontrol.v1.ExemptPriorityLevelConfiguration", "nominalConcurrencyShares", Number(0)),
    ("flowcontrol.v1.LimitedPriorityLevelConfiguration", "lendablePercent", Number(0)),
    ("flowcontrol.v1.LimitedPriorityLevelConfiguration", "nominalConcurrencyShares", Number(30)),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion",
        "strategy",
        Text("None"),
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
        "listKind",
        By(list_kind),
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
        "singular",
        By(singular),
    ),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", "port", Number(443)),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference", "port", Number(443)),
    ("networking.v1.IngressClassParametersReference", "scope", Text("Cluster")),
    ("networking.v1.IngressSpec", "ingressClassName", Allocated),
    ("networking.v1.NetworkPolicyPort", "protocol", Text("TCP")),
    ("networking.v1.NetworkPolicySpec", "policyTypes", By(policy_types)),
    ("rbac.v1.RoleRef", "apiGroup", Text("rbac.authorization.k8s.io")),
    ("rbac.v1.Subject", "apiGroup", AnyOf(&["", "rbac.authorization.k8s.io"])),
    ("scheduling.v1.PriorityClass", "preemptionPolicy", Text("PreemptLowerPriority")),
    ("storage.v1.CSIDriverSpec", "attachRequired", Flag(true)),
    ("storage.v1.CSIDriverSpec", "fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    ("storage.v1.CSIDriverSpec", "podInfoOnMount", Flag(false)),
    ("storage.v1.CSIDriverSpec", "requiresRepublish", Flag(false)),
    ("storage.v1.CSIDriverSpec", "seLinuxMount", Flag(false)),
    ("storage.v1.CSIDriverSpec", "storageCapacity", Flag(false)),
    ("storage.v1.CSIDriverSpec", "volumeLifecycleModes", ListOf(&["Persistent"])),
    ("storage.v1.StorageClass", "reclaimPolicy", Text("Delete")),
    ("storage.v1.StorageClass", "volumeBindingMode", Text("Immediate")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(TABLE.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    }

    #[test]
    fn a_type_has_its_own_part_of_the_table() {
        let n_fills = |name: &str| Fills::of_type(name).0.len();
        assert_eq!(n_fills("io.k8s.api.core.v1.Container"), 4);
        assert_eq!(n_fills("io.k8s.api.storage.v1.StorageClass"), 2, "the last one");
        assert_eq!(n_fills("io.k8s.api.core.v1.Contain"), 0);
        assert_eq!(n_fills("zebra"), 0);
        let types: std::collections::BTreeSet<&str> = TABLE.iter().map(|(of, _, _)| *of).collect();
        assert_eq!(types.into_iter().map(n_fills).sum::<usize>(), TABLE.len());
    }
}
