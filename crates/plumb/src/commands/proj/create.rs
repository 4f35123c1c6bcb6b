//! `plumb proj create`

use plumb_core::object::Manifest;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::AppProject;
use plumb_kube::Patch;
use serde_json::{Value, json};

use crate::context::{Context, change, create};
use crate::edit::file::read_text;
use crate::edit::json_path::map;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::project::{parse, target};

/// Create a project, from options or from a file.
///
/// Examples: `plumb proj create payments --dest https://kubernetes.default.svc,payments --src
/// https://example.com/payments.git`, `plumb proj create -f project.yaml --upsert`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the project.
    #[arg(value_name = "PROJECT")]
    project: Option<String>,
    /// A file with a project in YAML or JSON; `-` is stdin. Flags override the file.
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<String>,
    /// Update an existing project that differs.
    #[arg(long)]
    upsert: bool,
    /// Description of the project.
    #[arg(long)]
    description: Option<String>,
    /// A permitted destination: `SERVER,NAMESPACE`.
    #[arg(long, short = 'd', value_name = "SERVER,NAMESPACE")]
    dest: Vec<String>,
    /// A permitted repository.
    #[arg(long, short = 's', value_name = "REPO")]
    src: Vec<String>,
    /// A namespace whose Applications may use the project.
    #[arg(long, value_name = "NAMESPACE")]
    source_namespaces: Vec<String>,
    /// A permitted cluster-scoped kind: `GROUP/KIND`.
    #[arg(long, value_name = "GROUP/KIND")]
    allow_cluster_resource: Vec<String>,
    /// A forbidden namespaced kind: `GROUP/KIND`.
    #[arg(long, value_name = "GROUP/KIND")]
    deny_namespaced_resource: Vec<String>,
    /// Monitor orphaned objects.
    #[arg(long)]
    orphaned_resources: bool,
    /// Monitor orphaned objects, and add a warning condition to the apps.
    #[arg(long)]
    orphaned_resources_warn: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut object = match &args.file {
        Some(file) => {
            let documents = parse_documents(&read_text(file)?, &Limits::default())
                .map_err(|error| CommandError::because(format!("read {file}"), error))?;
            let object = documents.into_iter().map(|document| document.value).find(|value| !value.is_null());
            object.ok_or_else(|| CommandError::usage(format!("{file} is empty")))?
        }
        None => json!({"apiVersion": AppProject::API_VERSION, "kind": AppProject::KIND}),
    };
    let in_file = object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    let name = args.project.clone().or(in_file);
    let name = name.ok_or_else(|| CommandError::usage("the project has no name"))?;
    fill(context, args, &name, &mut object)?;
    let manifest = Manifest::new(object).map_err(|error| CommandError::because("read the project", error))?;
    parse(&manifest)?;
    let client = context.client().await?;
    let target = target(context, &name);
    let existing = client
        .get_at(&target.gvk, target.namespace.as_deref(), &name)
        .await
        .map_err(|error| CommandError::api(format!("read project {name}"), error))?;
    let result = match existing {
        None => {
            create(&client, &manifest).await?;
            "created"
        }
        Some(existing) if existing.value().get("spec") == manifest.value().get("spec") => "unchanged",
        Some(_) if !args.upsert => {
            return Err(CommandError::new(format!("project {name} already exists and differs"))
                .hint("--upsert updates it"));
        }
        Some(_) => {
            let spec = manifest.value().get("spec");
            let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
            change(&client, &target, &Patch::Json(patch)).await?;
            "updated"
        }
    };
    context.out.print(&format!("project '{name}' {result}"));
    Ok(ExitCode::Success)
}

fn fill(context: &Context, args: &Args, name: &str, object: &mut Value) -> Result<(), CommandError> {
    let root = map(object);
    let metadata = map(root.entry("metadata").or_insert(Value::Null));
    metadata.insert("name".to_owned(), json!(name));
    metadata.insert("namespace".to_owned(), json!(context.namespace()));
    let spec = map(root.entry("spec").or_insert(Value::Null));
    if let Some(description) = &args.description {
        spec.insert("description".to_owned(), json!(description));
    }
    let mut add = |field: &str, entries: Vec<Value>| {
        if !entries.is_empty() {
            spec.insert(field.to_owned(), Value::Array(entries));
        }
    };
    let split = |flag: &str, text: &str, at: char| {
        let wrong = || CommandError::usage(format!("{flag} {text}: expected two parts separated by `{at}`"));
        text.split_once(at).map(|(one, other)| (one.to_owned(), other.to_owned())).ok_or_else(wrong)
    };
    let kind = |flag: &str, text: &String| {
        split(flag, text, '/').map(|(group, kind)| json!({"group": group, "kind": kind}))
    };
    let destination = |text: &String| {
        split("--dest", text, ',')
            .map(|(server, namespace)| json!({"server": server, "namespace": namespace}))
    };
    add("destinations", args.dest.iter().map(destination).collect::<Result<_, _>>()?);
    add("sourceRepos", args.src.iter().map(|text| json!(text)).collect());
    add("sourceNamespaces", args.source_namespaces.iter().map(|text| json!(text)).collect());
    let allowed = args.allow_cluster_resource.iter().map(|text| kind("--allow-cluster-resource", text));
    add("clusterResourceWhitelist", allowed.collect::<Result<_, _>>()?);
    let denied = args.deny_namespaced_resource.iter().map(|text| kind("--deny-namespaced-resource", text));
    add("namespaceResourceBlacklist", denied.collect::<Result<_, _>>()?);
    if args.orphaned_resources || args.orphaned_resources_warn {
        spec.insert("orphanedResources".to_owned(), json!({"warn": args.orphaned_resources_warn}));
    }
    Ok(())
}
