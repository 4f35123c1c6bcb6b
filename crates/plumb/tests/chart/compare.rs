//! Helm and Kustomize make the objects that `plumb install` makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use plumb_testkit::programs;
use serde_json::{Value, json};

/// Values that together reach every branch of the templates.
const VALUES: &[(&str, &str)] = &[
    ("defaults", "{}"),
    (
        "strict",
        "{rbac: {profile: strict, impersonateIn: [team-a, team-b]}, replicas: 1, networkPolicy: {webFrom: [ingress], \
          metricsFrom: []}, crds: {argocd: false}, configs: {cm: {create: false}}}",
    ),
    ("strict without settings", "{rbac: {profile: strict, impersonateIn: [team-a]}}"),
    (
        "monitored",
        "{serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}, prometheusRule: {enabled: \
          true}, networkPolicy: {metricsFrom: []}, crds: {install: false}}",
    ),
    (
        "exposed",
        "{ingress: {enabled: true, host: plumb.example.com, className: nginx, annotations: {a.example/b: \"true\"}, tls: \
          [{hosts: [plumb.example.com], secretName: web}]}, gateway: {enabled: true, host: p.example.com, name: public, \
          namespace: gateways}, networkPolicy: {enabled: false}}",
    ),
    (
        "ingress of the default class",
        "{ingress: {enabled: true, host: plumb.example.com}, networkPolicy: {webFrom: [ingress, other]}}",
    ),
    (
        "container",
        "{image: {repository: registry.example.com/team/plumb, tag: \"1.2\", pullPolicy: Always, digest: \
          \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"}, extraArgs: [--workers, \"8\"], \
          extraEnv: [{name: HTTPS_PROXY, value: \"http://proxy:3128\"}], resources: {limits: {memory: 4Gi, cpu: \"2\"}}}",
    ),
    (
        "what the cluster asks of pods",
        "{imagePullSecrets: [{name: registry}], nodeSelector: {disk: ssd}, tolerations: [{key: a, operator: Exists}], \
          affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: \
          [{key: a, operator: Exists}]}]}}}, priorityClassName: high, podAnnotations: {a.example/b: \"true\"}, podLabels: \
          {team: a}, serviceAccount: {annotations: {a.example/role: c}}}",
    ),
    ("more known hosts", "{configs: {ssh: {knownHosts: \"a\\n\", extraHosts: \"b\\nc\\n\"}}}"),
    ("only more known hosts", "{configs: {ssh: {extraHosts: \"b\"}}}"),
    (
        "webhooks, passwords and clusters as argo-helm has them",
        "{configs: {secret: {createSecret: true, labels: {}, githubSecret: x, gitlabSecret: \"\", bitbucketUUID: u, \
          azureDevops: {username: a, password: b}, extra: {oidc.clientSecret: \"p\\\"w\", webhook.github.secret: other}, \
          argocdServerAdminPassword: $2a$10$x}, clusterCredentials: {prod: {server: \"https://p\", labels: {env: prod}, \
          annotations: {a.example/b: c}, namespaces: \"a,b\", clusterResources: true, project: team, \
          config: {bearerToken: t, tlsClientConfig: {insecure: false, caData: Q0E=}}}, other: {name: far, \
          server: \"https://o\", config: {}}}, styles: \"a {}\", cmp: {create: false}, repositoriesAnnotations: {a: b}, \
          credentialTemplatesAnnotations: {a: b}}}",
    ),
    (
        "parts of another release",
        "{configs: {secret: {createSecret: false, githubSecret: x}, tls: {create: false, certificates: {a: b}}, \
          gpg: {create: false, keys: {a: b}}, rbac: {policy.csv: \"\", policy.default: \"\"}}}",
    ),
    (
        "numbers, and values that are no texts",
        "{configs: {cm: {a: 1000000, b: 12345678, c: 1.5, d: [x, \"<y>\"], e: {f: g}, h: null, i: \"\"}, \
          repositories: {r: {url: u, githubAppID: 1234567, password: null}}}}",
    ),
    ("known hosts of another release", "{configs: {ssh: {create: false, knownHosts: \"a\\n\"}}}"),
    (
        "settings as argo-helm has them",
        "{configs: {cm: {create: true, timeout.reconciliation: 60s, admin.enabled: false, statusbadge.enabled: true, \
          resource.exclusions: \"- apiGroups: [x]\\n  kinds: [Y]\\n\"}, params: {server.insecure: true, \
          controller.status.processors: 30}, rbac: {policy.default: role:readonly, policy.csv: \"p, a, b\\n\"}, \
          ssh: {knownHosts: \"host key\\n\"}, tls: {certificates: {git.example.com: \"-----BEGIN\\n\"}}, \
          gpg: {keys: {ABC: \"key\\n\"}}, repositories: {shop: {url: \"https://git.example.com/shop\", type: git, \
          username: robot, password: \"p{{ .Values }}w\"}}, credentialTemplates: {all: {url: \"https://git.example.com\"}}}}",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().context("cannot start the program")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    Ok(String::from_utf8(output.stdout)?)
}

/// Helm with nothing of the user's own configuration.
fn helm(words: &[&str], home: &Path) -> Result<String> {
    let mut command = Command::new(&programs()?.helm);
    for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(name, home);
    }
    output(command.args(words).current_dir(root()))
}

fn documents(text: &str) -> Result<Vec<Value>> {
    let limits = plumb_core::yaml::Limits::default();
    let read =
        plumb_core::yaml::parse_documents(text, &limits).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(read.into_iter().map(|document| document.value).collect())
}

/// The objects of a stream, by kind, namespace and name.
fn objects(text: &str) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for document in documents(text)? {
        if document.is_null() {
            continue;
        }
        let name = |part: &str| document["metadata"][part].as_str().unwrap_or_default().to_owned();
        let key = format!("{} {}/{}", document["kind"], name("namespace"), name("name"));
        let mut object = document;
        // The one difference: Helm must not delete definitions.
        if let Some(notes) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            notes.remove("helm.sh/resource-policy");
            if notes.is_empty() {
                object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("annotations"));
            }
        }
        ensure!(found.insert(key.clone(), object).is_none(), "{key} is there twice");
    }
    Ok(found)
}

fn assert_same(name: &str, ours: &BTreeMap<String, Value>, theirs: &BTreeMap<String, Value>) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
    for (key, object) in ours {
        assert_eq!(object, &theirs[key], "{name}: {key}");
    }
}

#[test]
fn the_chart_is_valid_and_makes_the_objects_of_plumb_install() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, values) in VALUES {
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, values)?;
        let file = file.display().to_string();
        let linted = helm(&["lint", "--strict", "charts/plumb", "--values", &file], folder.path())?;
        ensure!(linted.contains("0 chart(s) failed"), "{linted}");
        let words = ["template", "plumb", "charts/plumb", "--namespace", "gitops", "--values", &file];
        let theirs = objects(&helm(&words, folder.path())?)?;
        let printed = output(Command::new(env!("CARGO_BIN_EXE_plumb")).args([
            "install",
            "--without-project",
            "--namespace",
            "gitops",
            "--values",
            &file,
        ]))?;
        let mut ours = objects(&printed)?;
        // Helm creates the namespace.
        ours.remove("\"Namespace\" /gitops");
        assert_same(name, &ours, &theirs);
        ensure!(theirs.len() >= 9, "{name}");
    }
    Ok(())
}

/// Values that `plumb install --values` refuses, Helm refuses as well, by the schema.
#[test]
fn helm_refuses_what_plumb_install_refuses() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for values in [
        "{replica: 3}",
        "{configs: {cmm: {a: b}}}",
        "{configs: {clusterCredentials: [{name: a}]}}",
        "{replicas: \"3\"}",
        "{image: {name: x}}",
        "{image: {tag: 1.2}}",
        "{rbac: {profile: none}}",
        "{crds: {argocd: \"false\"}}",
        "{imagePullSecrets: registry}",
    ] {
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, values)?;
        let file = file.display().to_string();
        let by_helm = helm(&["template", "plumb", "charts/plumb", "--values", &file], folder.path());
        ensure!(by_helm.is_err_and(|error| error.to_string().contains("schema")), "Helm takes {values}");
        let plumb = output(Command::new(env!("CARGO_BIN_EXE_plumb")).args(["install", "--values", &file]));
        ensure!(plumb.is_err(), "plumb takes {values}");
    }
    Ok(())
}

#[test]
fn the_kustomize_base_makes_them_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let manifests = root().join("manifests").canonicalize()?;
    // Kustomize refuses absolute paths.
    std::os::unix::fs::symlink(&manifests, folder.path().join("manifests"))?;
    let kustomize = |path: &Path| {
        output(
            Command::new(&programs()?.kustomize)
                .args(["build", "--load-restrictor=LoadRestrictionsNone"])
                .arg(path),
        )
    };
    let plumb = |words: &[&str]| {
        let words = [&["install", "--without-project"], words].concat();
        objects(&output(Command::new(env!("CARGO_BIN_EXE_plumb")).args(words))?)
    };
    assert_same("base", &plumb(&[])?, &objects(&kustomize(&manifests)?)?);

    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["manifests"], "components": ["manifests/monitoring"],
        "images": [{"name": "registry.invalid/plumb", "newName": "r.example/plumb", "newTag": "2"}],
        "replicas": [{"name": "plumb", "count": 3}],
    });
    std::fs::write(folder.path().join("kustomization.yaml"), overlay.to_string())?;
    let words = ["--image", "r.example/plumb:2", "--replicas", "3", "--service-monitor", "--prometheus-rule"];
    assert_same("overlay", &plumb(&words)?, &objects(&kustomize(folder.path())?)?);
    Ok(())
}
