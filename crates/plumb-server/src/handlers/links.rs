//! Deep links: links to other programs, which the settings have as templates.

use std::sync::Arc;

use plumb_api::Status;
use plumb_core::yaml;
use plumb_gotemplate::{Limits, Options, Scope, Template, Value as GoValue};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::mask::masks_for_one;
use super::resource::{in_tree, live, without_managed_fields};
use super::{cluster, project};
use crate::call::{Answer, Call};
use crate::random;

/// The annotation of an Application with the address of the instance that manages it.
const MANAGED_BY: &str = "/metadata/annotations/argocd.argoproj.io~1managed-by-url";

/// What all links of one request may cost together.
const LIMITS: Limits = Limits { steps: 200_000, bytes: 1 << 20, depth: 60 };

/// The links of an Application.
pub(super) async fn of_app(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let mut facts = about_app(&call, &app.value).await?;
    if !facts.contains_key("managedByURL") {
        let own = call.shared.state.setting("url");
        if !own.is_empty() {
            facts.insert("managedByURL".to_owned(), json!(own));
        }
    }
    shown(&call, "application.links", facts)
}

/// The links of an object of an Application.
pub(super) async fn of_resource(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?;
    let (key, _) = in_tree(&call, app)?;
    let object = live(&call, app, &key).await?;
    let mut facts = about_app(&call, &app.value).await?;
    let masks = masks_for_one(&call, &app.typed()?, &object).await?;
    facts.insert("resource".to_owned(), without_managed_fields(masks.hide(object.into_value())));
    facts.insert("project".to_owned(), project::for_links(&call, &app.project)?);
    shown(&call, "resource.links", facts)
}

/// The links of a project.
pub(super) async fn of_project(call: Arc<Call>) -> Result<Answer, Status> {
    let facts = Map::from_iter([("project".to_owned(), project::for_links(&call, call.text("name"))?)]);
    shown(&call, "project.links", facts)
}

/// What templates may use of an Application: itself, and its cluster without credentials.
async fn about_app(call: &Call, app: &Value) -> Result<Map<String, Value>, Status> {
    let app = without_managed_fields(app.clone());
    let mut facts = Map::new();
    if let Some(cluster) = cluster::for_links(call, &app).await? {
        facts.insert("cluster".to_owned(), cluster);
    }
    let managed_by = app.pointer(MANAGED_BY).and_then(Value::as_str).filter(|url| is_web_address(url));
    if let Some(url) = managed_by {
        facts.insert("managedByURL".to_owned(), json!(url));
    }
    facts.insert("application".to_owned(), app.clone());
    facts.insert("app".to_owned(), app);
    Ok(facts)
}

fn is_web_address(url: &str) -> bool {
    ["http://", "https://"].into_iter().any(|scheme| url.starts_with(scheme))
}

fn shown(call: &Call, setting: &str, facts: Map<String, Value>) -> Result<Answer, Status> {
    let text = call.shared.state.setting(setting);
    if text.is_empty() {
        return Ok(Answer::One(json!({"items": []})));
    }
    let seed = random::bytes()?;
    let (items, problems) = evaluate(&text, &Value::Object(facts), seed)
        .map_err(|why| Status::precondition(format!("cannot read {setting} of argocd-cm: {why}")))?;
    for problem in problems {
        warn!(setting, problem, "a deep link is left out");
    }
    Ok(Answer::One(json!({"items": items})))
}

/// The links of a setting, and why some are left out.
fn evaluate(text: &str, facts: &Value, seed: [u8; 32]) -> Result<(Vec<Value>, Vec<String>), String> {
    let document = yaml::parse_first(text, &yaml::Limits::default()).map_err(|error| error.to_string())?;
    let links = document.map(|document| document.value).unwrap_or_default();
    let scope = Scope::new(LIMITS, jiff::Timestamp::now(), seed);
    let facts = GoValue::from_json(&scope, facts).map_err(|fault| fault.0)?;
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    for link in links.as_array().into_iter().flatten() {
        let text = |field: &str| link.get(field).and_then(Value::as_str);
        let title = text("title").unwrap_or_default();
        if text("if").is_some() {
            problems.push(format!("link {title:?} has a condition (`if`), which plumb cannot evaluate"));
            continue;
        }
        let url = Template::parse("deep-link", text("url").unwrap_or_default(), &LIMITS)
            .and_then(|template| template.render(&scope, Options::default(), &facts));
        match url {
            Ok(url) if is_web_address(&url) => {
                let mut item = json!({"title": title, "url": url});
                for (field, shown) in [("description", "description"), ("icon.class", "iconClass")] {
                    if let Some(value) = text(field) {
                        item[shown] = json!(value);
                    }
                }
                items.push(item);
            }
            Ok(_) => problems.push(format!("link {title:?} leads to no http or https address")),
            Err(error) => problems.push(format!("link {title:?}: {error}")),
        }
    }
    Ok((items, problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_templates() {
        let text = "
- url: '{{.managedByURL}}/applications/{{.app.metadata.name}}'
  title: Managed
  description: Where it is managed
  icon.class: fa-book
- {url: 'https://example.com', title: Conditional, if: 'application.spec.project == \"x\"'}
- {url: 'javascript:alert({{.app.metadata.name}})', title: Script}
- {url: '{{.app.metadata.name', title: Broken}
";
        let facts = json!({"managedByURL": "https://b.example.com", "app": {"metadata": {"name": "shop"}}});
        let (items, problems) = evaluate(text, &facts, [0; 32]).unwrap();
        let expected = json!([{"title": "Managed", "url": "https://b.example.com/applications/shop",
            "description": "Where it is managed", "iconClass": "fa-book"}]);
        assert_eq!(Value::Array(items), expected);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(evaluate("a: [", &facts, [0; 32]).is_err());
    }
}
