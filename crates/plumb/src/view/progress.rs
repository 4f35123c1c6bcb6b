//! How a sync goes on: drawn anew on a terminal, told line by line elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use plumb_crd::Application;
use plumb_kube::{ObjectEvent, ObjectStream};
use unicode_width::UnicodeWidthStr as _;

use super::describe;
use super::rows::{ObjectRow, object_rows};
use crate::output::{Output, table};

/// What was told already.
#[derive(Debug)]
pub(crate) struct Progress {
    out: Output,
    told: HashMap<(String, String, String, String, String), ObjectRow>,
    message: String,
    begun: bool,
    /// Lines that are on the screen and are overwritten by the next ones.
    drawn: usize,
    /// What was drawn last, to draw it again when time has passed.
    last: Option<Application>,
}

/// So many objects are shown while they are under way.
const SHOWN: usize = 12;
/// On a terminal, how often the seconds go on.
const TICK: Duration = Duration::from_secs(1);

impl Progress {
    /// Nothing told yet. `before`: what was there at the beginning is no news.
    pub(crate) fn new(out: Output, before: &Application) -> Self {
        let told = object_rows(before).into_iter().map(|state| (state.key(), state)).collect();
        Self { out, told, message: String::new(), begun: false, drawn: 0, last: None }
    }

    /// Tells what is new.
    pub(crate) fn tell(&mut self, application: &Application, now: Timestamp) {
        if self.out.is_terminal() {
            self.draw(application, now);
            self.last = Some(application.clone());
        } else {
            self.add(application, now);
        }
    }

    /// The next event. While there is none, the seconds on the terminal go on.
    pub(crate) async fn next(&mut self, events: &mut ObjectStream) -> Option<ObjectEvent> {
        if !self.out.is_terminal() {
            return events.next().await;
        }
        loop {
            if let Ok(event) = tokio::time::timeout(TICK, events.next()).await {
                return event;
            }
            if let Some(application) = self.last.take() {
                self.draw(&application, Timestamp::now());
                self.last = Some(application);
            }
        }
    }

    /// A line for the person in front of it, above what is drawn.
    pub(crate) fn note(&mut self, line: &str) {
        self.end();
        self.out.note(line);
    }

    /// The last word: nothing is overwritten any more.
    pub(crate) fn end(&mut self) {
        if self.drawn > 0 {
            self.out.print_raw(&clear(self.drawn));
            self.drawn = 0;
        }
    }

    /// One line per object that changed, as argocd prints them, and one per new message of the operation.
    fn add(&mut self, application: &Application, now: Timestamp) {
        let time = now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        for state in object_rows(application) {
            if self.told.get(&state.key()) == Some(&state) {
                continue;
            }
            if !self.begun {
                self.begun = true;
                self.out.print(&line(&[
                    "TIMESTAMP",
                    "GROUP",
                    "KIND",
                    "NAMESPACE",
                    "NAME",
                    "STATUS",
                    "HEALTH",
                    "HOOK",
                    "MESSAGE",
                ]));
            }
            let row = state.row();
            let cells: Vec<&str> =
                std::iter::once(time.as_str()).chain(row.iter().map(String::as_str)).collect();
            self.out.print(&line(&cells));
            self.told.insert(state.key(), state);
        }
        if let Some(state) = &application.status.operation_state
            && !state.message.is_empty()
            && state.message != self.message
        {
            self.out.note(&format!("{}: {}", state.phase, state.message));
            self.message.clone_from(&state.message);
        }
    }

    /// What is under way now, in place of what was drawn before.
    fn draw(&mut self, application: &Application, now: Timestamp) {
        let lines = picture(application, now, SHOWN);
        self.out.print_raw(&format!("{}{}\n", clear(self.drawn), self.out.drawn(&lines)));
        self.drawn = lines.len();
    }
}

/// How it stands, in a few lines: the operation or the state, how much is done, and what is not.
fn picture(application: &Application, now: Timestamp, shown: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let all = object_rows(application);
    let open: Vec<&ObjectRow> = all.iter().filter(|state| is_open(state)).collect();
    let running = application.status.operation_state.as_ref().filter(|state| state.finished_at.is_none());
    if let Some(state) = running {
        let message = if state.message.is_empty() { String::new() } else { format!(": {}", state.message) };
        lines.push(format!("{} for {}{message}", state.phase, describe::age(state.started_at, now)));
    } else if application.operation.is_some() {
        lines.push("waiting for the engine to begin".to_owned());
    } else {
        let (sync, health) = (&application.status.sync, &application.status.health);
        let message = if health.message.is_empty() { String::new() } else { format!(": {}", health.message) };
        lines.push(format!("{} and {}{message}", known(&sync.status), known(&health.status)));
    }
    if !all.is_empty() {
        lines.push(format!("{} of {} objects done", all.len() - open.len(), all.len()));
    }
    let rows: Vec<Vec<String>> = open.iter().take(shown).map(|state| state.row()).collect();
    if !rows.is_empty() {
        lines.extend(table(&super::rows::COLUMNS, &rows).lines().map(str::to_owned));
    }
    if open.len() > shown {
        lines.push(format!("… and {} more", open.len() - shown));
    }
    lines
}

fn known(status: &str) -> &str {
    if status.is_empty() { "Unknown" } else { status }
}

/// Is there still something to do about it, or to wait for?
fn is_open(state: &ObjectRow) -> bool {
    if state.hook.is_empty() {
        !matches!(state.status.as_str(), "Synced" | "Pruned" | "PruneSkipped")
            || matches!(state.health.as_str(), "Progressing" | "Degraded" | "Missing" | "Unknown")
    } else {
        state.status != "Succeeded"
    }
}

/// Back to the first of so many lines, and nothing below it.
fn clear(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// Columns of a fixed least width: lines that come one after the other cannot know how wide the next one is.
fn line(cells: &[&str]) -> String {
    const WIDTHS: [usize; 8] = [25, 8, 12, 12, 16, 9, 11, 8];
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        text.push_str(cell);
        if let Some(width) = WIDTHS.get(index) {
            let blanks = width.saturating_sub(cell.width()) + 2;
            text.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn(status: &serde_json::Value, operation: &serde_json::Value) -> String {
        let application = Application::from_json(&json!({
            "metadata": {"name": "a"}, "spec": {"destination": {}, "project": ""},
            "operation": operation, "status": status,
        }))
        .unwrap();
        picture(&application, "2026-01-01T00:00:05Z".parse().unwrap(), 1).join("\n")
    }

    #[test]
    fn a_sync_shows_what_is_open_and_why() {
        let object = |name: &str, status: &str, health: &str| {
            json!({"version": "v1", "kind": "Pod", "name": name, "namespace": "n", "status": status,
                "health": {"status": health}})
        };
        let status = json!({
            "operationState": {
                "operation": {}, "phase": "Running", "startedAt": "2026-01-01T00:00:00Z",
                "message": "waiting for healthy state of Pod/b: Progressing",
            },
            "resources": [
                object("a", "Synced", "Healthy"), object("b", "Synced", "Progressing"),
                object("c", "OutOfSync", "Missing"),
            ],
        });
        assert_eq!(
            drawn(&status, &json!({"sync": {}})),
            "Running for 5s: waiting for healthy state of Pod/b: Progressing\n\
             1 of 3 objects done\n\
             GROUP  KIND  NAMESPACE  NAME  STATUS  HEALTH       HOOK  MESSAGE\n\
             \x20      Pod   n          b     Synced  Progressing\n\
             … and 1 more"
        );
    }

    #[test]
    fn an_operation_of_yesterday_is_not_under_way() {
        let status = json!({
            "sync": {"status": "Synced"}, "health": {"status": "Progressing", "message": "pod x"},
            "operationState": {"operation": {}, "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
                "finishedAt": "2026-01-01T00:00:01Z"},
        });
        assert_eq!(drawn(&status, &json!(null)), "Synced and Progressing: pod x");
        assert_eq!(drawn(&json!({}), &json!({"sync": {}})), "waiting for the engine to begin");
    }
}
