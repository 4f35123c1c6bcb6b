//! `plumb cluster set`

use http::Method;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::edit::json_path::pair;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::remote::query;
use crate::secrets::clusters::find;

/// Change the name, the namespaces, the labels or the annotations of a registered cluster.
///
/// With --namespace, only those namespaces are managed; `*` is all.
///
/// Example: `plumb cluster set production --name prod-east --label tier=gold`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or URL of the cluster.
    cluster: String,
    /// The new name.
    #[arg(long)]
    name: Option<String>,
    /// A label of the cluster: `name=value`. They replace all labels.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    /// An annotation of the cluster: `name=value`. They replace all annotations.
    #[arg(long, value_name = "NAME=VALUE")]
    annotation: Vec<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let one = find(context, &context.client().await?, &args.cluster).await?;
    let mut cluster = json!({"server": one.cluster.server, "name": args.name});
    let mut fields = Vec::new();
    if args.name.is_some() {
        fields.push("name");
    }
    if let Some(text) = context.object_namespace() {
        let names: Vec<&str> = text.split(',').collect();
        cluster["namespaces"] = if names.contains(&"*") { json!([]) } else { json!(names) };
        fields.push("namespaces");
    }
    let given = [("labels", "--label", &args.label), ("annotations", "--annotation", &args.annotation)];
    for (field, flag, texts) in given.into_iter().filter(|(.., texts)| !texts.is_empty()) {
        let pairs =
            texts.iter().map(|text| pair(flag, text).map(|(name, value)| (name.to_owned(), json!(value))));
        cluster[field] = Value::Object(pairs.collect::<Result<Map<_, _>, _>>()?);
        fields.push(field);
    }
    if fields.is_empty() {
        return Err(
            CommandError::usage("nothing to change: no flag given").hint("for example --name or --label")
        );
    }
    let pairs: Vec<(&str, &str)> = fields.into_iter().map(|field| ("updatedFields", field)).collect();
    let path = format!("/api/v1/clusters/{}", query::part(&one.cluster.server));
    context.api().await?.call(Method::PUT, &query::with(&path, &pairs), Some(&cluster)).await?;
    context.out.print(&format!("Cluster '{}' updated", args.cluster));
    Ok(ExitCode::Success)
}
