//! `plumb appset create`

use plumb_core::object::{Manifest, merge_patch};
use plumb_core::yaml::{Limits, parse_documents};
use plumb_crd::ApplicationSet;
use plumb_kube::{ClusterClient, Patch, Target};
use serde_json::{Map, Value, json};

use super::set::{parse, read, wait};
use crate::context::{Context, change, create};
use crate::edit::file::read_text;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;
use crate::view::describe;

/// Asks the controller for a look at Git.
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";

/// Create `ApplicationSets` from files.
///
/// Example: `plumb appset create teams.yaml --upsert`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with `ApplicationSets`; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Change a set that exists and is different.
    #[arg(long)]
    upsert: bool,
    /// Only check the files.
    #[arg(long)]
    dry_run: bool,
    /// Wait until the Applications are generated. A set with an error is waited for until the error is gone.
    #[arg(long)]
    wait: bool,
    /// Output format.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
}

/// The sets in a file.
pub(super) fn sets_in(text: &str) -> Result<Vec<Value>, CommandError> {
    let documents = parse_documents(text, &Limits::default())
        .map_err(|error| CommandError::because("read the file", error))?;
    let values = documents.into_iter().map(|document| document.value);
    let sets: Vec<Value> = values.filter(|value| !value.is_null()).collect();
    if sets.is_empty() {
        return Err(CommandError::usage("the file is empty"));
    }
    if sets.iter().any(|set| set["kind"] != ApplicationSet::KIND) {
        return Err(CommandError::usage("the file has an object that is not an ApplicationSet"));
    }
    Ok(sets)
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut manifests = Vec::new();
    for file in &args.files {
        for mut set in sets_in(&read_text(file)?)? {
            if let Some(object) = set.as_object_mut() {
                object.remove("status");
            }
            if set["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
                set["metadata"]["namespace"] = json!(context.namespace());
            }
            let manifest =
                Manifest::new(set).map_err(|error| CommandError::because("read the set", error))?;
            let name = parse(&manifest)?.metadata.name;
            if name.is_empty() {
                return Err(CommandError::usage("the ApplicationSet has no name"));
            }
            manifests.push(manifest);
        }
    }
    let client = context.client().await?;
    for manifest in manifests {
        write(context, &client, args, &manifest).await?;
    }
    Ok(ExitCode::Success)
}

async fn write(
    context: &Context,
    client: &ClusterClient,
    args: &Args,
    manifest: &Manifest,
) -> Result<(), CommandError> {
    let target = Target::of(manifest).ok_or_else(|| CommandError::usage("the ApplicationSet has no name"))?;
    let name = &target.name;
    let found = client.get_at(&target.gvk, target.namespace.as_deref(), name).await;
    let found = found.map_err(|error| CommandError::api(format!("read ApplicationSet {name}"), error))?;
    let result = match found {
        _ if args.dry_run => "valid",
        None => {
            create(client, manifest).await?;
            "created"
        }
        Some(live) => match upsert_patch(live.value(), manifest.value()) {
            None => "unchanged",
            Some(_) if !args.upsert => {
                return Err(CommandError::new(format!(
                    "ApplicationSet {name} exists and its spec is different, use upsert flag to force update"
                ))
                .hint("--upsert updates it"));
            }
            Some(mut patch) => {
                if args.wait {
                    // The controller removes it after a run: only then does the status tell about this change.
                    patch["metadata"]["annotations"][REFRESH] = json!("true");
                }
                change(client, &target, &Patch::Merge(patch)).await?;
                "updated"
            }
        },
    };
    if args.wait && !args.dry_run {
        wait(context, client, &target, |set| set.is_some_and(is_up_to_date)).await?;
    }
    match args.output {
        Format::Wide => context.out.print(&format!("ApplicationSet '{name}' {result}")),
        Format::Name => context.out.print(name),
        Format::Json | Format::Yaml if args.dry_run => context.out.object(args.output, manifest.value())?,
        Format::Json | Format::Yaml => {
            let live = read(client, &target).await?;
            context.out.object(args.output, &describe::readable(&live))?;
        }
    }
    Ok(())
}

/// What makes the live set the one of the file; `None` if nothing has to change. As in Argo CD, labels and annotations
/// that the file does not name stay.
fn upsert_patch(live: &Value, sent: &Value) -> Option<Value> {
    let mut patch = Map::new();
    if let Some(spec) = merge_patch(&live["spec"], &sent["spec"]) {
        patch.insert("spec".to_owned(), spec);
    }
    let (live, sent) = (&live["metadata"], &sent["metadata"]);
    let mut metadata = Map::new();
    for field in ["labels", "annotations"] {
        let wanted = sent[field].as_object().into_iter().flatten();
        let changed = wanted.filter(|(key, value)| live[field].get(*key) != Some(*value));
        let changed: Map<String, Value> = changed.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !changed.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(changed));
        }
    }
    let finalizers = |metadata: &Value| metadata["finalizers"].as_array().cloned().unwrap_or_default();
    if !sent["finalizers"].is_null() && finalizers(sent) != finalizers(live) {
        metadata.insert("finalizers".to_owned(), sent["finalizers"].clone());
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Did plumb generate the Applications of what the set says now?
fn is_up_to_date(set: &ApplicationSet) -> bool {
    let mut conditions = set.status.conditions.iter();
    let is_looked_at = !set.metadata.annotations.contains_key(REFRESH);
    is_looked_at
        && conditions
            .any(|condition| condition.condition_type == "ResourcesUpToDate" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upsert_writes_what_the_file_says_and_nothing_else() {
        let live = json!({
            "metadata": {"labels": {"team": "a", "other": "x"}, "annotations": {"of": "others"}, "uid": "u"},
            "spec": {"generators": [], "goTemplate": true},
        });
        let check =
            |sent: Value, expected: Option<Value>| assert_eq!(upsert_patch(&live, &sent), expected, "{sent}");
        let spec = || json!({"generators": [], "goTemplate": true});
        check(json!({"metadata": {"labels": {"team": "a"}}, "spec": spec()}), None);
        check(json!({"metadata": {"finalizers": []}, "spec": spec()}), None);
        check(
            json!({"metadata": {"labels": {"team": "b"}, "annotations": {"n": "1"}}, "spec": spec()}),
            Some(json!({"metadata": {"labels": {"team": "b"}, "annotations": {"n": "1"}}})),
        );
        check(
            json!({"metadata": {"finalizers": ["f"]}, "spec": {"generators": []}}),
            Some(json!({"metadata": {"finalizers": ["f"]}, "spec": {"goTemplate": null}})),
        );
    }
}
