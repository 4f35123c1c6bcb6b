use expect_test::{Expect, expect};

use super::*;
use crate::object::{Manifest, ObjectKey};
use crate::yaml::{Limits, parse_documents};

fn objects(text: &str) -> Vec<Manifest> {
    let documents = parse_documents(text, &Limits::default()).expect("YAML");
    documents.into_iter().map(|document| Manifest::new(document.value).expect("an object")).collect()
}

/// One line per reference.
fn check(text: &str, expected: &Expect) {
    let mut lines = Vec::new();
    for object in objects(text) {
        for Reference { to, field, need } in references(&object, Some("app")) {
            if to.kind != "Namespace" {
                lines.push(format!("{to} {field} {need:?}"));
            }
        }
    }
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_pod_needs_what_it_mounts_and_reads() {
    check(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      serviceAccountName: web
      priorityClassName: high
      imagePullSecrets: [{name: pull}]
      volumes:
      - configMap: {name: files}
      - secret: {secretName: maybe, optional: true}
      - persistentVolumeClaim: {claimName: data}
      - projected: {sources: [{secret: {name: token}}]}
      containers:
      - envFrom: [{configMapRef: {name: env, optional: true}}]
        env: [{valueFrom: {secretKeyRef: {name: db, key: x}}}]
",
        &expect![[r"
            ConfigMap app/env /spec/template/spec/containers/0/envFrom/0/configMapRef/name Optional
            ConfigMap app/files /spec/template/spec/volumes/0/configMap/name Blocks
            PersistentVolumeClaim app/data /spec/template/spec/volumes/2/persistentVolumeClaim/claimName Blocks
            Secret app/db /spec/template/spec/containers/0/env/0/valueFrom/secretKeyRef/name Blocks
            Secret app/maybe /spec/template/spec/volumes/1/secret/secretName Optional
            Secret app/pull /spec/template/spec/imagePullSecrets/0/name Works
            Secret app/token /spec/template/spec/volumes/3/projected/sources/0/secret/name Blocks
            ServiceAccount app/web /spec/template/spec/serviceAccountName Blocks
            scheduling.k8s.io/PriorityClass high /spec/template/spec/priorityClassName Blocks"]],
    );
}

#[test]
fn kinds_of_the_cluster() {
    check(
        "
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b},
 roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: ServiceAccount, name: s, namespace: other}, {kind: User, name: u}]}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w},
 webhooks: [{clientConfig: {service: {name: hook, namespace: system}}}]}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, annotations: {cert-manager.io/cluster-issuer: le}},
 spec: {ingressClassName: nginx, tls: [{secretName: tls}], rules: [{http: {paths: [{backend: {service: {name: web}}}]}}]}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db},
 spec: {serviceName: db, replicas: 2, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: csi.example.com,
 parameters: {csi.storage.k8s.io/provisioner-secret-name: p, csi.storage.k8s.io/provisioner-secret-namespace: system}}
",
        &expect![[r"
            ServiceAccount other/s /subjects/0/name Works
            rbac.authorization.k8s.io/ClusterRole reader /roleRef/name Works
            Service system/hook /webhooks/0/clientConfig/service/name Works
            Secret app/tls /spec/tls/0/secretName Works
            Service app/web /spec/rules/0/http/paths/0/backend/service/name Works
            cert-manager.io/ClusterIssuer le /metadata/annotations/cert-manager.io~1cluster-issuer Works
            networking.k8s.io/IngressClass nginx /spec/ingressClassName Works
            PersistentVolumeClaim app/data-db-0 /spec/volumeClaimTemplates/0 Optional
            PersistentVolumeClaim app/data-db-1 /spec/volumeClaimTemplates/0 Optional
            Service app/db /spec/serviceName Works
            storage.k8s.io/StorageClass fast /spec/volumeClaimTemplates/0/spec/storageClassName Blocks
            Secret system/p /parameters/csi.storage.k8s.io~1provisioner-secret-name Works
            storage.k8s.io/CSIDriver csi.example.com /provisioner Works"]],
    );
}

#[test]
fn custom_resources_by_the_names_of_their_fields() {
    check(
        "
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: e},
 spec: {secretStoreRef: {kind: ClusterSecretStore, name: vault}, target: {name: made}}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: c},
 spec: {secretName: tls, issuerRef: {group: cert-manager.io, kind: Issuer, name: ca}}}
---
{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s},
 spec: {scaleTargetRef: {name: worker}, triggers: [{authenticationRef: {kind: TriggerAuthentication, name: t}}]}}
---
{apiVersion: example.com/v1, kind: Database, metadata: {name: d},
 spec: {backup: {secretRef: {name: s3, namespace: backup}}, storageClassName: fast, users: [{passwordSecretRef: {name: pw}}]}}
",
        &expect![[r"
            ClusterSecretStore vault /spec/secretStoreRef/name Works
            Secret app/tls /spec/secretName Works
            cert-manager.io/Issuer app/ca /spec/issuerRef/name Works
            TriggerAuthentication app/t /spec/triggers/0/authenticationRef/name Works
            apps/Deployment app/worker /spec/scaleTargetRef/name Works
            Secret app/pw /spec/users/0/passwordSecretRef/name Works
            Secret backup/s3 /spec/backup/secretRef/name Works
            storage.k8s.io/StorageClass fast /spec/storageClassName Works"]],
    );
}

#[test]
fn an_autoscaler_refers_to_its_target_and_to_no_other_workload() {
    check(
        "
{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s, namespace: evil},
 spec: {scaleTargetRef: {name: own, envSourceContainerName: c}, triggers: [
  {type: x, metadata: {kind: Deployment, apiVersion: apps/v1, name: web, namespace: victim},
   authenticationRef: {kind: ClusterTriggerAuthentication, name: t}}]}}
---
{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s, namespace: evil},
 spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: victim}}}
---
{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: v},
 spec: {targetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db},
  recommenders: [{kind: StatefulSet, apiVersion: apps/v1, name: other}]}}
",
        &expect![[r"
            ClusterTriggerAuthentication t /spec/triggers/0/authenticationRef/name Works
            apps/Deployment evil/own /spec/scaleTargetRef/name Works
            apps/Deployment evil/web /spec/scaleTargetRef/name Works
            apps/StatefulSet app/db /spec/targetRef/name Works"]],
    );
}

#[test]
fn selectors_definitions_and_aggregated_roles_use_objects() {
    let objects = objects(
        "
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a}, spec: {selector: {app: web}}}
---
{apiVersion: v1, kind: Service, metadata: {name: elsewhere, namespace: b}, spec: {selector: {app: web}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a}, spec: {template: {metadata: {labels: {app: web, tier: x}}}}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com},
 spec: {group: example.com, names: {kind: Thing}}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, namespace: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part, labels: {to: all}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all},
 aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: all}}]}}
",
    );
    let keyed: Vec<(ObjectKey, &Manifest)> =
        objects.iter().map(|object| (object.key().expect("a name"), object)).collect();
    let users = users(keyed.iter().map(|(key, object)| (key, *object)));
    let lines: Vec<String> = users
        .iter()
        .flat_map(|(used, by)| by.iter().map(move |(user, reference)| (used, user, reference)))
        .filter(|(used, ..)| used.kind != "Namespace")
        .map(|(used, user, reference)| format!("{used} <- {user} {}", reference.field))
        .collect();
    expect![[r"
        apiextensions.k8s.io/CustomResourceDefinition things.example.com <- example.com/Thing a/t /kind
        apps/Deployment a/web <- Service a/web /spec/selector
        rbac.authorization.k8s.io/ClusterRole part <- rbac.authorization.k8s.io/ClusterRole all /aggregationRule/clusterRoleSelectors"]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn nonsense_refers_to_nothing() {
    check(
        "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: [1]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: {a: b}, containers: [null, 1, []]}}
---
{apiVersion: example.com/v1, kind: X, metadata: {name: a}, spec: {secretRef: 1, secretName: [], kind: lower, name: x}}
",
        &expect![""],
    );
}
