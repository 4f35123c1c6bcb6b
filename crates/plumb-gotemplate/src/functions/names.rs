//! Argo CD's functions that make names of texts.

use super::table::{Row, Type, new_text, text};
use crate::budget::Fault;
use crate::value::Value;

/// Longest name of a Kubernetes object.
const MAX_NAME: usize = 253;

pub(super) const ROWS: &[Row] = &[
    ("normalize", &[Type::Text], None, |scope, given| new_text(scope, normalize(&text(given, 0)))),
    ("slugify", &[], Some(Type::Any), |scope, given| {
        let Some((Value::Text(_), options)) = given.split_last() else {
            return Err(match given.last() {
                None => Fault::new("runtime error: index out of range [-1]"),
                Some(other) => conversion(other, "string"),
            });
        };
        let max = match options.first() {
            None => 50,
            Some(Value::Int(max)) => *max,
            Some(other) => return Err(conversion(other, "int")),
        };
        let smart = match options.get(1) {
            None => true,
            Some(Value::Bool(smart)) => *smart,
            Some(other) => return Err(conversion(other, "bool")),
        };
        let max = match usize::try_from(max) {
            Ok(max) => max,
            Err(_) if smart => 0,
            Err(_) => return Err(Fault(format!("runtime error: slice bounds out of range [:{max}]"))),
        };
        scope.step(text(given, given.len() - 1).len())?;
        new_text(scope, slugify(&text(given, given.len() - 1), max, smart))
    }),
];

fn conversion(found: &Value, wanted: &str) -> Fault {
    let found = if matches!(found, Value::Nil) { "nil" } else { found.type_name() };
    Fault(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

/// A text as (part of) the name of an object: lower case, other characters than letters, digits, `-` and `.` become `-`.
pub fn normalize(text: &str) -> String {
    let allowed = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let map = |character: char| {
        let character = super::case::lower(character);
        if allowed(character) || matches!(character, '-' | '.') { character } else { '-' }
    };
    let mapped: String = text.chars().map(map).collect();
    mapped[..mapped.len().min(MAX_NAME)].trim_matches(['-', '.']).to_owned()
}

/// The function `slugify`: a normalised name of at most `max` characters, cut between words if `smart`.
pub fn slugify(text: &str, max: usize, smart: bool) -> String {
    slug(&normalize(text), max, smart)
}

/// A name in plain letters: `日本 & Co` becomes `ri-ben-and-co`.
pub fn slug(text: &str, max: usize, smart: bool) -> String {
    let mut spelled = String::new();
    for character in text.trim().chars() {
        match character {
            '&' => spelled.push_str("and"),
            '@' => spelled.push_str("at"),
            '_' | '‒' | '–' | '—' | '―' => spelled.push('-'),
            '\'' | '"' | '’' | '‘' | '“' | '”' => {}
            ascii if ascii.is_ascii() => spelled.push(ascii),
            other => spelled.push_str(deunicode::deunicode_char(other).unwrap_or_default()),
        }
    }
    let mut spelled = spelled.to_lowercase();
    if !smart && spelled.is_char_boundary(max) {
        spelled.truncate(max);
    }
    let mut out = String::new();
    for character in spelled.chars() {
        let kept = if character.is_ascii_alphanumeric() { character } else { '-' };
        if kept != '-' || !out.ends_with('-') {
            out.push(kept);
        }
    }
    let out = out.trim_matches('-');
    if !smart || max == 0 || out.len() <= max {
        return out.to_owned();
    }
    let mut cut = String::new();
    for word in out.split_inclusive('-') {
        if cut.len() + word.trim_end_matches('-').len() > max {
            break;
        }
        cut.push_str(word);
    }
    if cut.is_empty() {
        return out[..max].to_owned();
    }
    cut.trim_matches('-').to_owned()
}
