//! `plumb install`

use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::yaml::{Limits, parse_first};
use plumb_crd::install::{
    self, Gateway, Ingress, InstallOptions, Profile, PullPolicy, ServiceMonitor, read_values,
};
use plumb_kube::ClusterClient;
use serde_json::{Value, json};

use crate::bootstrap::{INSTALL_MANAGER, apply_all, make_default_project};
use crate::context::Context;
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print (or apply) the objects that plumb needs in a cluster.
///
/// CRDs, namespace, permissions, the Deployment and the project `default`, as YAML. `plumb install --apply` applies them
/// in the right order, does not change an existing project, and does not recreate one that was deleted. A namespace that
/// exists, and definitions that Argo CD brought, stay as they are.
///
/// kubectl cannot apply a CRD and an object of its kind in one call, so leave the project out the first time: plumb
/// creates it when it starts.
/// `plumb install --image REGISTRY/plumb:TAG --without-project | kubectl apply --server-side -f -`
///
/// With `--profile strict` plumb itself can read everything and write only its own objects. Syncs act as the service
/// accounts that the projects name (`destinationServiceAccounts`), in the namespaces of `--impersonate-in`.
///
/// `plumb install --values values.yaml` reads the values of plumb's Helm chart and makes the objects that the chart makes,
/// with settings in the shape of argo-helm's `configs`. Other flags override the file.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// Apply the objects instead of printing them.
    #[arg(long)]
    apply: bool,
    /// Leave the project `default` out.
    #[arg(long, conflicts_with = "apply")]
    without_project: bool,
    /// Image of the Deployment: `REGISTRY/NAME:TAG`, best with its digest (`@sha256:…`).
    #[arg(long)]
    image: Option<String>,
    /// When a node pulls the image [default: `IfNotPresent`].
    #[arg(long, value_enum)]
    image_pull_policy: Option<PullPolicyArg>,
    /// What plumb's own service account may do [default: `standard`].
    #[arg(long, value_enum)]
    profile: Option<ProfileArg>,
    /// Namespace whose service accounts plumb may impersonate, with `--profile strict`. Can be repeated.
    #[arg(long, value_name = "NAMESPACE")]
    impersonate_in: Vec<String>,
    /// Namespace whose pods may send webhooks, usually that of the ingress controller. Can be repeated. Default: all
    /// pods of the cluster.
    #[arg(long, value_name = "NAMESPACE")]
    web_from: Vec<String>,
    /// Namespace whose pods may read metrics. Can be repeated. Namespaces with the label `plumb.dev/metrics=enabled` may
    /// as well [default: `monitoring`].
    #[arg(long, value_name = "NAMESPACE")]
    metrics_from: Vec<String>,
    /// File with values of plumb's Helm chart; `-` is stdin.
    #[arg(long, value_name = "FILE")]
    values: Option<String>,
    /// How many pods; one is the leader [default: 2].
    #[arg(long, value_name = "NUMBER")]
    replicas: Option<u32>,
    /// Requests and limits of the container, such as `requests.cpu=500m`. Can be repeated.
    #[arg(long, value_name = "NAME=QUANTITY")]
    resources: Vec<String>,
    /// Secret with the login at the image's registry. Can be repeated.
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Vec<String>,
    /// A label of the nodes that pods run on. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    node_selector: Vec<String>,
    /// Priority class of the pods.
    #[arg(long, value_name = "NAME")]
    priority_class: Option<String>,
    /// Annotation of the service account, such as a cloud's role. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    service_account_annotation: Vec<String>,
    /// An argument of `plumb run`, such as `--workers`; its value is the next one. Can be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    extra_arg: Vec<String>,
    /// A variable of the container. Can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    extra_env: Vec<String>,
    /// Leave the `NetworkPolicy` out.
    #[arg(long)]
    without_network_policy: bool,
    /// Leave the definitions of Argo CD's kinds out, beside an Argo CD that brought them.
    #[arg(long)]
    without_argocd_crds: bool,
    /// Add a `ServiceMonitor` of the Prometheus operator.
    #[arg(long)]
    service_monitor: bool,
    /// Add a `PrometheusRule` with plumb's alerts.
    #[arg(long)]
    prometheus_rule: bool,
    /// Add an Ingress for this host.
    #[arg(long, value_name = "HOST")]
    ingress_host: Option<String>,
    /// Class of the Ingress [default: that of the cluster].
    #[arg(long, value_name = "NAME", requires = "ingress_host")]
    ingress_class: Option<String>,
    /// Add an `HTTPRoute` for this host, at the Gateway of `--gateway`.
    #[arg(long, value_name = "HOST", requires = "gateway")]
    gateway_host: Option<String>,
    /// The Gateway of the `HTTPRoute`.
    #[arg(long, value_name = "NAMESPACE/NAME", requires = "gateway_host")]
    gateway: Option<String>,
    /// A setting of `argocd-cm` (`cm`), `argocd-cmd-params-cm` (`params`) or `argocd-rbac-cm` (`rbac`), such as
    /// `params.server.insecure=true`. Can be repeated.
    #[arg(long, value_name = "PART.KEY=VALUE")]
    set_config: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ProfileArg {
    /// Everything.
    Standard,
    /// Reads, plumb's own objects, and impersonation.
    Strict,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum PullPolicyArg {
    /// Before each start.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// The image is loaded onto the nodes.
    Never,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let options = options(context, args)?;
    let objects = install::install(&options);
    if options.image.is_unpublished() {
        context.out.note(
            "note: no image is published yet: the pods start once you give yours with --image REGISTRY/plumb:TAG",
        );
    }
    if options.profile == Profile::Strict && options.impersonate_in.is_empty() {
        context.out.note(
            "note: plumb may impersonate no service account yet: give the namespaces of the apps with --impersonate-in",
        );
    }
    if options.profile == Profile::Strict && options.configs["cm"]["create"] == json!(false) {
        context.out.note(
            "note: set `application.sync.impersonation.enabled: \"true\"` in the argocd-cm that you have: without it syncs \
             act as plumb, which may not write",
        );
    }
    if !args.apply {
        context.out.print(plumb_crd::yaml::to_yaml_documents(&objects).trim_end());
        return Ok(ExitCode::Success);
    }
    let client = context.client_of_all_kinds().await?;
    let objects = without_others(context, &client, objects).await?;
    let report = |key: &ObjectKey| context.out.note(&format!("{key} applied"));
    apply_all(&client, &objects, report).await?;
    make_default_project(&client, context.namespace(), report).await?;
    Ok(ExitCode::Success)
}

/// Leaves out what is there and is somebody else's: the namespace, whose labels decide which pods may run there, and
/// definitions that Argo CD brought.
async fn without_others(
    context: &Context,
    client: &ClusterClient,
    objects: Vec<Value>,
) -> Result<Vec<Value>, CommandError> {
    let mut wanted = Vec::new();
    for object in objects {
        let key = Manifest::new(object.clone()).ok().and_then(|manifest| manifest.key());
        let found = match key.filter(|_| may_be_others(&object)) {
            Some(key) => {
                let found = client.get(&key).await;
                found
                    .map_err(|error| CommandError::api(format!("read {key}"), error))?
                    .map(|found| (key, found))
            }
            None => None,
        };
        match found {
            Some((key, found)) if !is_ours(found.value()) => {
                context.out.note(&format!("{key} is there already: left as it is"));
            }
            _ => wanted.push(object),
        }
    }
    Ok(wanted)
}

fn may_be_others(object: &Value) -> bool {
    object["kind"] == "Namespace"
        || (object["kind"] == "CustomResourceDefinition" && object["spec"]["group"] == "argoproj.io")
}

/// True for a definition that an earlier `plumb install` applied. A namespace is never changed again: what else runs there
/// may need other labels.
fn is_ours(found: &Value) -> bool {
    let managers = found["metadata"]["managedFields"].as_array().into_iter().flatten();
    found["kind"] == "CustomResourceDefinition"
        && managers.into_iter().any(|entry| entry["manager"] == INSTALL_MANAGER)
}

fn options(context: &Context, args: &Args) -> Result<InstallOptions, CommandError> {
    let mut options =
        InstallOptions { namespace: context.namespace().to_owned(), ..InstallOptions::default() };
    if let Some(file) = &args.values {
        let cannot = |why: String| {
            CommandError::because(format!("use the values in {file}"), why).exit(ExitCode::Usage)
        };
        let document =
            parse_first(&read_text(file)?, &Limits::default()).map_err(|error| cannot(error.to_string()))?;
        let values = document.map_or(Value::Null, |document| document.value);
        options = read_values(&values, options).map_err(|error| cannot(error.to_string()))?;
    }
    if let Some(text) = &args.image {
        options.image = text.parse().map_err(|why| {
            CommandError::because(format!("use the image `{text}`"), why).exit(ExitCode::Usage)
        })?;
    }
    if let Some(policy) = args.image_pull_policy {
        options.pull_policy = match policy {
            PullPolicyArg::Always => PullPolicy::Always,
            PullPolicyArg::IfNotPresent => PullPolicy::IfNotPresent,
            PullPolicyArg::Never => PullPolicy::Never,
        };
    }
    if let Some(profile) = args.profile {
        options.profile = match profile {
            ProfileArg::Standard => Profile::Standard,
            ProfileArg::Strict => Profile::Strict,
        };
    }
    for (given, list) in [
        (&args.impersonate_in, &mut options.impersonate_in),
        (&args.web_from, &mut options.web_from),
        (&args.metrics_from, &mut options.metrics_from),
    ] {
        if !given.is_empty() {
            list.clone_from(given);
        }
    }
    // With --apply an existing project must not be overwritten: it may permit less.
    options.project = !args.apply && !args.without_project;
    options.replicas = args.replicas.unwrap_or(options.replicas);
    options.network_policy &= !args.without_network_policy;
    options.argocd_crds &= !args.without_argocd_crds;
    more_objects(args, &mut options)?;
    pods(args, &mut options)?;
    for text in &args.resources {
        set_at(&mut options.resources, text, &["requests", "limits"], "--resources")?;
    }
    for text in &args.set_config {
        set_at(&mut options.configs, text, &["cm", "params", "rbac"], "--set-config")?;
    }
    Ok(options)
}

/// What the cluster asks of pods.
fn pods(args: &Args, options: &mut InstallOptions) -> Result<(), CommandError> {
    let pods = &mut options.pods;
    if !args.image_pull_secret.is_empty() {
        pods.image_pull_secrets = args.image_pull_secret.iter().map(|name| json!({"name": name})).collect();
    }
    for (flag, texts, map) in [
        ("--node-selector", &args.node_selector, &mut pods.node_selector),
        ("--service-account-annotation", &args.service_account_annotation, &mut pods.account_annotations),
    ] {
        for text in texts {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| CommandError::usage(format!("`{flag} {text}` is not KEY=VALUE")))?;
            map[key] = json!(value);
        }
    }
    if let Some(name) = &args.priority_class {
        pods.priority_class.clone_from(name);
    }
    options.extra_args.extend(args.extra_arg.iter().cloned());
    for text in &args.extra_env {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| CommandError::usage(format!("`--extra-env {text}` is not NAME=VALUE")))?;
        options.extra_env.push(json!({"name": name, "value": value}));
    }
    Ok(())
}

/// Monitoring, and the way in from outside of the cluster.
fn more_objects(args: &Args, options: &mut InstallOptions) -> Result<(), CommandError> {
    if args.service_monitor && options.service_monitor.is_none() {
        options.service_monitor = Some(ServiceMonitor { interval: "30s".to_owned(), labels: json!({}) });
    }
    if args.prometheus_rule && options.prometheus_rule.is_none() {
        options.prometheus_rule = Some(json!({}));
    }
    if let Some(host) = &args.ingress_host {
        let class_name = args.ingress_class.clone().unwrap_or_default();
        let (host, annotations, tls) = (host.clone(), json!({}), json!([]));
        options.ingress = Some(Ingress { host, class_name, annotations, tls });
    }
    if let (Some(host), Some(gateway)) = (&args.gateway_host, &args.gateway) {
        let (namespace, name) = gateway
            .split_once('/')
            .ok_or_else(|| CommandError::usage(format!("`--gateway {gateway}` is not NAMESPACE/NAME")))?;
        let (host, name, namespace) = (host.clone(), name.to_owned(), namespace.to_owned());
        options.gateway = Some(Gateway { host, name, namespace });
    }
    Ok(())
}

/// Sets `PART.KEY=VALUE` in a map of maps.
fn set_at(map: &mut Value, text: &str, parts: &[&str], flag: &str) -> Result<(), CommandError> {
    let read = || {
        let (place, value) = text.split_once('=')?;
        let (part, key) = place.split_once('.')?;
        (parts.contains(&part) && !key.is_empty()).then_some((part, key, value))
    };
    let (part, key, value) = read().ok_or_else(|| {
        let parts = parts.join(", ");
        CommandError::usage(format!("`{flag} {text}` is not PART.KEY=VALUE with a part of {parts}"))
    })?;
    if !map[part].is_object() {
        map[part] = json!({});
    }
    map[part][key] = json!(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_brought_is_left() {
        let managed = |kind: &str, manager: &str| json!({"kind": kind, "metadata": {"managedFields": [{"manager": manager}]}});
        assert!(is_ours(&managed("CustomResourceDefinition", INSTALL_MANAGER)));
        assert!(!is_ours(&managed("CustomResourceDefinition", "argocd-controller")));
        assert!(!is_ours(&managed("Namespace", INSTALL_MANAGER)));
        let kinds = |objects: &[Value]| {
            let names = objects.iter().filter(|object| may_be_others(object));
            names
                .map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(&install::install(&InstallOptions::default())),
            ["applications.argoproj.io", "appprojects.argoproj.io", "applicationsets.argoproj.io", "argocd"]
        );
    }
}
