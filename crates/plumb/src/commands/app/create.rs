//! `plumb app create`

use plumb_core::object::Manifest;
use plumb_core::sync::deletion::CASCADE;
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::{Application, to_app};
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::{Value, json};

use crate::context::{Context, change, create};
use crate::edit::file::read_text;
use crate::edit::json_path::map;
use crate::edit::spec::{PolicyFlags, SourceFlags};
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::select::app::target;

/// Create an Application, from options or from a file.
///
/// Examples: `plumb app create web --repo https://example.com/shop.git --path web --dest-namespace web
/// --dest-server https://kubernetes.default.svc`, `plumb app create -f app.yaml --upsert`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `name`, or `namespace/name`.
    #[arg(value_name = "APP")]
    app: Option<String>,
    /// Namespace of the Application [default: the control plane's].
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// A file with Applications in YAML or JSON; `-` is stdin. Flags override the file.
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<String>,
    /// Update an existing Application that differs.
    #[arg(long)]
    upsert: bool,
    /// Delete the app's objects when the Application is deleted.
    #[arg(long)]
    set_finalizer: bool,
    /// A label of the Application: `name=value`.
    #[arg(long, short = 'l', value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// An annotation of the Application: `name=value`.
    #[arg(long, value_name = "NAME=VALUE")]
    annotations: Vec<String>,
    /// A name for the source.
    #[arg(long, value_name = "NAME")]
    source_name: Option<String>,
    /// Validate the spec before writing it.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    validate: bool,
    #[command(flatten)]
    policy: PolicyFlags,
    #[command(flatten)]
    source: SourceFlags,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    args.source.refuse()?;
    let mut objects = match &args.file {
        Some(file) => applications(&read_text(file)?)?,
        None => vec![json!({"apiVersion": Application::API_VERSION, "kind": Application::KIND})],
    };
    if objects.len() > 1 && args.app.is_some() {
        return Err(CommandError::usage("the file has several Applications: leave out the name"));
    }
    for object in &mut objects {
        fill(context, args, object)?;
    }
    let client = context.client().await?;
    if let Some(door) = context.door().filter(|_| !args.validate) {
        door.skip_validation();
    }
    for object in objects {
        write(context, &client, args, object).await?;
    }
    Ok(ExitCode::Success)
}

fn applications(text: &str) -> Result<Vec<Value>, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read the file", error))?;
    let objects: Vec<Value> =
        documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect();
    for object in &objects {
        if object.get("kind").and_then(Value::as_str) != Some(Application::KIND) {
            return Err(CommandError::usage("the file has an object that is not an Application"));
        }
    }
    if objects.is_empty() { Err(CommandError::usage("the file is empty")) } else { Ok(objects) }
}

/// Writes the flags over the object of the file.
fn fill(context: &Context, args: &Args, object: &mut Value) -> Result<(), CommandError> {
    let in_file = |object: &Value, field: &str| {
        object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).map(str::to_owned)
    };
    let name = args.app.clone().or_else(|| in_file(object, "name"));
    let name = name.ok_or_else(|| CommandError::usage("the application has no name"))?;
    let namespace = args.app_namespace.clone().or_else(|| in_file(object, "namespace"));
    let target = target(context, &name, namespace.as_deref());
    let root = map(object);
    root.remove("status");
    let metadata = map(root.entry("metadata").or_insert(Value::Null));
    metadata.insert("name".to_owned(), json!(target.name));
    metadata.insert("namespace".to_owned(), json!(target.namespace));
    for (field, flag, given) in
        [("labels", "--label", &args.label), ("annotations", "--annotations", &args.annotations)]
    {
        for text in given {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| CommandError::usage(format!("{flag} {text}: expected NAME=VALUE")))?;
            map(metadata.entry(field).or_insert(Value::Null)).insert(key.to_owned(), json!(value));
        }
    }
    if args.set_finalizer {
        metadata.insert("finalizers".to_owned(), json!([CASCADE]));
    }
    let spec = root.entry("spec").or_insert(json!({}));
    map(spec).entry("project").or_insert(json!("default"));
    map(spec).entry("destination").or_insert(json!({}));
    args.policy.apply(spec)?;
    if !args.source.is_empty() || args.source_name.is_some() {
        let source = map(spec).entry("source").or_insert(json!({}));
        args.source.apply(source)?;
        if let Some(name) = &args.source_name {
            map(source).insert("name".to_owned(), json!(name));
        }
    }
    Ok(())
}

async fn write(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    object: Value,
) -> Result<(), CommandError> {
    let manifest =
        Manifest::new(object).map_err(|error| CommandError::because("read the application", error))?;
    if args.validate {
        validate(&manifest)?;
    }
    let target = Target::of(&manifest).ok_or_else(|| CommandError::usage("the application has no name"))?;
    let existing = client
        .get_at(&target.gvk, target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read application {}", target.name), error))?;
    let result = match existing {
        None => {
            create(client, &manifest).await?;
            "created"
        }
        Some(existing) if is_up_to_date(&existing, &manifest) => "unchanged",
        Some(_) if !args.upsert => {
            return Err(CommandError::new(format!(
                "application {} exists and its spec is different, use upsert flag to force update",
                target.name
            ))
            .hint("--upsert updates it"));
        }
        Some(_) => {
            let mut patch = json!({"spec": null});
            change_to(&mut patch, &manifest);
            let patch = json!([
                {"op": "replace", "path": "/spec", "value": patch.get("spec")},
                {"op": "add", "path": "/metadata/labels", "value": manifest.labels()},
                {"op": "add", "path": "/metadata/annotations", "value": manifest.annotations()},
            ]);
            change(client, &target, &Patch::Json(patch)).await?;
            "updated"
        }
    };
    context.out.print(&format!("application '{}' {result}", target.name));
    Ok(())
}

fn change_to(patch: &mut Value, wanted: &Manifest) {
    map(patch).insert("spec".to_owned(), wanted.value().get("spec").cloned().unwrap_or_default());
}

/// True if the existing Application has the wanted spec, labels and annotations. It may have further metadata.
fn is_up_to_date(existing: &Manifest, wanted: &Manifest) -> bool {
    let same_spec = match (Application::from_json(existing.value()), Application::from_json(wanted.value())) {
        (Ok(existing), Ok(wanted)) => existing.spec.normalized() == wanted.spec.normalized(),
        _ => existing.value().get("spec") == wanted.value().get("spec"),
    };
    same_spec
        && wanted.labels().iter().all(|(key, text)| existing.label(key) == Some(text))
        && wanted.annotations().iter().all(|(key, text)| existing.annotation(key) == Some(text))
}

/// Validates what needs neither Git nor the cluster. The engine reports the rest in the conditions of the app.
fn validate(manifest: &Manifest) -> Result<(), CommandError> {
    let name = manifest.name().unwrap_or_default();
    let application = Application::from_json(manifest.value())
        .map_err(|error| CommandError::because(format!("parse application {name}"), error))?;
    match to_app(&application) {
        Ok(_) => Ok(()),
        Err(problems) => {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Err(CommandError::usage(format!("application {name} is invalid: {}", texts.join("; ")))
                .hint("--validate=false writes it anyway"))
        }
    }
}
