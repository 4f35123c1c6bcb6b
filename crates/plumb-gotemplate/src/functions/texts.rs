//! Sprig's functions for strings.

use memchr::memmem;

use super::table::{Row, Type, bytes, integer, new_text, text};
use crate::budget::Fault;
use crate::convert::to_text;
use crate::format::{quote_bytes, sprint};
use crate::value::{Items, Scope, Value};

const ANY: Option<Type> = Some(Type::Any);
const TEXT: &[Type] = &[Type::Text];
const TEXTS: &[Type] = &[Type::Text, Type::Text];
const NUMBERED: &[Type] = &[Type::Int, Type::Text];

pub(super) const ROWS: &[Row] = &[
    ("hello", &[], None, |_, _| Ok(Value::text("Hello!"))),
    ("trim", TEXT, None, |scope, given| new_text(scope, text(given, 0).trim())),
    ("trimAll", TEXTS, None, trim_all),
    ("trimall", TEXTS, None, trim_all),
    ("trimSuffix", TEXTS, None, |scope, given| {
        let (suffix, whole) = (bytes(given, 0), bytes(given, 1));
        new_text(scope, whole.strip_suffix(suffix).unwrap_or(whole))
    }),
    ("trimPrefix", TEXTS, None, |scope, given| {
        let (prefix, whole) = (bytes(given, 0), bytes(given, 1));
        new_text(scope, whole.strip_prefix(prefix).unwrap_or(whole))
    }),
    ("nospace", TEXT, None, |scope, given| {
        let whole = bytes(given, 0);
        // Sprig takes each byte for a character, and leaves a text without blanks as it is.
        let kept: String =
            whole.iter().map(|byte| char::from(*byte)).filter(|byte| !byte.is_whitespace()).collect();
        if kept.chars().count() == whole.len() { Ok(given[0].clone()) } else { new_text(scope, kept) }
    }),
    ("contains", TEXTS, None, |scope, given| {
        let (part, whole) = (text(given, 0), text(given, 1));
        scope.step(whole.len() / 16)?;
        Ok(Value::Bool(whole.contains(part.as_ref())))
    }),
    ("hasPrefix", TEXTS, None, |_, given| Ok(Value::Bool(bytes(given, 1).starts_with(bytes(given, 0))))),
    ("hasSuffix", TEXTS, None, |_, given| Ok(Value::Bool(bytes(given, 1).ends_with(bytes(given, 0))))),
    ("quote", &[], ANY, |scope, given| {
        joined(scope, given, |scope, value| Ok(quote_bytes(&to_text(scope, value)?).into_bytes()))
    }),
    ("squote", &[], ANY, |scope, given| {
        joined(scope, given, |scope, value| {
            let inner = sprint(scope, std::slice::from_ref(value))?;
            Ok([b"'", inner.as_slice(), b"'"].concat())
        })
    }),
    ("cat", &[], ANY, |scope, given| {
        joined(scope, given, |scope, value| sprint(scope, std::slice::from_ref(value)))
    }),
    ("indent", NUMBERED, None, |scope, given| indent(scope, given, "")),
    ("nindent", NUMBERED, None, |scope, given| indent(scope, given, "\n")),
    ("replace", &[Type::Text, Type::Text, Type::Text], None, replace),
    ("plural", &[Type::Text, Type::Text, Type::Int], None, |_, given| {
        Ok(given[usize::from(integer(given, 2) != 1)].clone())
    }),
    ("repeat", NUMBERED, None, |scope, given| {
        let count = usize::try_from(integer(given, 0));
        let count = count.map_err(|_| Fault::new("strings: negative Repeat count"))?;
        let unit = bytes(given, 1);
        scope.allocate(count.saturating_mul(unit.len()))?;
        Ok(Value::text(unit.repeat(count)))
    }),
    ("substr", &[Type::Int, Type::Int, Type::Text], None, substr),
    ("trunc", NUMBERED, None, |scope, given| {
        let whole = bytes(given, 1);
        let length = i64::try_from(whole.len()).unwrap_or(i64::MAX);
        let count = integer(given, 0);
        let place = |at: i64| usize::try_from(at).unwrap_or(0);
        new_text(
            scope,
            match count {
                count if count < 0 && length + count > 0 => &whole[place(length + count)..],
                count if count >= 0 && length > count => &whole[..place(count)],
                _ => whole,
            },
        )
    }),
    ("toString", &[Type::Any], None, |scope, given| new_text(scope, to_text(scope, &given[0])?)),
    ("toStrings", &[Type::Any], None, |scope, given| Value::texts(scope, strings(scope, &given[0])?)),
    ("join", &[Type::Text, Type::Any], None, |scope, given| {
        let parts = strings(scope, &given[1])?;
        let separators = parts.len().saturating_mul(bytes(given, 0).len());
        scope.allocate(separators)?;
        new_text(scope, parts.join(bytes(given, 0)))
    }),
    ("split", TEXTS, None, |scope, given| {
        let parts = split(scope, bytes(given, 1), bytes(given, 0), None)?;
        numbered(scope, parts)
    }),
    ("splitn", &[Type::Text, Type::Int, Type::Text], None, |scope, given| {
        let limit = integer(given, 1);
        let parts = match usize::try_from(limit) {
            Ok(0) => Vec::new(),
            Ok(limit) => split(scope, bytes(given, 2), bytes(given, 0), Some(limit))?,
            Err(_) => split(scope, bytes(given, 2), bytes(given, 0), None)?,
        };
        numbered(scope, parts)
    }),
    ("splitList", TEXTS, None, |scope, given| {
        let parts = split(scope, bytes(given, 1), bytes(given, 0), None)?;
        scope.allocate(bytes(given, 1).len())?;
        Value::texts(scope, parts)
    }),
    ("sortAlpha", &[Type::Any], None, |scope, given| {
        let mut parts = strings(scope, &given[0])?;
        if matches!(given[0], Value::Nil) {
            parts = vec![b"<nil>".to_vec()];
        }
        // Sorting looks at each text as often as the number of texts has bits.
        let looks = parts.len().max(1).ilog2() as usize + 1;
        let bytes: usize = parts.iter().map(Vec::len).sum();
        scope.step((bytes / 64 + parts.len()).saturating_mul(looks))?;
        parts.sort();
        Value::texts(scope, parts)
    }),
    ("fail", TEXT, None, |_, given| Err(Fault::new(text(given, 0)))),
];

fn trim_all(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let (set, whole) = (text(given, 0), text(given, 1));
    scope.step(set.len().saturating_mul(whole.len()) / 64)?;
    new_text(scope, whole.trim_matches(|character| set.contains(character)))
}

/// The texts of all arguments but nil, with blanks between them.
fn joined(
    scope: &Scope,
    given: &[Value],
    show: fn(&Scope, &Value) -> Result<Vec<u8>, Fault>,
) -> Result<Value, Fault> {
    let shown = given.iter().filter(|value| !matches!(value, Value::Nil)).map(|value| show(scope, value));
    new_text(scope, shown.collect::<Result<Vec<_>, _>>()?.join(&b' '))
}

fn indent(scope: &Scope, given: &[Value], before: &str) -> Result<Value, Fault> {
    let count = usize::try_from(integer(given, 0));
    let count = count.map_err(|_| Fault::new("strings: negative Repeat count"))?;
    let whole = text(given, 1);
    let lines = whole.matches('\n').count() + 1;
    scope.allocate(count.saturating_mul(lines))?;
    let pad = " ".repeat(count);
    new_text(scope, format!("{before}{pad}{}", whole.replace('\n', &format!("\n{pad}"))))
}

fn replace(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let (old, new, whole) = (text(given, 0), text(given, 1), text(given, 2));
    let found = if old.is_empty() { whole.chars().count() + 1 } else { whole.matches(old.as_ref()).count() };
    scope.step(whole.len() / 16)?;
    scope.allocate(found.saturating_mul(new.len()).saturating_add(whole.len()))?;
    Ok(Value::text(whole.replace(old.as_ref(), &new)))
}

fn substr(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let whole = bytes(given, 2);
    let (start, end) = (integer(given, 0), integer(given, 1));
    let length = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let (start, end) = if start < 0 {
        (0, end)
    } else if end < 0 || end > length {
        (start, length)
    } else {
        (start, end)
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| whole.get(start..end));
    let part = part.ok_or_else(|| {
        let bounds = if end > length {
            format!("[:{end}] with length {length}")
        } else if end < 0 {
            format!("[:{end}]")
        } else {
            format!("[{start}:{end}]")
        };
        Fault(format!("runtime error: slice bounds out of range {bounds}"))
    })?;
    new_text(scope, part)
}

/// The texts of a list's items; those that are nil are left out. Anything else is a list of itself.
pub(super) fn strings(scope: &Scope, value: &Value) -> Result<Vec<Vec<u8>>, Fault> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            let items = list.items.iter().filter(|item| !matches!(item, Value::Nil));
            items
                .map(|item| {
                    let shown = to_text(scope, item)?;
                    scope.allocate(shown.len())?;
                    Ok(shown)
                })
                .collect()
        }
        other => Ok(vec![to_text(scope, other)?]),
    }
}

/// Go's `strings.SplitN`: an empty separator splits after each character.
fn split<'a>(
    scope: &Scope,
    whole: &'a [u8],
    separator: &[u8],
    limit: Option<usize>,
) -> Result<Vec<&'a [u8]>, Fault> {
    let finder = memmem::Finder::new(separator);
    let limit = limit.unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut rest = whole;
    while parts.len() + 1 < limit {
        let (before, after) = if separator.is_empty() {
            let width = first_character(rest);
            if width == 0 || width >= rest.len() {
                break;
            }
            rest.split_at(width)
        } else {
            let Some(at) = finder.find(rest) else { break };
            (&rest[..at], &rest[at + separator.len()..])
        };
        scope.step(1)?;
        scope.allocate(16)?;
        parts.push(before);
        rest = after;
    }
    if !(separator.is_empty() && whole.is_empty()) {
        parts.push(rest);
    }
    Ok(parts)
}

/// The bytes of the first character; a byte that is no character counts as one.
fn first_character(text: &[u8]) -> usize {
    // No character is longer than four bytes.
    let Some(chunk) = text[..text.len().min(4)].utf8_chunks().next() else { return 0 };
    chunk.valid().chars().next().map_or(1, char::len_utf8)
}

/// `_0`, `_1` … as keys.
fn numbered(scope: &Scope, parts: Vec<&[u8]>) -> Result<Value, Fault> {
    let entries = parts.into_iter().enumerate().map(|(index, part)| (format!("_{index}"), Value::text(part)));
    Value::map_of(scope, Items::Text, entries.collect())
}
