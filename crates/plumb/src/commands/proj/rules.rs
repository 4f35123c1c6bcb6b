//! `plumb proj add-…`, `remove-…`, `allow-…` and `deny-…`: adding and removing one entry of a list of a project.

use serde_json::{Value, json};

use crate::context::Context;
use crate::edit::json_path::{list, map, remove_empty};
use crate::edit::merge;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::project::ProjectArg;

/// Adds or removes one entry of a list of a project.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Permit a repository: `plumb proj add-source payments https://example.com/payments.git`
    AddSource(RepoArgs),
    /// Stop permitting a repository: `plumb proj remove-source payments https://example.com/payments.git`
    RemoveSource(RepoArgs),
    /// Permit a destination: `plumb proj add-destination payments https://kubernetes.default.svc payments`
    AddDestination(DestinationArgs),
    /// Stop permitting a destination: `plumb proj remove-destination payments https://kubernetes.default.svc old`
    RemoveDestination(DestinationArgs),
    /// Permit Applications of a namespace to use the project: `plumb proj add-source-namespace payments team-a`
    AddSourceNamespace(NamespaceArgs),
    /// Stop permitting Applications of a namespace to use the project:
    /// `plumb proj remove-source-namespace payments team-a`
    RemoveSourceNamespace(NamespaceArgs),
    /// Require commits signed with a key: `plumb proj add-signature-key payments 4AEE18F83AFDEB23`
    AddSignatureKey(KeyArgs),
    /// Stop requiring commits signed with a key: `plumb proj remove-signature-key payments 4AEE18F83AFDEB23`
    RemoveSignatureKey(KeyArgs),
    /// Ignore orphaned objects: `plumb proj add-orphaned-ignore payments "" ConfigMap --name cache-*`
    AddOrphanedIgnore(OrphanArgs),
    /// Stop ignoring orphaned objects: `plumb proj remove-orphaned-ignore payments "" ConfigMap --name cache-*`
    RemoveOrphanedIgnore(OrphanArgs),
    /// Sync to a destination as a service account:
    /// `plumb proj add-destination-service-account payments https://kubernetes.default.svc payments deployer`
    AddDestinationServiceAccount(ServiceAccountArgs),
    /// Stop syncing to a destination as a service account:
    /// `plumb proj remove-destination-service-account payments https://kubernetes.default.svc payments deployer`
    RemoveDestinationServiceAccount(ServiceAccountArgs),
    /// Permit a cluster-scoped kind: `plumb proj allow-cluster-resource payments "" Namespace`
    AllowClusterResource(KindArgs),
    /// Forbid a cluster-scoped kind: `plumb proj deny-cluster-resource payments "" Namespace`
    DenyClusterResource(KindArgs),
    /// Permit a namespaced kind: `plumb proj allow-namespace-resource payments "" ConfigMap`
    AllowNamespaceResource(KindArgs),
    /// Forbid a namespaced kind: `plumb proj deny-namespace-resource payments "" Secret`
    DenyNamespaceResource(KindArgs),
}

/// A repository.
#[derive(Debug, clap::Args)]
pub(crate) struct RepoArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// URL, as a glob; `!` in front forbids it.
    url: String,
}

/// A destination.
#[derive(Debug, clap::Args)]
pub(crate) struct DestinationArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// URL of the cluster, as a glob; with --name, its name.
    #[arg(value_name = "SERVER")]
    cluster: String,
    /// Namespace, as a glob.
    #[arg(value_name = "NAMESPACE")]
    destination: String,
    /// SERVER is the name of the cluster, not its URL.
    #[arg(long)]
    name: bool,
}

/// A namespace.
#[derive(Debug, clap::Args)]
pub(crate) struct NamespaceArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// Namespace, as a glob.
    #[arg(value_name = "NAMESPACE")]
    source_namespace: String,
}

/// A key.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// Id of the key.
    key: String,
}

/// Orphaned objects to ignore.
#[derive(Debug, clap::Args)]
pub(crate) struct OrphanArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// API group, as a glob; "" is the core group.
    group: String,
    /// Kind, as a glob.
    kind: String,
    /// Name, as a glob [default: all names].
    #[arg(long)]
    name: Option<String>,
}

/// A service account for a destination.
#[derive(Debug, clap::Args)]
pub(crate) struct ServiceAccountArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// URL of the cluster, as a glob.
    #[arg(value_name = "SERVER")]
    cluster: String,
    /// Namespace of the destination, as a glob.
    #[arg(value_name = "NAMESPACE")]
    destination: String,
    /// Name of the service account.
    service_account: String,
    /// Namespace of the service account [default: the destination's].
    #[arg(long, value_name = "NAMESPACE")]
    service_account_namespace: Option<String>,
}

/// A kind.
#[derive(Debug, clap::Args)]
pub(crate) struct KindArgs {
    #[command(flatten)]
    project: ProjectArg,
    /// API group, as a glob; "" is the core group.
    group: String,
    /// Kind, as a glob.
    kind: String,
    /// Which list to change [default: the list of permitted kinds; for namespaced kinds, the list of forbidden ones].
    #[arg(long = "list", short = 'l', value_parser = ["allow", "deny"])]
    which: Option<String>,
}

/// What to do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    Remove,
}

/// A change of one list.
struct Edit<'a> {
    project: &'a ProjectArg,
    step: Step,
    /// The path of the list in the spec.
    path: Vec<&'static str>,
    entry: Value,
    /// The entry in words, for messages.
    what: String,
}

pub(super) async fn run(context: &Context, command: &Command) -> Result<ExitCode, CommandError> {
    let edit = edit_of(command);
    let client = context.client().await?;
    edit.project.read(context, &client).await?;
    let target = edit.project.target(context);
    let changed = merge::edit_spec(&client, &target, |spec| {
        apply(&edit, spec);
        Ok(())
    })
    .await?;
    let project = &target.name;
    let what = &edit.what;
    let (said, code) = match (edit.step, changed) {
        (Step::Add, true) => (format!("{what} added to project '{project}'"), ExitCode::Success),
        (Step::Add, false) => (format!("{what} is already in project '{project}'"), ExitCode::Success),
        (Step::Remove, true) => (format!("{what} removed from project '{project}'"), ExitCode::Success),
        (Step::Remove, false) => (format!("{what} does not exist in project '{project}'"), ExitCode::No),
    };
    context.out.print(&said);
    Ok(code)
}

fn edit_of(command: &Command) -> Edit<'_> {
    let simple = |project, step, field, text: &str, what: &str| Edit {
        project,
        step,
        path: vec![field],
        entry: json!(text),
        what: format!("{what} '{text}'"),
    };
    match command {
        Command::AddSource(args) => {
            simple(&args.project, Step::Add, "sourceRepos", &args.url, "source repository")
        }
        Command::RemoveSource(args) => {
            simple(&args.project, Step::Remove, "sourceRepos", &args.url, "source repository")
        }
        Command::AddSourceNamespace(args) => {
            simple(&args.project, Step::Add, "sourceNamespaces", &args.source_namespace, "source namespace")
        }
        Command::RemoveSourceNamespace(args) => simple(
            &args.project,
            Step::Remove,
            "sourceNamespaces",
            &args.source_namespace,
            "source namespace",
        ),
        Command::AddDestination(args) => destination(args, Step::Add),
        Command::RemoveDestination(args) => destination(args, Step::Remove),
        Command::AddSignatureKey(args) => key(args, Step::Add),
        Command::RemoveSignatureKey(args) => key(args, Step::Remove),
        Command::AddOrphanedIgnore(args) => orphan(args, Step::Add),
        Command::RemoveOrphanedIgnore(args) => orphan(args, Step::Remove),
        Command::AddDestinationServiceAccount(args) => service_account(args, Step::Add),
        Command::RemoveDestinationServiceAccount(args) => service_account(args, Step::Remove),
        Command::AllowClusterResource(args) => kind(args, &CLUSTER_KINDS, Access::Allow),
        Command::DenyClusterResource(args) => kind(args, &CLUSTER_KINDS, Access::Deny),
        Command::AllowNamespaceResource(args) => kind(args, &NAMESPACED_KINDS, Access::Allow),
        Command::DenyNamespaceResource(args) => kind(args, &NAMESPACED_KINDS, Access::Deny),
    }
}

fn destination(args: &DestinationArgs, step: Step) -> Edit<'_> {
    let field = if args.name { "name" } else { "server" };
    Edit {
        project: &args.project,
        step,
        path: vec!["destinations"],
        entry: json!({field: args.cluster, "namespace": args.destination}),
        what: format!("destination '{},{}'", args.cluster, args.destination),
    }
}

fn key(args: &KeyArgs, step: Step) -> Edit<'_> {
    Edit {
        project: &args.project,
        step,
        path: vec!["signatureKeys"],
        entry: json!({"keyID": args.key}),
        what: format!("signature key '{}'", args.key),
    }
}

fn orphan(args: &OrphanArgs, step: Step) -> Edit<'_> {
    let mut entry = json!({"group": args.group, "kind": args.kind});
    if let Some(name) = &args.name {
        entry["name"] = json!(name);
    }
    Edit {
        project: &args.project,
        step,
        path: vec!["orphanedResources", "ignore"],
        entry,
        what: format!("orphan exception '{}/{}'", args.group, args.kind),
    }
}

fn service_account(args: &ServiceAccountArgs, step: Step) -> Edit<'_> {
    let account = match &args.service_account_namespace {
        Some(namespace) => format!("{namespace}:{}", args.service_account),
        None => args.service_account.clone(),
    };
    Edit {
        project: &args.project,
        step,
        path: vec!["destinationServiceAccounts"],
        entry: json!({"server": args.cluster, "namespace": args.destination, "defaultServiceAccount": account}),
        what: format!("service account '{account}' for '{},{}'", args.cluster, args.destination),
    }
}

/// The two lists of kinds of one scope.
struct KindLists {
    allowed: &'static str,
    denied: &'static str,
    /// The list that is changed unless `--list` names one.
    default: Access,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Allow,
    Deny,
}

const CLUSTER_KINDS: KindLists = KindLists {
    allowed: "clusterResourceWhitelist",
    denied: "clusterResourceBlacklist",
    default: Access::Allow,
};

const NAMESPACED_KINDS: KindLists = KindLists {
    allowed: "namespaceResourceWhitelist",
    denied: "namespaceResourceBlacklist",
    default: Access::Deny,
};

fn kind<'a>(args: &'a KindArgs, lists: &KindLists, access: Access) -> Edit<'a> {
    let list = match args.which.as_deref() {
        Some("allow") => Access::Allow,
        Some(_) => Access::Deny,
        None => lists.default,
    };
    let (field, word) = match list {
        Access::Allow => (lists.allowed, "permitted"),
        Access::Deny => (lists.denied, "forbidden"),
    };
    Edit {
        project: &args.project,
        step: if list == access { Step::Add } else { Step::Remove },
        path: vec![field],
        entry: json!({"group": args.group, "kind": args.kind}),
        what: format!("{word} kind '{}/{}'", args.group, args.kind),
    }
}

fn apply(edit: &Edit<'_>, spec: &mut Value) {
    let mut place = &mut *spec;
    for part in &edit.path {
        if edit.step == Step::Remove && place.get(part).is_none() {
            return;
        }
        place = map(place).entry(*part).or_insert(Value::Null);
    }
    let entries = list(place);
    let is_there = entries.contains(&edit.entry);
    match edit.step {
        Step::Add if !is_there => entries.push(edit.entry.clone()),
        Step::Add => {}
        Step::Remove => {
            entries.retain(|entry| *entry != edit.entry);
            match edit.path.as_slice() {
                // An empty list of permitted namespaced kinds permits none, but a missing one permits all: keep it.
                ["namespaceResourceWhitelist"] => {}
                [field] => remove_empty(spec, field),
                [outer, inner] => {
                    if let Some(outer) = spec.get_mut(*outer) {
                        remove_empty(outer, inner);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn applied(line: &[&str], mut spec: Value) -> Value {
        let line = Line::parse_from(std::iter::once(&"x").chain(line));
        apply(&edit_of(&line.command), &mut spec);
        spec
    }

    #[test]
    fn entries_come_and_go() {
        let spec = applied(&["add-source", "p", "https://a"], json!({}));
        assert_eq!(spec, json!({"sourceRepos": ["https://a"]}));
        assert_eq!(applied(&["add-source", "p", "https://a"], spec.clone()), spec);
        assert_eq!(applied(&["remove-source", "p", "https://a"], spec), json!({}));
        let spec = applied(&["add-destination", "p", "eu", "web", "--name"], json!({}));
        assert_eq!(spec, json!({"destinations": [{"name": "eu", "namespace": "web"}]}));
        assert_eq!(applied(&["remove-destination", "p", "eu", "other", "--name"], spec.clone()), spec);
        let spec = applied(
            &["add-orphaned-ignore", "p", "", "ConfigMap"],
            json!({"orphanedResources": {"warn": true}}),
        );
        assert_eq!(
            spec,
            json!({"orphanedResources": {"warn": true, "ignore": [{"group": "", "kind": "ConfigMap"}]}})
        );
    }

    #[test]
    fn kinds_are_permitted_and_forbidden_in_the_right_list() {
        let spec = applied(&["allow-cluster-resource", "p", "", "Namespace"], json!({}));
        assert_eq!(spec, json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace"}]}));
        assert_eq!(applied(&["deny-cluster-resource", "p", "", "Namespace"], spec), json!({}));
        let spec = applied(&["deny-namespace-resource", "p", "", "Secret"], json!({}));
        assert_eq!(spec, json!({"namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]}));
        let spec = json!({"namespaceResourceWhitelist": [{"group": "", "kind": "Secret"}]});
        let less = applied(&["deny-namespace-resource", "p", "", "Secret", "--list", "allow"], spec);
        assert_eq!(less, json!({"namespaceResourceWhitelist": []}), "an empty list permits nothing");
    }
}
