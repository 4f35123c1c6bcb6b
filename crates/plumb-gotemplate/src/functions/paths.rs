//! Paths, with slashes. Sprig's functions for the paths of the operating system are the same on Linux.

use super::table::{Row, Type, new_text, text};
use crate::value::Value;

const TEXT: &[Type] = &[Type::Text];

pub(super) const ROWS: &[Row] = &[
    ("base", TEXT, None, |scope, given| new_text(scope, base(&text(given, 0)))),
    ("dir", TEXT, None, |scope, given| new_text(scope, dir(&text(given, 0)))),
    ("clean", TEXT, None, |scope, given| new_text(scope, clean(&text(given, 0)))),
    ("ext", TEXT, None, |scope, given| new_text(scope, ext(&text(given, 0)))),
    ("isAbs", TEXT, None, |_, given| Ok(Value::Bool(text(given, 0).starts_with('/')))),
    ("osBase", TEXT, None, |scope, given| new_text(scope, base(&text(given, 0)))),
    ("osDir", TEXT, None, |scope, given| new_text(scope, dir(&text(given, 0)))),
    ("osClean", TEXT, None, |scope, given| new_text(scope, clean(&text(given, 0)))),
    ("osExt", TEXT, None, |scope, given| new_text(scope, ext(&text(given, 0)))),
    ("osIsAbs", TEXT, None, |_, given| Ok(Value::Bool(text(given, 0).starts_with('/')))),
];

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let path = path.trim_end_matches('/');
    if path.is_empty() { "/" } else { path.rsplit('/').next().unwrap_or(path) }
}

fn dir(path: &str) -> String {
    clean(path.rfind('/').map_or("", |slash| &path[..=slash]))
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').map_or("", |dot| &name[dot..])
}

fn clean(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
