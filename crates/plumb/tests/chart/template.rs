//! Makes templates of Helm from objects: stand-ins in the objects become expressions.

use plumb_crd::install::{self, Gateway, Ingress, InstallOptions, PodOptions, Profile, ServiceMonitor};
use plumb_crd::yaml::to_yaml;
use serde_json::{Value, json};

/// A stand-in, and what replaces it.
enum Stand {
    /// The word, wherever it is.
    Word(&'static str, &'static str),
    /// The value of a key.
    Value(&'static str, &'static str),
    /// The value of a key; without the key if the expression is empty.
    Optional(&'static str, &'static str),
    /// A line of a list or of a map: more items, or none.
    More(&'static str, &'static str),
    /// A line of a list: the only item stands for all.
    Items(&'static str, &'static str),
}

const STANDS: &[Stand] = &[
    Stand::Word("stand-in-namespace", "{{ .Release.Namespace }}"),
    Stand::Word("4242424", "{{ .Values.replicas }}"),
    Stand::Word(
        "stand.in/image:1",
        "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}",
    ),
    Stand::Word("imagePullPolicy: IfNotPresent", "imagePullPolicy: {{ .Values.image.pullPolicy }}"),
    Stand::Word("stand-in-interval", "{{ .Values.serviceMonitor.interval }}"),
    Stand::Word("stand-in-ingress-host", "{{ .Values.ingress.host | quote }}"),
    Stand::Word("stand-in-gateway-host", "{{ .Values.gateway.host | quote }}"),
    Stand::Word("stand-in-gateway-name", "{{ .Values.gateway.name }}"),
    Stand::Word("stand-in-gateway-place", "{{ .Values.gateway.namespace }}"),
    Stand::Word("stand-in-impersonated", "{{ $namespace }}"),
    Stand::Value("stand-in-resources", ".Values.resources"),
    Stand::Optional("stand-in-node-selector", ".Values.nodeSelector"),
    Stand::Optional("stand-in-tolerations", ".Values.tolerations"),
    Stand::Optional("stand-in-affinity", ".Values.affinity"),
    Stand::Optional("stand-in-priority-class", ".Values.priorityClassName"),
    Stand::Optional("stand-in-pod-annotations", ".Values.podAnnotations"),
    Stand::Optional("stand-in-account-annotations", ".Values.serviceAccount.annotations"),
    Stand::Optional("stand-in-pull-secrets", ".Values.imagePullSecrets"),
    Stand::More("stand-in-pod-labels", ".Values.podLabels"),
    Stand::Optional("stand-in-ingress-class", ".Values.ingress.className"),
    Stand::Optional("stand-in-ingress-tls", ".Values.ingress.tls"),
    Stand::Optional("stand-in-ingress-annotations", ".Values.ingress.annotations"),
    Stand::More("stand-in-args", ".Values.extraArgs"),
    Stand::More("stand-in-env", ".Values.extraEnv"),
    Stand::More("stand-in-monitor-labels", ".Values.serviceMonitor.labels"),
    Stand::More("stand-in-rule-labels", ".Values.prometheusRule.labels"),
    Stand::Items("stand-in-web-from", ".Values.networkPolicy.webFrom"),
    Stand::Items("stand-in-metrics-from", ".Values.networkPolicy.metricsFrom"),
];

/// The options that put a stand-in wherever a value goes.
fn stand_ins() -> InstallOptions {
    let list = |word: &str| vec![word.to_owned()];
    InstallOptions {
        namespace: "stand-in-namespace".to_owned(),
        image: "stand.in/image:1".parse().unwrap_or_else(|_| InstallOptions::default().image),
        replicas: 4_242_424,
        project: false,
        crds: false,
        impersonate_in: list("stand-in-impersonated"),
        web_from: list("stand-in-web-from"),
        metrics_from: list("stand-in-metrics-from"),
        resources: json!("stand-in-resources"),
        pods: PodOptions {
            image_pull_secrets: json!("stand-in-pull-secrets"),
            node_selector: json!("stand-in-node-selector"),
            tolerations: json!("stand-in-tolerations"),
            affinity: json!("stand-in-affinity"),
            priority_class: "stand-in-priority-class".to_owned(),
            annotations: json!("stand-in-pod-annotations"),
            labels: json!({"stand-in-pod-labels": ""}),
            account_annotations: json!("stand-in-account-annotations"),
        },
        extra_args: list("stand-in-args"),
        extra_env: vec![json!("stand-in-env")],
        service_monitor: Some(ServiceMonitor {
            interval: "stand-in-interval".to_owned(),
            labels: json!({"stand-in-monitor-labels": ""}),
        }),
        prometheus_rule: Some(json!({"stand-in-rule-labels": ""})),
        ingress: Some(Ingress {
            host: "stand-in-ingress-host".to_owned(),
            class_name: "stand-in-ingress-class".to_owned(),
            annotations: json!("stand-in-ingress-annotations"),
            tls: json!("stand-in-ingress-tls"),
        }),
        gateway: Some(Gateway {
            host: "stand-in-gateway-host".to_owned(),
            name: "stand-in-gateway-name".to_owned(),
            namespace: "stand-in-gateway-place".to_owned(),
        }),
        ..InstallOptions::default()
    }
}

const NOTE: &str = "{{- /* Generated from `plumb install` by crates/plumb/tests/chart. */ -}}\n";

/// The template of all objects that are not settings.
pub(crate) fn objects() -> String {
    let mut text = NOTE.to_owned();
    let standard = without_settings(&stand_ins());
    let strict = without_settings(&InstallOptions { profile: Profile::Strict, ..stand_ins() });
    let is_role =
        |object: &&Value| object["apiVersion"].as_str().is_some_and(|version| version.starts_with("rbac."));
    text += "{{- if eq .Values.rbac.profile \"strict\" }}\n";
    for object in strict.iter().filter(is_role) {
        let document = document(object);
        let is_repeated = object["metadata"]["namespace"] == "stand-in-impersonated";
        let piece = if is_repeated {
            // Inside the loop, `.` is the namespace.
            let document = document.replace("{{ .Release", "{{ $.Release");
            format!("{{{{- range $namespace := .Values.rbac.impersonateIn }}}}\n{document}{{{{- end }}}}\n")
        } else {
            document
        };
        text.push_str(&piece);
    }
    text += "{{- else }}\n";
    text.extend(standard.iter().filter(is_role).map(document));
    text += "{{- end }}\n";
    for object in standard.iter().filter(|object| !is_role(object)) {
        let document = if object["kind"] == "NetworkPolicy" { network_policies() } else { document(object) };
        let piece = match condition(object) {
            Some(condition) => format!("{{{{- if {condition} }}}}\n{document}{{{{- end }}}}\n"),
            None => document,
        };
        text.push_str(&piece);
    }
    text
}

fn condition(object: &Value) -> Option<&'static str> {
    match object["kind"].as_str()? {
        "NetworkPolicy" => Some(".Values.networkPolicy.enabled"),
        "Ingress" => Some(".Values.ingress.enabled"),
        "HTTPRoute" => Some(".Values.gateway.enabled"),
        "ServiceMonitor" => Some(".Values.serviceMonitor.enabled"),
        "PrometheusRule" => Some(".Values.prometheusRule.enabled"),
        _ => None,
    }
}

/// Everything but the namespace, which Helm creates, and the settings, which have a template of their own.
fn without_settings(options: &InstallOptions) -> Vec<Value> {
    let mut objects = install::install(options);
    objects.retain(|object| object["kind"] != "Namespace" && object["kind"] != "ConfigMap");
    objects
}

/// An empty list of namespaces makes a policy of another shape.
fn network_policies() -> String {
    let policy = |web: bool, metrics: bool| {
        let mut options = stand_ins();
        options.web_from.truncate(usize::from(web));
        options.metrics_from.truncate(usize::from(metrics));
        let objects = without_settings(&options);
        objects.iter().find(|object| object["kind"] == "NetworkPolicy").map(document).unwrap_or_default()
    };
    let (web, metrics) = (".Values.networkPolicy.webFrom", ".Values.networkPolicy.metricsFrom");
    format!(
        "{{{{- if and {web} {metrics} }}}}\n{}{{{{- else if {web} }}}}\n{}{{{{- else if {metrics} }}}}\n{}{{{{- else }}}}\n{}{{{{- end }}}}\n",
        policy(true, true),
        policy(true, false),
        policy(false, true),
        policy(false, false)
    )
}

fn document(object: &Value) -> String {
    // What looks like a template in the object itself, as in the texts of alerts, is none.
    let text = to_yaml(object).replace("{{", "\u{1}").replace("}}", "\u{2}");
    let text = text.replace('\u{1}', "{{ \"{{\" }}").replace('\u{2}', "{{ \"}}\" }}");
    let lines: Vec<String> = text.lines().map(line).collect();
    format!("---\n{}\n", lines.join("\n"))
}

fn line(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let spaces = " ".repeat(indent);
    let words = line.trim_start();
    let (key, value) = words.split_once(": ").unwrap_or(("", words));
    let mut text = line.to_owned();
    for stand in STANDS {
        match stand {
            Stand::Word(word, with) => text = text.replace(word, with),
            Stand::Value(word, of) if value == *word => {
                text = format!("{spaces}{key}:\n{spaces}  {{{{- toYaml {of} | nindent {} }}}}", indent + 2);
            }
            Stand::Optional(word, of) if value == *word => {
                let inner = indent + 2;
                text = format!(
                    "{spaces}{{{{- with {of} }}}}\n{spaces}{key}:\n{spaces}  {{{{- toYaml . | nindent {inner} }}}}\n{spaces}{{{{- end }}}}"
                );
            }
            Stand::More(word, of) if words.trim_start_matches("- ").starts_with(word) => {
                text = format!(
                    "{spaces}{{{{- with {of} }}}}\n{spaces}{{{{- toYaml . | nindent {indent} }}}}\n{spaces}{{{{- end }}}}"
                );
            }
            Stand::Items(word, of) if words == format!("- {word}") => {
                text = format!("{spaces}{{{{- toYaml {of} | nindent {indent} }}}}");
            }
            _ => {}
        }
    }
    text
}

/// The template of the definitions. They are files: their descriptions may look like templates.
pub(crate) const CRDS: &str = r#"{{- /* Generated from `plumb install` by crates/plumb/tests/chart. */ -}}
{{- if .Values.crds.install }}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- if or $.Values.crds.argocd (not (contains "argoproj.io" $path)) }}
---
{{ $.Files.Get $path }}
{{- end }}
{{- end }}
{{- end }}
"#;

/// The template of the settings. A part without settings makes no object.
pub(crate) const SETTINGS: &str = r#"{{- /* Compared with `plumb install` by crates/plumb/tests/chart. */ -}}
{{- /* The texts of a part. Empty ones mean the default, and are left out. */ -}}
{{- define "plumb.texts" }}
{{- $texts := dict }}
{{- range $key, $value := omit (. | default dict) "create" "annotations" }}
{{- if and (not (kindIs "invalid" $value)) (ne ($value | toString) "") }}
{{- $_ := set $texts $key (kindIs "string" $value | ternary $value ($value | toRawJson)) }}
{{- end }}
{{- end }}
{{- $texts | toJson }}
{{- end }}
{{- $configs := .Values.configs }}
{{- $cm := deepCopy ($configs.cm | default dict) }}
{{- if and (eq .Values.rbac.profile "strict") (ne ($cm.create | toString) "false") }}
{{- $cm = set $cm "application.sync.impersonation.enabled" "true" }}
{{- end }}
{{- $ssh := dict }}
{{- with $configs.ssh }}
{{- $hosts := list (.knownHosts | default "" | trimSuffix "\n") (.extraHosts | default "" | trimSuffix "\n") | compact }}
{{- if and $hosts (ne (.create | toString) "false") }}
{{- $ssh = dict "ssh_known_hosts" (printf "%s\n" (join "\n" $hosts)) }}
{{- end }}
{{- end }}
{{- $tls := $configs.tls | default dict }}
{{- $gpg := $configs.gpg | default dict }}
{{- $parts := dict
  "argocd-cm" $cm
  "argocd-cmd-params-cm" $configs.params
  "argocd-rbac-cm" $configs.rbac
  "argocd-ssh-known-hosts-cm" $ssh
  "argocd-tls-certs-cm" (eq ($tls.create | toString) "false" | ternary dict $tls.certificates)
  "argocd-gpg-keys-cm" (eq ($gpg.create | toString) "false" | ternary dict $gpg.keys) }}
{{- range $name, $part := $parts }}
{{- $data := include "plumb.texts" $part | fromJson }}
{{- if and $data (ne (($part | default dict).create | toString) "false") }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    app.kubernetes.io/name: {{ $name }}
    app.kubernetes.io/part-of: argocd
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
data:
  {{- range $key, $text := $data }}
  {{ $key | quote }}: {{ $text | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- range $kind, $secrets := dict "repo" $configs.repositories "repo-creds" $configs.credentialTemplates }}
{{- range $name, $data := $secrets | default dict }}
---
apiVersion: v1
kind: Secret
metadata:
  labels:
    app.kubernetes.io/name: argocd-repository
    app.kubernetes.io/part-of: argocd
    argocd.argoproj.io/secret-type: {{ if eq $kind "repo" }}repository{{ else }}repo-creds{{ end }}
  name: argocd-{{ $kind }}-{{ $name }}
  namespace: {{ $.Release.Namespace }}
stringData:
  {{- range $key, $text := include "plumb.texts" $data | fromJson }}
  {{ $key | quote }}: {{ $text | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- range $name, $cluster := $configs.clusterCredentials | default dict }}
{{- $data := pick $cluster "name" "server" "namespaces" "clusterResources" "project" "config" }}
{{- $data = set $data "name" ($cluster.name | default $name) }}
---
apiVersion: v1
kind: Secret
metadata:
  {{- with $cluster.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  labels:
    {{- $own := dict "app.kubernetes.io/name" "argocd-cluster" "app.kubernetes.io/part-of" "argocd" "argocd.argoproj.io/secret-type" "cluster" }}
    {{- merge (deepCopy ($cluster.labels | default dict)) $own | toYaml | nindent 4 }}
  name: argocd-cluster-{{ $name }}
  namespace: {{ $.Release.Namespace }}
stringData:
  {{- range $key, $text := include "plumb.texts" $data | fromJson }}
  {{ $key | quote }}: {{ $text | quote }}
  {{- end }}
{{- end }}
{{- with $configs.secret }}
{{- $azure := .azureDevops | default dict }}
{{- $named := dict
  "webhook.github.secret" .githubSecret
  "webhook.gitlab.secret" .gitlabSecret
  "webhook.bitbucketserver.secret" .bitbucketServerSecret
  "webhook.bitbucket.uuid" .bitbucketUUID
  "webhook.gogs.secret" .gogsSecret
  "webhook.azuredevops.username" $azure.username
  "webhook.azuredevops.password" $azure.password
  "admin.password" .argocdServerAdminPassword
  "admin.passwordMtime" .argocdServerAdminPasswordMtime }}
{{- $keys := merge (include "plumb.texts" $named | fromJson) (include "plumb.texts" .extra | fromJson) }}
{{- if and $keys (ne (.createSecret | toString) "false") }}
---
apiVersion: v1
kind: Secret
metadata:
  labels:
    app.kubernetes.io/name: argocd-secret
    app.kubernetes.io/part-of: argocd
  name: argocd-secret
  namespace: {{ $.Release.Namespace }}
stringData:
  {{- range $key, $text := $keys }}
  {{ $key | quote }}: {{ $text | quote }}
  {{- end }}
{{- end }}
{{- end }}
"#;

/// What Helm prints after an installation.
pub(crate) const NOTES: &str = "plumb runs in the namespace {{ .Release.Namespace }}.

    kubectl -n {{ .Release.Namespace }} exec deploy/plumb -- plumb app list
    plumb doctor -n {{ .Release.Namespace }}
{{ if hasPrefix \"registry.invalid/\" .Values.image.repository }}
Its pods do not start yet: no image is published. Give yours with --set image.repository=REGISTRY/plumb.
{{ end }}";
