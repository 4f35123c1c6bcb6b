//! What kind of writer a field manager is. The name is all there is: clients choose it, and most leave the
//! name of their program.

/// A user with a CLI or a web page, or a script that uses the same client.
pub fn is_person(manager: &str) -> bool {
    const PREFIXES: [&str; 12] = [
        "kubectl",
        "Mozilla",
        "k9s",
        "OpenLens",
        "Lens",
        "lens",
        "headlamp",
        "dashboard",
        "node-fetch",
        "curl",
        "python-requests",
        "octant",
    ];
    matches!(manager, "oc" | "helm" | "k8s-dashboard")
        || PREFIXES.iter().any(|prefix| manager.starts_with(prefix))
}

/// A controller, judging by its name: `parcel-operator`, `manager` (what
/// frameworks call their programs), `kube-…`, a service account. Any other name may be a script in a user's
/// hands.
pub fn is_controller_by_name(manager: &str) -> bool {
    const PREFIXES: [&str; 4] = ["kube-", "openshift-", "system:serviceaccount:", "system:node:"];
    const ENDINGS: [&str; 13] = [
        "controller",
        "controllers",
        "operator",
        "manager",
        "webhook",
        "injector",
        "scaler",
        "scheduler",
        "provisioner",
        "reconciler",
        "resizer",
        "discovery",
        "daemon",
    ];
    const PROGRAMS: [&str; 9] = [
        "crossplane",
        "external-dns",
        "istiod",
        "karpenter",
        "keda",
        "kyverno",
        "rancher",
        "vault-k8s",
        "velero",
    ];
    let mut words = manager.split(|c: char| !c.is_ascii_alphanumeric());
    !is_person(manager)
        && (is_control_plane(manager)
            || PROGRAMS.contains(&manager)
            || PREFIXES.iter().any(|prefix| manager.starts_with(prefix))
            || words.any(|word| ENDINGS.iter().any(|ending| word.to_ascii_lowercase().ends_with(ending))))
}

/// The cluster's own components. They write what their objects are for, and nothing else.
pub fn is_control_plane(manager: &str) -> bool {
    matches!(
        manager,
        "kube-controller-manager"
            | "kube-scheduler"
            | "kube-apiserver"
            | "apiserver"
            | "kubelet"
            | "cloud-controller-manager"
            | "clusterrole-aggregation-controller"
            | "k3s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_told_by_their_names() {
        for name in [
            "parcel-operator",
            "cilium-operator-generic",
            "openshift-controller-manager",
            "manager",
            "cert-manager-cainjector",
            "pilot-discovery",
            "cluster-autoscaler",
            "RolloutController",
            "system:serviceaccount:shop:robot",
            "kube-controller-manager",
            "k3s",
            "keda",
        ] {
            assert!(is_controller_by_name(name), "{name}");
        }
        for name in [
            "someone",
            "deploy-script",
            "python",
            "OpenAPI-Generator",
            "Terraform",
            "kubectl-edit",
            "helm",
            "k9s",
            "",
        ] {
            assert!(!is_controller_by_name(name), "{name}");
        }
    }
}
