//! What kind of writer a field manager is. The name is all there is: clients choose it, and most leave the
//! name of their program.

/// A person at a terminal or in a web page, or a script that stands in for one.
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
