//! The objects of an installation, to be applied in this order.

use serde_json::{Value, json};

use crate::crds;

/// What differs between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallOptions {
    /// Namespace of the control plane.
    pub namespace: String,
    /// Image with the `plumb` program.
    pub image: String,
    /// Number of replicas; one is the leader, the others are on standby.
    pub replicas: u32,
    /// Include the project `default`.
    pub project: bool,
}

impl Default for InstallOptions {
    fn default() -> Self {
        Self { namespace: "argocd".to_owned(), image: "plumb:latest".to_owned(), replicas: 2, project: true }
    }
}

/// Name of plumb's own objects.
pub const NAME: &str = "plumb";
/// Metrics, `/healthz` and `/readyz`.
pub const METRICS_PORT: u16 = 8082;
/// The page and the API.
pub const WEB_PORT: u16 = 8080;
/// Home of the process: besides `/tmp`, the only directory that it can write to. It contains only caches, so it may be
/// lost in a restart.
pub const HOME: &str = "/home/plumb";

/// A whole installation in the cluster. The project `default` comes last, after the definition of its kind.
pub fn install(options: &InstallOptions) -> Vec<Value> {
    let mut objects = crds();
    objects.push(namespace(&options.namespace));
    objects.extend(rbac(options));
    objects.push(network_policy(options));
    objects.extend(services(options));
    objects.push(disruption_budget(options));
    objects.push(deployment(options));
    objects.extend(options.project.then(|| default_project(&options.namespace)));
    objects
}

/// The namespace of the control plane.
pub fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

/// The project `default`, which permits everything, as Argo CD creates it.
pub fn default_project(namespace: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": namespace},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}

/// The labels of plumb's own objects.
pub(crate) fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME})
}

fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}

/// plumb applies any object that Git contains, so it needs all permissions. For fewer permissions, set service accounts
/// in the projects, bind roles to those, and reduce this role to reading plus `impersonate`.
fn rbac(options: &InstallOptions) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME, "labels": labels()},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME, "labels": labels()},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": options.namespace}],
        }),
    ]
}

/// Ingress: the page and metrics. Egress: everything, because Git, charts and clusters may be anywhere.
fn network_policy(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"protocol": "TCP", "port": WEB_PORT}, {"protocol": "TCP", "port": METRICS_PORT}]},
            ],
            "egress": [{}],
        },
    })
}

fn services(options: &InstallOptions) -> Vec<Value> {
    let service = |name: &str, port_name: &str, port: u16| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": options.namespace, "labels": labels()},
            "spec": {
                "selector": selector(),
                "ports": [{"name": port_name, "port": port, "protocol": "TCP", "targetPort": port_name}],
            },
        })
    };
    vec![service(NAME, "web", WEB_PORT), service("plumb-metrics", "metrics", METRICS_PORT)]
}

fn disruption_budget(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        // One replica may always be evicted: with a single replica, a budget of one would block every drain.
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}

fn deployment(options: &InstallOptions) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": labels()},
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": selector()},
            // The new replica is ready before the old one releases the Lease.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65532,
                        "runAsGroup": 65532,
                        "fsGroup": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": selector()},
                    }],
                    "containers": [container(options)],
                    "volumes": [
                        {"name": "home", "emptyDir": {"sizeLimit": "10Gi"}},
                        {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
                    ],
                },
            },
        },
    })
}

fn container(options: &InstallOptions) -> Value {
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": {"path": path, "port": "metrics"},
            "periodSeconds": period,
            "timeoutSeconds": 5,
            "failureThreshold": failures,
        })
    };
    json!({
        "name": NAME,
        "image": options.image,
        "args": ["run", "--namespace", options.namespace],
        "env": [{"name": "HOME", "value": HOME}],
        "ports": [
            {"name": "web", "containerPort": WEB_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "startupProbe": probe("/healthz", 2, 30),
        "livenessProbe": probe("/healthz", 10, 6),
        "readinessProbe": probe("/readyz", 5, 3),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "privileged": false,
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{"name": "home", "mountPath": HOME}, {"name": "tmp", "mountPath": "/tmp"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppProject;

    fn names(objects: &[Value]) -> Vec<String> {
        let name = |object: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
        };
        objects.iter().map(name).collect()
    }

    #[test]
    fn an_installation_is_complete_and_in_order() {
        let objects = install(&InstallOptions::default());
        assert_eq!(
            names(&objects),
            [
                "CustomResourceDefinition applications.argoproj.io",
                "CustomResourceDefinition appprojects.argoproj.io",
                "CustomResourceDefinition applicationsets.argoproj.io",
                "CustomResourceDefinition driftreports.plumb.dev",
                "Namespace argocd",
                "ServiceAccount plumb",
                "ClusterRole plumb",
                "ClusterRoleBinding plumb",
                "NetworkPolicy plumb",
                "Service plumb",
                "Service plumb-metrics",
                "PodDisruptionBudget plumb",
                "Deployment plumb",
                "AppProject default",
            ]
        );
    }

    #[test]
    fn but_for_the_project_nothing_is_of_a_kind_that_is_only_defined_beside_it() {
        let everything = install(&InstallOptions::default());
        assert_eq!(everything.last(), Some(&default_project("argocd")), "after its definition");
        let objects = install(&InstallOptions { project: false, ..InstallOptions::default() });
        assert_eq!(everything.len(), objects.len() + 1);
        let defined: Vec<&Value> = objects.iter().map(|object| &object["spec"]["names"]["kind"]).collect();
        for object in &objects {
            assert!(!defined.contains(&&object["kind"]), "kubectl refuses {}", object["kind"]);
        }
    }

    #[test]
    fn options_reach_every_object() {
        let options = InstallOptions {
            namespace: "gitops".to_owned(),
            image: "example/plumb:1".to_owned(),
            replicas: 3,
            project: true,
        };
        let objects = install(&options);
        assert!(!Value::from(objects.clone()).to_string().contains("\"argocd\",\"namespace\""));
        let namespaced = objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str());
        assert!(
            namespaced.clone().count() > 5 && namespaced.into_iter().all(|namespace| namespace == "gitops")
        );
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("there");
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "example/plumb:1");
        assert_eq!(container["args"], json!(["run", "--namespace", "gitops"]));
        assert_eq!(deployment["spec"]["replicas"], 3);
    }

    #[test]
    fn the_default_project_is_one() {
        let project = AppProject::from_json(&default_project("argocd")).expect("readable");
        let (rules, problems) = crate::to_project_rules(&project);
        assert_eq!(problems, []);
        assert_eq!(rules.name, "default");
        assert_eq!(project.to_json(), default_project("argocd"));
    }

    #[test]
    fn the_committed_files_are_what_the_code_says() {
        use expect_test::expect_file;
        for crd in crds() {
            let name = crd["metadata"]["name"].as_str().expect("a name");
            expect_file![format!("../../../manifests/crds/{name}.yaml")]
                .assert_eq(&crate::yaml::to_yaml(&crd));
        }
        // The definitions have their own files: `kubectl apply --server-side -f crds -f install.yaml`.
        // The project is omitted because plumb creates it.
        let mut objects = install(&InstallOptions { project: false, ..InstallOptions::default() });
        objects.retain(|object| object["kind"] != "CustomResourceDefinition");
        let rest = crate::yaml::to_yaml_documents(&objects);
        expect_file!["../../../manifests/install.yaml"].assert_eq(&rest);
    }
}
