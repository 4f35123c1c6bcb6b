//! Class K: fields that the API server does not know, or sets itself.

use serde_json::Value;

use super::app::Item;
use super::{LintApp, LintFinding, LintRule, Severity};
use crate::compare::{Aside, compare};
use crate::normalize::{is_kept_annotation, is_kept_metadata, manifest_to_apply};
use crate::object::FieldPath;
use crate::schema::SchemaSet;

pub(super) fn check(app: &LintApp<'_>, schemas: &SchemaSet) -> Vec<LintFinding> {
    let items = app.items();
    items.flat_map(|item| unknown(app, &item, schemas).into_iter().chain(kept(app, &item, schemas))).collect()
}

/// One finding per field: each has its own line and its own typo.
fn unknown(app: &LintApp<'_>, item: &Item<'_>, schemas: &SchemaSet) -> Vec<LintFinding> {
    let Some(kind) = schemas.kind(&item.manifest.gvk()) else { return Vec::new() };
    let aside = Aside { status: kind.has_status_subresource };
    // What the API server would keep of it: what is missing there, it does not know.
    let kept = manifest_to_apply(item.manifest, schemas);
    let comparison = compare(item.manifest, &kept, Some(kind), aside);
    let what = format!("{} {}", item.manifest.api_version(), item.manifest.kind());
    let finding = |message: String, fix: String, path: &FieldPath| {
        LintFinding::new(LintRule::RejectedField, app.name, message, fix)
            .of(item.key(), item.origin)
            .at(vec![path.clone()])
    };
    let unknown = comparison.unknown.iter().map(|(path, nearest)| {
        let fix = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "fix or remove the line".to_owned(),
        };
        finding(format!("{path} is not a field of {what}"), fix, path)
    });
    let twice = comparison.duplicates.iter().map(|path| {
        let message = format!("{path} names an item twice: the API server refuses the object");
        finding(message, "remove or rename one of them".to_owned(), path)
    });
    unknown.chain(twice).collect()
}

fn kept(app: &LintApp<'_>, item: &Item<'_>, schemas: &SchemaSet) -> Option<LintFinding> {
    let value = item.manifest.value();
    let root = FieldPath::root();
    let metadata = root.field("metadata");
    let fields = value.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<FieldPath> = fields
        .filter(|(name, value)| is_kept_metadata(name) && !value.is_null())
        .map(|(name, _)| metadata.field(name.as_str()))
        .collect();
    let annotations = item.manifest.annotations();
    let annotations = annotations.keys().filter(|key| is_kept_annotation(key));
    found.extend(annotations.map(|key| metadata.field("annotations").field(*key)));
    let has_status = schemas.kind(&item.manifest.gvk()).is_none_or(|kind| kind.has_status_subresource);
    if has_status && value.get("status").is_some_and(|status| !status.is_null()) {
        found.push(root.field("status"));
    }
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let message = format!("only the API server or a controller sets {}", shown.join(", "));
    Some(
        LintFinding::new(LintRule::RejectedField, app.name, message, "remove the lines")
            .of(item.key(), item.origin)
            .at(found)
            .with_severity(Severity::Warning),
    )
}
