//! `plumb cluster add`

use std::time::Duration;

use plumb_core::object::Manifest;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::settings::name_hash;
use plumb_kube::{ApplyOptions, ClusterClient, Connection, FieldValidation, WritePermit};
use serde_json::{Map, Value, json};

use crate::context::{Context, FIELD_MANAGER, gate};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::kinds;
use crate::prompt;
use crate::secrets::base64;
use crate::secrets::write::{self as secrets, NewSecret};

/// Register a cluster of your kubeconfig as a destination for Applications.
///
/// Creates a service account in that cluster with full permissions (with --namespace, only in those namespaces), and
/// stores its token in a Secret of the control plane. Asks for confirmation, unless --yes is given.
///
/// Example: `plumb cluster add my-context --name production --yes`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    /// Context of the kubeconfig.
    #[arg(value_name = "CONTEXT")]
    cluster_context: String,
    /// Name of the cluster [default: the name of the context].
    #[arg(long)]
    name: Option<String>,
    /// With --namespace: also manage cluster-scoped objects.
    #[arg(long)]
    cluster_resources: bool,
    /// Namespace of the service account.
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    system_namespace: String,
    /// Use this existing service account with its permissions.
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Register it with the URL that its own pods use.
    #[arg(long)]
    in_cluster: bool,
    /// Only for this project.
    #[arg(long, add = crate::complete::projects())]
    project: Option<String>,
    /// A label of the cluster: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// An annotation of the cluster: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    annotation: Vec<String>,
    /// Update a cluster that is already registered.
    #[arg(long)]
    upsert: bool,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Refused: plumb has no shards.
    #[arg(long, hide = true)]
    shard: Option<i64>,
    /// Refused: plumb uses a service account token.
    #[arg(long, hide = true)]
    aws_cluster_name: Option<String>,
    /// Refused: exec plugins are disabled.
    #[arg(long, hide = true)]
    exec_command: Option<String>,
}

const MANAGER: &str = "argocd-manager";
/// The cluster creates a token shortly after its Secret.
const TOKEN_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    refuse(args)?;
    let entry = ClusterEntry::read(context, &args.cluster_context)?;
    let server = if args.in_cluster { "https://kubernetes.default.svc" } else { entry.server.as_str() };
    let name = args.name.as_deref().unwrap_or(&args.cluster_context);
    let namespaces: Vec<&str> =
        context.object_namespace().into_iter().flat_map(|text| text.split(',')).collect();
    let account = args.service_account.as_deref().unwrap_or(MANAGER);
    if args.service_account.is_none() && !args.yes {
        let scope = if namespaces.is_empty() { "the whole cluster" } else { "its namespaces" };
        let question = format!(
            "This creates a service account `{MANAGER}` in the cluster of context `{}` with full permissions in {scope}. \
             Do you want to continue?",
            args.cluster_context
        );
        if !prompt::confirm(&question)? {
            context.out.note("no cluster was added");
            return Ok(ExitCode::No);
        }
    }
    let there = client_of(context, &args.cluster_context).await?;
    for object in objects(args, account, &namespaces) {
        apply(context, &there, object).await?;
    }
    let token = token(&there, args, account).await?;
    let here = context.client().await?;
    let host = entry.host();
    let secret_name = format!("cluster-{host}-{}", name_hash(&[server]));
    let mut values = Map::new();
    values.insert("name".to_owned(), json!(name));
    values.insert("server".to_owned(), json!(server));
    values.insert("config".to_owned(), json!(entry.config(&token, args.in_cluster).to_string()));
    if !namespaces.is_empty() {
        values.insert("namespaces".to_owned(), json!(namespaces.join(",")));
        values.insert("clusterResources".to_owned(), json!(args.cluster_resources.to_string()));
    }
    if let Some(project) = &args.project {
        values.insert("project".to_owned(), json!(project));
    }
    let secret = NewSecret {
        name: &secret_name,
        secret_type: "cluster",
        what: &format!("cluster {server}"),
        labels: pairs("--label", &args.label)?,
        annotations: pairs("--annotation", &args.annotation)?,
        values,
    };
    let result = secrets::write(context, &here, secret, args.upsert).await?;
    context.out.print(&format!("Cluster '{server}' {result}"));
    Ok(ExitCode::Success)
}

fn refuse(args: &Args) -> Result<(), CommandError> {
    if args.shard.is_some() {
        return Err(CommandError::refused_flag("--shard", "plumb has no shards"));
    }
    if args.aws_cluster_name.is_some() {
        return Err(CommandError::refused_flag("--aws-cluster-name", "plumb uses a service account token"));
    }
    if args.exec_command.is_some() {
        return Err(CommandError::refused_flag(
            "--exec-command",
            "everyone who may write a cluster Secret could then run programs as plumb",
        ));
    }
    Ok(())
}

fn pairs(flag: &str, texts: &[String]) -> Result<Map<String, Value>, CommandError> {
    texts
        .iter()
        .map(|text| {
            let split = text.split_once('=');
            let wrong = || CommandError::usage(format!("{flag} {text}: expected NAME=VALUE"));
            split.map(|(name, value)| (name.to_owned(), json!(value))).ok_or_else(wrong)
        })
        .collect()
}

async fn client_of(context: &Context, name: &str) -> Result<ClusterClient, CommandError> {
    let path = context.connection.kubeconfig_path()?;
    let connection = Connection::from_kubeconfig(&path, Some(name))
        .await
        .map_err(|error| CommandError::because(format!("use context {name}"), error))?;
    let client =
        connection.client().map_err(|error| CommandError::because(format!("connect to {name}"), error))?;
    client.assume_kinds(&kinds::known());
    Ok(client)
}

/// The cluster entry of a kubeconfig.
struct ClusterEntry {
    server: String,
    ca_data: Option<String>,
    insecure: bool,
    server_name: Option<String>,
}

impl ClusterEntry {
    fn read(context: &Context, name: &str) -> Result<Self, CommandError> {
        let path = context.connection.kubeconfig_path()?;
        let shown = path.display();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| CommandError::because(format!("read kubeconfig {shown}"), error))?;
        let documents = parse_documents(&text, &Limits::default())
            // The error quotes the file, which holds credentials.
            .map_err(|_| {
                CommandError::new(format!("cannot read kubeconfig {shown}: it is not valid YAML"))
            })?;
        let config = documents.into_iter().map(|document| document.value).next().unwrap_or_default();
        let find = |list: &str, name: &str| {
            let entries = config.get(list).and_then(Value::as_array);
            entries.into_iter().flatten().find(|entry| entry.get("name") == Some(&json!(name))).cloned()
        };
        let contexts = || {
            let entries = config.get("contexts").and_then(Value::as_array);
            let names = entries.into_iter().flatten().filter_map(|entry| entry.get("name")?.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let entry = find("contexts", name).ok_or_else(|| {
            CommandError::new(format!("kubeconfig {shown} has no context {name}"))
                .hint(format!("its contexts: {}", contexts()))
        })?;
        let cluster = entry.pointer("/context/cluster").and_then(Value::as_str).unwrap_or_default();
        let cluster = find("clusters", cluster)
            .ok_or_else(|| CommandError::new(format!("kubeconfig {shown} has no cluster {cluster}")))?;
        let text = |field: &str| cluster.pointer(&format!("/cluster/{field}")).and_then(Value::as_str);
        let ca_data = match (text("certificate-authority-data"), text("certificate-authority")) {
            (Some(data), _) => Some(data.to_owned()),
            (None, Some(file)) => {
                let file = path.parent().map_or_else(|| file.into(), |folder| folder.join(file));
                let bytes = std::fs::read(&file)
                    .map_err(|error| CommandError::because(format!("read {}", file.display()), error))?;
                Some(base64::encode(&bytes))
            }
            (None, None) => None,
        };
        Ok(Self {
            server: text("server").unwrap_or_default().trim_end_matches('/').to_owned(),
            ca_data,
            insecure: cluster.pointer("/cluster/insecure-skip-tls-verify") == Some(&json!(true)),
            server_name: text("tls-server-name").map(str::to_owned),
        })
    }

    /// The host without its port, in lower case.
    fn host(&self) -> String {
        let rest = self.server.split_once("://").map_or(self.server.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or(rest);
        let host = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inside, _)) => inside.replace(':', "-"),
            None => host.split(':').next().unwrap_or(host).to_owned(),
        };
        host.to_ascii_lowercase()
    }

    /// `config` of the Secret.
    fn config(&self, token: &str, in_cluster: bool) -> Value {
        let mut tls = json!({"insecure": self.insecure});
        if let (Some(ca), false) = (&self.ca_data, self.insecure) {
            tls["caData"] = json!(ca);
        }
        if let (Some(name), false) = (&self.server_name, in_cluster) {
            tls["serverName"] = json!(name);
        }
        json!({"bearerToken": token, "tlsClientConfig": tls})
    }
}

/// The service account, its permissions, and its token Secret.
fn objects(args: &Args, account: &str, namespaces: &[&str]) -> Vec<Value> {
    let system = &args.system_namespace;
    let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": system}]);
    let everything = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    ]);
    let rbac = "rbac.authorization.k8s.io";
    let mut objects = Vec::new();
    if args.service_account.is_none() {
        objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": system}}));
        if namespaces.is_empty() {
            let anything = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
            let mut rules = everything.as_array().cloned().unwrap_or_default();
            rules.push(anything);
            objects.push(json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole",
                "metadata": {"name": "argocd-manager-role"}, "rules": rules}));
            objects.push(json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": "argocd-manager-role-binding"}, "subjects": subject,
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "argocd-manager-role"}}));
        }
        for namespace in namespaces {
            objects.push(json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role",
                "metadata": {"name": "argocd-manager-role", "namespace": namespace}, "rules": everything}));
            objects.push(json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
                "metadata": {"name": "argocd-manager-role-binding", "namespace": namespace}, "subjects": subject,
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "argocd-manager-role"}}));
        }
    }
    objects.push(json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": token_name(account), "namespace": system,
            "annotations": {"kubernetes.io/service-account.name": account}}}));
    objects
}

fn token_name(account: &str) -> String {
    format!("{account}-long-lived-token")
}

async fn apply(context: &Context, client: &ClusterClient, object: Value) -> Result<(), CommandError> {
    let object = Manifest::new(object).map_err(|error| CommandError::because("build an object", error))?;
    let Some(key) = object.key() else { return Ok(()) };
    let options = ApplyOptions {
        field_manager: FIELD_MANAGER.to_owned(),
        force: true,
        field_validation: FieldValidation::Strict,
        subresource: None,
    };
    gate(client)
        .apply(&WritePermit::requested_by_user(key.clone()), &object, &options)
        .await
        .map_err(|error| CommandError::write(format!("apply {key}"), error))?;
    context.out.note(&format!("{key} applied"));
    Ok(())
}

/// Waits for the token.
async fn token(client: &ClusterClient, args: &Args, account: &str) -> Result<String, CommandError> {
    let name = token_name(account);
    let read = async {
        loop {
            let secret = client
                .get_at(&kinds::secret(), Some(&args.system_namespace), &name)
                .await
                .map_err(|error| CommandError::api(format!("read secret {name}"), error))?;
            let token = secret
                .as_ref()
                .and_then(|secret| secret.value().pointer("/data/token")?.as_str().and_then(base64::decode));
            if let Some(token) = token {
                return Ok(token);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TOKEN_WAIT, read).await.map_err(|_| {
        CommandError::new(format!("the cluster created no token for service account {account} within 10 s"))
            .hint("is its kube-controller-manager running?")
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_has_argo_cds_name() {
        let entry = |server: &str| ClusterEntry {
            server: server.to_owned(),
            ca_data: None,
            insecure: false,
            server_name: None,
        };
        assert_eq!(entry("https://API.example.com:6443").host(), "api.example.com");
        assert_eq!(entry("https://[::1]:6443/x").host(), "--1");
        let config = entry("https://x").config("t", false);
        assert_eq!(config, json!({"bearerToken": "t", "tlsClientConfig": {"insecure": false}}));
    }
}
