//! `/api/badge`: the state of an Application or of a project as a picture for pages of others. Nobody logs in for it, so it
//! exists only where the settings turn it on.

use http::{HeaderValue, Response, StatusCode, header};
use plumb_api::query_pairs;
use plumb_engine::Leader;
use serde_json::Value;

use super::rest::text;
use crate::body::AnswerBody;
use crate::state::State;

const GREEN: &str = "#2da44e";
const BLUE: &str = "#1f6feb";
const YELLOW: &str = "#bf8700";
const RED: &str = "#cf222e";
const PURPLE: &str = "#8250df";
const GREY: &str = "#57606a";
/// Letters of a commit, unless the request asks for all of them.
const SHORT: usize = 7;

/// One part of a badge: its text and its colour.
type Part = (String, &'static str);

/// The picture. `leader` is `None` where the state is not known now.
pub(crate) fn answer(state: &State, leader: Option<&Leader>, query: &str) -> Response<AnswerBody> {
    let value = |name: &str| query_pairs(query).find(|(key, _)| key == name).map(|(_, value)| value);
    let (name, namespace) = (value("name").unwrap_or_default(), value("namespace").unwrap_or_default());
    let projects: Vec<String> =
        query_pairs(query).filter(|(key, _)| key == "project").map(|(_, value)| value).collect();
    if [&name, &namespace].into_iter().chain(&projects).any(|name| !is_name(name)) {
        return text(StatusCode::BAD_REQUEST, "invalid name");
    }
    let is_on = state.setting("statusbadge.enabled") == "true";
    let parts = match leader.filter(|_| is_on) {
        None => vec![("Unknown".to_owned(), GREY)],
        Some(leader) if !name.is_empty() => {
            let namespace = if namespace.is_empty() { state.namespace() } else { &namespace };
            let app = leader.app(namespace, &name).filter(|_| leader.permits_namespace(namespace));
            let is_set = |name: &str| value(name).is_some_and(|value| value == "true");
            let is_asked =
                |app: &Value| projects.is_empty() || projects.contains(&crate::call::project_of(app));
            match app.filter(is_asked) {
                Some(app) => {
                    of_app(&app, is_set("revision"), is_set("keepFullRevision"), is_set("showAppName"))
                }
                None => vec![("Not Found".to_owned(), GREY)],
            }
        }
        Some(leader) => of_projects(leader, &projects),
    };
    let width = value("width").and_then(|width| width.parse().ok());
    let mut answer = Response::new(AnswerBody::full(picture(&parts, width)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}

/// Could an object have this name? None is one, too.
fn is_name(name: &str) -> bool {
    name.len() <= 253
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
}

fn of_app(app: &Value, has_revision: bool, is_whole: bool, has_name: bool) -> Vec<Part> {
    let text = |path: &str| app.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut parts = Vec::new();
    if has_name {
        parts.push((text("/metadata/name"), GREY));
    }
    parts.push(health(&text("/status/health/status")));
    parts.push(sync(&text("/status/sync/status")));
    let revision = text("/status/operationState/syncResult/revision");
    if has_revision && !revision.is_empty() {
        let letters = if is_whole { usize::MAX } else { SHORT };
        parts.push((format!("({})", revision.chars().take(letters).collect::<String>()), GREY));
    }
    parts
}

/// A project is as healthy as the worst of its Applications.
fn of_projects(leader: &Leader, projects: &[String]) -> Vec<Part> {
    let (mut is_healthy, mut is_synced, mut n) = (true, true, 0);
    for app in leader.apps() {
        let Some(head) = app.head().filter(|head| projects.iter().any(|name| name == head.project())) else {
            continue;
        };
        let app = head.to_json();
        let is = |path: &str, wanted: &str| app.pointer(path).and_then(Value::as_str) == Some(wanted);
        is_healthy &= is("/status/health/status", "Healthy");
        is_synced &= is("/status/sync/status", "Synced");
        n += 1;
    }
    if n == 0 {
        return vec![("Not Found".to_owned(), GREY)];
    }
    vec![
        health(if is_healthy { "Healthy" } else { "Degraded" }),
        sync(if is_synced { "Synced" } else { "OutOfSync" }),
    ]
}

fn health(status: &str) -> Part {
    let known = [
        ("Healthy", GREEN),
        ("Progressing", BLUE),
        ("Suspended", PURPLE),
        ("Degraded", RED),
        ("Missing", YELLOW),
    ];
    known_or(status, &known)
}

fn sync(status: &str) -> Part {
    known_or(status, &[("Synced", GREEN), ("OutOfSync", YELLOW)])
}

fn known_or(status: &str, known: &[(&str, &'static str)]) -> Part {
    let found = known.iter().find(|(word, _)| *word == status);
    found.map_or_else(|| ("Unknown".to_owned(), GREY), |(word, colour)| ((*word).to_owned(), *colour))
}

/// The parts side by side.
fn picture(parts: &[Part], width: Option<u32>) -> String {
    let (mut shapes, mut title, mut at) = (String::new(), String::new(), 0);
    for (word, colour) in parts {
        let word = word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let wide = 7 * word.chars().count() + 16;
        let middle = at + wide / 2;
        let shape = format!("<rect x=\"{at}\" width=\"{wide}\" height=\"20\" fill=\"{colour}\"/>");
        shapes.push_str(&shape);
        let label = format!("<text x=\"{middle}\" y=\"14\" text-anchor=\"middle\">{word}</text>");
        shapes.push_str(&label);
        title.push_str(if title.is_empty() { "" } else { " " });
        title.push_str(&word);
        at += wide;
    }
    let shown = width.map_or_else(|| at.to_string(), |width| width.to_string());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{shown}\" height=\"20\" viewBox=\"0 0 {at} 20\" role=\"img\">\
         <title>{title}</title><g fill=\"#fff\" font-family=\"Verdana,sans-serif\" font-size=\"11\">{shapes}</g></svg>"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_badge_says_how_an_application_is() {
        let app = json!({"metadata": {"name": "shop"}, "status": {"health": {"status": "Healthy"},
            "sync": {"status": "OutOfSync"}, "operationState": {"syncResult": {"revision": "0123456789"}}}});
        let words = |parts: Vec<Part>| parts.into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(" ");
        assert_eq!(words(of_app(&app, false, false, false)), "Healthy OutOfSync");
        assert_eq!(words(of_app(&app, true, false, true)), "shop Healthy OutOfSync (0123456)");
        assert_eq!(words(of_app(&app, true, true, false)), "Healthy OutOfSync (0123456789)");
        assert_eq!(words(of_app(&json!({}), true, false, false)), "Unknown Unknown");
    }

    #[test]
    fn nothing_of_others_is_markup() {
        let shown = picture(&[("<script>&".to_owned(), GREY)], Some(90));
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;&amp;"), "{shown}");
        assert!(shown.contains("width=\"90\""), "{shown}");
        let app = json!({"status": {"health": {"status": "<x>"}, "sync": {"status": "<x>"}}});
        assert!(!picture(&of_app(&app, true, true, true), None).contains("<x>"));
    }

    #[test]
    fn only_names_of_objects_are_looked_up() {
        assert!(is_name("shop-1.x") && is_name(""));
        for wrong in ["a/b", "A", "<x>", "a b"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
