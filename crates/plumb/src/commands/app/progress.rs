//! How a sync goes on: drawn anew on a terminal, told line by line elsewhere.

use std::collections::HashMap;

use jiff::Timestamp;
use plumb_crd::Application;

use super::states::{State, states};
use crate::output::{Colour, Output, colour_of, table};

/// What was told already.
#[derive(Debug)]
pub(super) struct Progress {
    out: Output,
    told: HashMap<(String, String, String, String, String), State>,
    message: String,
    begun: bool,
    /// Lines that are on the screen and are overwritten by the next ones.
    drawn: usize,
}

/// So many objects are shown while they are under way.
const SHOWN: usize = 12;

impl Progress {
    /// Nothing told yet. `before`: what was there at the beginning is no news.
    pub(super) fn new(out: Output, before: &Application) -> Self {
        let told = states(before).into_iter().map(|state| (state.key(), state)).collect();
        Self { out, told, message: String::new(), begun: false, drawn: 0 }
    }

    /// Tells what is new.
    pub(super) fn tell(&mut self, application: &Application, now: Timestamp) {
        if self.out.is_terminal() {
            self.draw(application, now);
        } else {
            self.add(application, now);
        }
    }

    /// The last word: nothing is overwritten any more.
    pub(super) fn end(&mut self) {
        if self.drawn > 0 {
            self.out.say_raw(&clear(self.drawn));
            self.drawn = 0;
        }
    }

    /// One line per object that changed, as argocd prints them, and one per new message of the operation.
    fn add(&mut self, application: &Application, now: Timestamp) {
        let time = now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        for state in states(application) {
            if self.told.get(&state.key()) == Some(&state) {
                continue;
            }
            if !self.begun {
                self.begun = true;
                self.out.say(&line(&[
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
            self.out.say(&line(&cells));
            self.told.insert(state.key(), state);
        }
        if let Some(state) = &application.status.operation_state
            && !state.message.is_empty()
            && state.message != self.message
        {
            self.out.complain(&format!("{}: {}", state.phase, state.message));
            self.message.clone_from(&state.message);
        }
    }

    /// What is under way now, in place of what was drawn before.
    fn draw(&mut self, application: &Application, now: Timestamp) {
        let mut lines = Vec::new();
        let all = states(application);
        if let Some(state) = &application.status.operation_state {
            let seconds = (now.as_second() - state.started_at.as_second()).max(0);
            let colour = colour_of(&state.phase).unwrap_or(Colour::Yellow);
            let phase = self.out.paint(colour, &state.phase);
            lines.push(format!("{phase} for {seconds}s: {}", state.message));
            let results = state.sync_result.as_ref().map(|result| result.resources.as_slice());
            let results = results.unwrap_or_default();
            let done = results.iter().filter(|entry| !matches!(entry.hook_phase.as_str(), "Running" | ""));
            lines.push(format!("{} of {} objects done", done.count(), results.len()));
        } else {
            lines.push("waiting for the engine to begin".to_owned());
        }
        let open: Vec<Vec<String>> = all
            .iter()
            .filter(|state| {
                matches!(state.status.as_str(), "Running" | "OutOfSync" | "Failed" | "SyncFailed")
                    || matches!(state.health.as_str(), "Progressing" | "Degraded" | "Missing")
            })
            .take(SHOWN)
            .map(State::row)
            .collect();
        if !open.is_empty() {
            lines.extend(table(&super::states::COLUMNS, &open).lines().map(str::to_owned));
        }
        let text = lines.join("\n");
        self.out.say_raw(&format!("{}{text}\n", clear(self.drawn)));
        self.drawn = lines.len();
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
            let blanks = width.saturating_sub(cell.chars().count()).max(1) + 1;
            text.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    text.trim_end().to_owned()
}
