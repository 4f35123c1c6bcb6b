//! The objects of an installation.

use serde_json::{Value, json};

use super::exposure::{exposure, is_empty};
use super::monitoring::{METRICS_LABEL, METRICS_SERVICE, monitoring};
use super::network::network_policy;
use super::options::{InstallOptions, PodOptions};
use super::rbac::rbac;
use super::settings::settings;
use crate::crds;

/// Name of plumb's own objects.
pub const NAME: &str = "plumb";
/// Metrics, `/healthz` and `/readyz`.
pub const METRICS_PORT: u16 = 8082;
/// The page and the API.
pub const WEB_PORT: u16 = 8080;
/// Home of the process: besides `/tmp`, the only directory that it can write to. It contains only caches, so it may be
/// lost in a restart.
pub const HOME: &str = "/home/plumb";

/// Variables that Argo CD's server has from keys of `argocd-cmd-params-cm`, and the keys. A key that is not there leaves
/// its variable out.
const SERVER_SETTINGS: [(&str, &str); 3] = [
    ("ARGOCD_SERVER_INSECURE", "server.insecure"),
    ("ARGOCD_SERVER_ROOTPATH", "server.rootpath"),
    ("ARGOCD_SERVER_BASEHREF", "server.basehref"),
];

/// A whole installation in the cluster. The project `default` comes last, after the definition of its kind.
pub fn install(options: &InstallOptions) -> Vec<Value> {
    let mut objects = definitions(options);
    objects.push(namespace(&options.namespace));
    objects.extend(rbac(options));
    objects.extend(settings(options));
    objects.extend(options.network_policy.then(|| network_policy(options)));
    objects.extend(services(options));
    objects.push(disruption_budget(options));
    objects.push(deployment(options));
    objects.extend(exposure(options));
    objects.extend(monitoring(options));
    objects.extend(options.project.then(|| default_project(&options.namespace)));
    objects
}

/// The definitions of the kinds.
fn definitions(options: &InstallOptions) -> Vec<Value> {
    let is_wanted =
        |crd: &Value| options.crds && (options.argocd_crds || crd["spec"]["group"] != "argoproj.io");
    crds().into_iter().filter(is_wanted).collect()
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

/// plumb's own record of what it did once. Not a setting: it is not meant to be edited.
pub const STATE_CONFIG_MAP: &str = "plumb-state";
/// The key of [`STATE_CONFIG_MAP`] that says that the project `default` was created, or found, before. A project that an
/// operator deleted later is not created again.
const DEFAULT_PROJECT_MARKER: &str = "defaultProject";

/// The record that the project `default` was created, or found.
pub fn state_config_map(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": STATE_CONFIG_MAP, "namespace": namespace, "labels": labels()},
        "data": {DEFAULT_PROJECT_MARKER: "created"},
    })
}

/// True if [`STATE_CONFIG_MAP`] says that the project `default` was there before.
pub fn had_default_project(state: &Value) -> bool {
    state.pointer("/data").and_then(|data| data.get(DEFAULT_PROJECT_MARKER)).is_some()
}

/// The labels of plumb's own objects.
pub(crate) fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": NAME})
}

pub(super) fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME})
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
    let mut metrics = service(METRICS_SERVICE, "metrics", METRICS_PORT);
    metrics["metadata"]["labels"][METRICS_LABEL] = json!(METRICS_PORT.to_string());
    vec![service(NAME, "web", WEB_PORT), metrics]
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
    let mut deployment = json!({
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
    });
    add_pod_options(&mut deployment["spec"]["template"], &options.pods);
    deployment
}

/// What the cluster asks of pods. What is not given has no field.
fn add_pod_options(template: &mut Value, pods: &PodOptions) {
    if let (Some(own), Some(more)) = (template["metadata"]["labels"].as_object_mut(), pods.labels.as_object())
    {
        for (key, value) in more {
            // plumb's own select the pods.
            own.entry(key).or_insert_with(|| value.clone());
        }
    }
    let priority_class = json!(pods.priority_class);
    for (part, field, value) in [
        ("metadata", "annotations", &pods.annotations),
        ("spec", "imagePullSecrets", &pods.image_pull_secrets),
        ("spec", "nodeSelector", &pods.node_selector),
        ("spec", "tolerations", &pods.tolerations),
        ("spec", "affinity", &pods.affinity),
        ("spec", "priorityClassName", &priority_class),
    ] {
        if !is_empty(value) {
            template[part][field] = value.clone();
        }
    }
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
    let mut args = vec!["run", "--namespace", &options.namespace];
    args.extend(options.extra_args.iter().map(String::as_str));
    // Replicas reach each other at the address of the pod.
    let pod_ip = json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}});
    // For commands of plumb inside the pod.
    let namespace = json!({"name": "PLUMB_NAMESPACE", "value": options.namespace});
    let mut env = vec![json!({"name": "HOME", "value": HOME}), namespace, pod_ip];
    env.extend(SERVER_SETTINGS.iter().map(|(name, key)| {
        let place = json!({"name": "argocd-cmd-params-cm", "key": key, "optional": true});
        json!({"name": name, "valueFrom": {"configMapKeyRef": place}})
    }));
    env.extend(options.extra_env.iter().cloned());
    json!({
        "name": NAME,
        "image": options.image.to_string(),
        "imagePullPolicy": options.pull_policy.name(),
        "args": args,
        "env": env,
        "ports": [
            {"name": "web", "containerPort": WEB_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "startupProbe": probe("/healthz", 2, 30),
        "livenessProbe": probe("/healthz", 10, 6),
        "readinessProbe": probe("/readyz", 5, 3),
        "resources": options.resources,
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
    use crate::install::{Profile, ServiceMonitor};

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
            image: "example.com/plumb:1".parse().expect("an image"),
            replicas: 3,
            ..InstallOptions::default()
        };
        let objects = install(&options);
        assert!(!Value::from(objects.clone()).to_string().contains("\"argocd\",\"namespace\""));
        let namespaced = objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str());
        assert!(
            namespaced.clone().count() > 5 && namespaced.into_iter().all(|namespace| namespace == "gitops")
        );
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("there");
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "example.com/plumb:1");
        assert_eq!(container["args"], json!(["run", "--namespace", "gitops"]));
        assert_eq!(deployment["spec"]["replicas"], 3);
    }

    #[test]
    fn a_pod_has_the_settings_of_argo_cds_server_and_knows_its_namespace() {
        let objects =
            install(&InstallOptions { namespace: "gitops".to_owned(), ..InstallOptions::default() });
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("there");
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
        let of = |name: &str| env.as_array()?.iter().find(|variable| variable["name"] == name);
        let of_server = |key: &str| json!({"configMapKeyRef": {"name": "argocd-cmd-params-cm", "key": key, "optional": true}});
        for (name, key) in [
            ("ARGOCD_SERVER_INSECURE", "server.insecure"),
            ("ARGOCD_SERVER_ROOTPATH", "server.rootpath"),
            ("ARGOCD_SERVER_BASEHREF", "server.basehref"),
        ] {
            assert_eq!(of(name).map(|variable| &variable["valueFrom"]), Some(&of_server(key)), "{name}");
        }
        assert_eq!(of("PLUMB_NAMESPACE").map(|variable| &variable["value"]), Some(&json!("gitops")));
    }

    #[test]
    fn what_the_cluster_asks_of_pods_is_there_and_plumbs_labels_stay() {
        let pods = PodOptions {
            image_pull_secrets: json!([{"name": "registry"}]),
            node_selector: json!({"disk": "ssd"}),
            labels: json!({"app.kubernetes.io/name": "other", "team": "a"}),
            account_annotations: json!({"a.example/role": "b"}),
            ..PodOptions::default()
        };
        let objects = install(&InstallOptions { pods, ..InstallOptions::default() });
        let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind).expect("there");
        let template = &of_kind("Deployment")["spec"]["template"];
        assert_eq!(template["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(template["spec"]["nodeSelector"], json!({"disk": "ssd"}));
        assert_eq!(template["spec"].get("tolerations"), None);
        let labels =
            json!({"app.kubernetes.io/name": "plumb", "app.kubernetes.io/part-of": "plumb", "team": "a"});
        assert_eq!(template["metadata"]["labels"], labels);
        assert_eq!(of_kind("ServiceAccount")["metadata"]["annotations"]["a.example/role"], "b");
    }

    #[test]
    fn the_strict_profile_writes_only_what_is_plumbs_own() {
        let options = InstallOptions {
            profile: Profile::Strict,
            impersonate_in: vec!["team-a".to_owned()],
            web_from: vec!["ingress".to_owned()],
            ..InstallOptions::default()
        };
        let objects = install(&options);
        let of_kind = |kind: &str| objects.iter().filter(|object| object["kind"] == kind).collect::<Vec<_>>();
        let rules = of_kind("ClusterRole")[0]["rules"].as_array().expect("rules").clone();
        for rule in &rules {
            let has = |field: &str, word: &str| {
                rule[field].as_array().is_some_and(|all| all.contains(&json!(word)))
            };
            assert!(!has("verbs", "*") && !has("nonResourceURLs", "*"), "{rule}");
            if has("apiGroups", "*") {
                assert_eq!(rule["verbs"], json!(["get", "list", "watch"]), "{rule}");
            }
            assert!(
                !has("verbs", "impersonate") && !has("resources", "secrets"),
                "not in every namespace: {rule}"
            );
        }
        let impersonates = of_kind("RoleBinding");
        let places: Vec<_> =
            impersonates.iter().map(|one| (&one["metadata"]["namespace"], &one["roleRef"]["name"])).collect();
        assert_eq!(
            places,
            [(&json!("argocd"), &json!("plumb")), (&json!("team-a"), &json!("plumb-impersonate"))]
        );
        let settings = of_kind("ConfigMap");
        assert_eq!(settings[0]["data"]["application.sync.impersonation.enabled"], "true");
        let policy = of_kind("NetworkPolicy")[0].to_string();
        assert!(policy.contains("ingress") && policy.contains("monitoring"), "{policy}");
    }

    #[test]
    fn no_profile_has_wildcard_urls_or_lets_every_address_in() {
        for profile in [Profile::Standard, Profile::Strict] {
            let objects = install(&InstallOptions { profile, ..InstallOptions::default() });
            for object in &objects {
                for rule in object["rules"].as_array().into_iter().flatten() {
                    assert_ne!(rule["nonResourceURLs"], json!(["*"]));
                }
                for rule in object.pointer("/spec/ingress").and_then(Value::as_array).into_iter().flatten() {
                    assert!(rule["from"].as_array().is_some_and(|from| !from.is_empty()), "{rule}");
                }
            }
        }
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
            expect_file![format!("../../../../manifests/crds/{name}.yaml")]
                .assert_eq(&crate::yaml::to_yaml(&crd));
        }
        // The definitions have their own files: `kubectl apply --server-side -f crds -f install.yaml`.
        // The project is omitted because plumb creates it.
        let mut objects = install(&InstallOptions { project: false, ..InstallOptions::default() });
        objects.retain(|object| object["kind"] != "CustomResourceDefinition");
        let rest = crate::yaml::to_yaml_documents(&objects);
        expect_file!["../../../../manifests/install.yaml"].assert_eq(&rest);
        let mut bare = InstallOptions { crds: false, project: false, ..InstallOptions::default() };
        let before = install(&bare).len();
        bare.service_monitor = Some(ServiceMonitor { interval: "30s".to_owned(), labels: json!({}) });
        bare.prometheus_rule = Some(json!({}));
        let monitors = crate::yaml::to_yaml_documents(&install(&bare)[before..]);
        expect_file!["../../../../manifests/monitoring/monitoring.yaml"].assert_eq(&monitors);
    }
}
