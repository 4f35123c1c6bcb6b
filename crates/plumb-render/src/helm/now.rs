//! Changes the time that chart templates see.
//!
//! The time zone of the process (`sandbox::Clock`) moves the times that a template prints in local time, but not those
//! in a zone that it names (`dateInZone … "UTC"`, `now.UTC`). Each time in a template comes from the function `now`, so
//! `now` is replaced with a later moment in the copies of the templates in the scratch directory. Templates inside
//! values are not changed, because only the chart decides which values are templates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::charts::{ArchiveError, unpack};
use crate::disk_use::DiskUse;
use crate::error::RenderError;
use crate::export;
use crate::limits::Limits;
use crate::sandbox::{CLOCK_AHEAD_SECONDS, Clock};

/// Sets the clock in the templates of every chart at `directory` and below it, after they are written there.
pub(crate) fn set_clock(
    clock: Clock,
    directory: &Path,
    limits: &Limits,
    disk: &DiskUse<'_>,
) -> Result<(), RenderError> {
    match clock {
        Clock::Real => Ok(()),
        Clock::Moved => move_ahead(directory, CLOCK_AHEAD_SECONDS, limits, disk),
    }
}

fn move_ahead(
    directory: &Path,
    by_seconds: i32,
    limits: &Limits,
    disk: &DiskUse<'_>,
) -> Result<(), RenderError> {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        if directory.join("Chart.yaml").is_file() {
            unpack_charts(&directory.join("charts"), limits, disk)?;
            move_templates(&directory.join("templates"), by_seconds, disk)?;
        }
        waiting.extend(entries(&directory).map_err(|error| scratch(&error))?.directories);
    }
    Ok(())
}

fn scratch(error: &io::Error) -> RenderError {
    RenderError::scratch(error)
}

#[derive(Default)]
struct Entries {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// The entries of a directory; none if it does not exist. There are no links in a scratch directory.
fn entries(directory: &Path) -> io::Result<Entries> {
    let mut found = Entries::default();
    if directory.is_dir() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let list = if entry.file_type()?.is_dir() { &mut found.directories } else { &mut found.files };
            list.push(entry.path());
        }
    }
    Ok(found)
}

/// Replaces each packed chart with an unpacked directory. One that cannot be unpacked stays, and Helm reports it.
fn unpack_charts(directory: &Path, limits: &Limits, disk: &DiskUse<'_>) -> Result<(), RenderError> {
    for file in entries(directory).map_err(|error| scratch(&error))?.files {
        if file.extension().is_none_or(|extension| extension != "tgz") {
            continue;
        }
        let packed = fs::read(&file).map_err(|error| scratch(&error))?;
        let left = Limits { export_bytes: disk.n_bytes_left().min(limits.memory / 2), ..limits.clone() };
        let files = match unpack(&packed[..], &left) {
            Ok(files) => files,
            Err(ArchiveError::TooLarge { bytes, .. }) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                return Err(RenderError::Limit { what: format!("unpacked size of `{name}`"), limit: bytes });
            }
            Err(_) => continue,
        };
        fs::remove_file(&file).map_err(|error| scratch(&error))?;
        export::export_files(&files, &file.with_extension("unpacked"), disk)?;
    }
    Ok(())
}

fn move_templates(directory: &Path, by_seconds: i32, disk: &DiskUse<'_>) -> Result<(), RenderError> {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        let Entries { directories, files } = entries(&directory).map_err(|error| scratch(&error))?;
        waiting.extend(directories);
        for file in files {
            // A file that is not UTF-8 is not a template.
            let content = fs::read(&file).map_err(|error| scratch(&error))?;
            let Ok(template) = String::from_utf8(content) else { continue };
            if let Some(moved) = with_later_now(&template, by_seconds) {
                disk.write(&file, moved)?;
            }
        }
    }
    Ok(())
}

/// The template with every call of `now` replaced; `None` if it has no such call.
fn with_later_now(template: &str, by_seconds: i32) -> Option<String> {
    let later = format!("((now).Add {by_seconds}000000000)");
    let mut moved = String::with_capacity(template.len());
    let mut is_moved = false;
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        let (text, action) = rest.split_at(start);
        moved.push_str(text);
        rest = action;
        let mut before = ' ';
        while !rest.is_empty() {
            let token = token(rest);
            let (this, after) = rest.split_at(token);
            rest = after;
            let is_call = this == "now" && !matches!(before, '.' | '$');
            is_moved |= is_call;
            moved.push_str(if is_call { &later } else { this });
            before = this.chars().next_back().unwrap_or(' ');
            if this == "}}" {
                break;
            }
        }
    }
    moved.push_str(rest);
    is_moved.then_some(moved)
}

/// The length of the first token of an action: a word, a quoted string, a comment, the end of the action, or one
/// character.
fn token(action: &str) -> usize {
    let to = |end: Option<usize>| end.unwrap_or(action.len());
    let Some(first) = action.chars().next() else { return 0 };
    match first {
        '"' | '\'' => to(end_of_quoted(action, first)),
        '`' => to(action[1..].find('`').map(|at| at + 2)),
        '/' if action.starts_with("/*") => to(action.find("*/").map(|at| at + 2)),
        '}' if action.starts_with("}}") => 2,
        first if is_of_word(first) => to(action.find(|character| !is_of_word(character))),
        first => first.len_utf8(),
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().skip(1).find_map(|(at, character)| {
        let ends = !is_escaped && character == quote;
        is_escaped = !is_escaped && character == '\\';
        ends.then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_now_are_found_where_they_are_calls() {
        let later = "((now).Add 7000000000)";
        for (template, expected) in [
            ("at {{ now | date \"2006\" }}", Some(format!("at {{{{ {later} | date \"2006\" }}}}"))),
            ("{{ now.UTC.Year }}", Some(format!("{{{{ {later}.UTC.Year }}}}"))),
            ("{{- $t := now -}}", Some(format!("{{{{- $t := {later} -}}}}"))),
            ("{{now}}{{(now)}}", Some(format!("{{{{{later}}}}}{{{{({later})}}}}"))),
            (
                "{{ dateInZone \"now\" now `now` }}",
                Some(format!("{{{{ dateInZone \"now\" {later} `now` }}}}")),
            ),
            ("now {{ .now }} {{ $now }} {{ .Values.now.x }} {{ nowhere }} {{ known_now }} now", None),
            ("{{/* now */}} {{ \"a \\\" now\" }} {{ `{{ now }}` }} {{ 'n' }}", None),
            ("{{ unfinished now", Some(format!("{{{{ unfinished {later}"))),
            ("{{ \"no end now", None),
            ("", None),
            ("ö {{ \"ö\" | upper }} }} {{", None),
        ] {
            assert_eq!(with_later_now(template, 7), expected, "{template}");
        }
    }
}
