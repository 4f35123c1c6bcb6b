//! The progress of a sync: redrawn on a terminal, printed line by line elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use plumb_core::text::one_line;
use plumb_crd::Application;
use plumb_kube::{ObjectEvent, ObjectStream};
use unicode_width::UnicodeWidthStr as _;

use super::describe;
use super::rows::{ObjectRow, object_rows};
use crate::output::{Format, Output, table};

/// The state of the progress output.
#[derive(Debug)]
pub(crate) struct Progress {
    out: Output,
    /// The format of the result. Before data, nothing is printed on stdout.
    result: Format,
    printed: HashMap<(String, String, String, String, String), ObjectRow>,
    message: String,
    has_header: bool,
    /// How many lines on the screen the next drawing overwrites.
    drawn: usize,
    /// The Application that was drawn last, to update its elapsed time.
    last: Option<Application>,
}

/// The most objects that are shown.
const SHOWN: usize = 12;
/// How often the elapsed time is updated on a terminal.
const TICK: Duration = Duration::from_secs(1);

impl Progress {
    /// Starts from the state `before`: only changes from it are printed.
    pub(crate) fn new(out: Output, result: Format, before: &Application) -> Self {
        let printed = object_rows(before).into_iter().map(|state| (state.key(), state)).collect();
        Self { out, result, printed, message: String::new(), has_header: false, drawn: 0, last: None }
    }

    /// True if the state is redrawn in place.
    fn is_drawn(&self) -> bool {
        self.out.is_terminal() && !self.result.is_data()
    }

    /// Shows what has changed.
    pub(crate) fn show(&mut self, application: &Application, now: Timestamp) {
        if self.is_drawn() {
            self.draw(application, now);
            self.last = Some(application.clone());
            return;
        }
        if !self.result.is_data() {
            self.add(application, now);
        }
        self.say(application);
    }

    /// The next event. Meanwhile the elapsed time on the terminal is updated.
    pub(crate) async fn next(&mut self, events: &mut ObjectStream) -> Option<ObjectEvent> {
        if !self.is_drawn() {
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

    /// Prints a line to stderr, above what is drawn.
    pub(crate) fn note(&mut self, line: &str) {
        self.end();
        self.out.note(line);
    }

    /// Removes what is drawn.
    pub(crate) fn end(&mut self) {
        if self.drawn > 0 {
            self.out.print_raw(&clear(self.drawn));
            self.drawn = 0;
        }
    }

    /// One line per object that changed, as argocd prints them.
    fn add(&mut self, application: &Application, now: Timestamp) {
        let time = now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        for state in object_rows(application) {
            if self.printed.get(&state.key()) == Some(&state) {
                continue;
            }
            if !self.has_header {
                self.has_header = true;
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
            self.printed.insert(state.key(), state);
        }
    }

    /// Says a new message of the operation.
    fn say(&mut self, application: &Application) {
        if let Some(state) = &application.status.operation_state
            && !state.message.is_empty()
            && state.message != self.message
        {
            self.out.note(&one_line(&format!("{}: {}", state.phase, state.message)));
            self.message.clone_from(&state.message);
        }
    }

    /// Draws the current state over the previous one.
    fn draw(&mut self, application: &Application, now: Timestamp) {
        let lines = picture(application, now, SHOWN);
        self.out.print_raw(&format!("{}{}\n", clear(self.drawn), self.out.drawn(&lines)));
        self.drawn = lines.len();
    }
}

/// The operation or the state, how many objects are done, and those that are not.
fn picture(application: &Application, now: Timestamp, shown: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let all = object_rows(application);
    let open: Vec<&ObjectRow> = all.iter().filter(|state| is_open(state)).collect();
    let running = application.status.operation_state.as_ref().filter(|state| state.finished_at.is_none());
    if let Some(state) = running {
        let message = if state.message.is_empty() { String::new() } else { format!(": {}", state.message) };
        lines.push(format!("{} for {}{message}", state.phase, describe::age(state.started_at, now)));
    } else if application.operation.is_some() {
        lines.push("waiting for the engine to start".to_owned());
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

/// True if the object is not synced or not healthy yet.
fn is_open(state: &ObjectRow) -> bool {
    if state.hook.is_empty() {
        !matches!(state.status.as_str(), "Synced" | "Pruned" | "PruneSkipped")
            || matches!(state.health.as_str(), "Progressing" | "Degraded" | "Missing" | "Unknown")
    } else {
        state.status != "Succeeded"
    }
}

/// Escape sequences that move up by this many lines and clear everything below.
fn clear(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// Columns of a fixed minimum width: the width of later lines is not known yet.
fn line(cells: &[&str]) -> String {
    const WIDTHS: [usize; 8] = [25, 8, 12, 12, 16, 9, 11, 8];
    let mut text = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let cell = one_line(cell);
        text.push_str(&cell);
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
    fn an_operation_that_has_ended_is_not_shown() {
        let status = json!({
            "sync": {"status": "Synced"}, "health": {"status": "Progressing", "message": "pod x"},
            "operationState": {"operation": {}, "phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
                "finishedAt": "2026-01-01T00:00:01Z"},
        });
        assert_eq!(drawn(&status, &json!(null)), "Synced and Progressing: pod x");
        assert_eq!(drawn(&json!({}), &json!({"sync": {}})), "waiting for the engine to start");
    }
}
