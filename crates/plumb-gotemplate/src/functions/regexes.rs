//! Sprig's functions for regular expressions.

use std::borrow::Cow;
use std::ops::Range;

use regex::{Regex, RegexBuilder};

use super::pattern::rewrite;
use super::table::{Row, Type, integer, new_text, text};
use crate::budget::Fault;
use crate::value::{Items, Scope, Value};

const TWO: &[Type] = &[Type::Text, Type::Text];
const THREE: &[Type] = &[Type::Text, Type::Text, Type::Text];
const COUNTED: &[Type] = &[Type::Text, Type::Text, Type::Int];

/// Largest compiled expression.
const MAX_SIZE: usize = 512 << 10;
/// Longest text that is searched.
const MAX_TEXT: usize = 256 << 10;

pub(super) const ROWS: &[Row] = &[
    ("regexMatch", TWO, None, |scope, given| {
        // Sprig ignores the error here, unlike in the other functions.
        match compiled(scope, given) {
            Ok(search) => is_match(&search),
            Err(fault) if fault.0.starts_with("error parsing regexp") => Ok(Value::Bool(false)),
            Err(fault) => Err(fault),
        }
    }),
    ("mustRegexMatch", TWO, None, |scope, given| is_match(&compiled(scope, given)?)),
    ("regexFind", TWO, None, |scope, given| find(scope, given, panicking)),
    ("mustRegexFind", TWO, None, |scope, given| find(scope, given, compiled)),
    ("regexFindAll", COUNTED, None, |scope, given| find_all(scope, given, panicking)),
    ("mustRegexFindAll", COUNTED, None, |scope, given| find_all(scope, given, compiled)),
    ("regexReplaceAll", THREE, None, |scope, given| replace(scope, given, panicking, false)),
    ("mustRegexReplaceAll", THREE, None, |scope, given| replace(scope, given, compiled, false)),
    ("regexReplaceAllLiteral", THREE, None, |scope, given| replace(scope, given, panicking, true)),
    ("mustRegexReplaceAllLiteral", THREE, None, |scope, given| replace(scope, given, compiled, true)),
    ("regexSplit", COUNTED, None, |scope, given| split(scope, given, panicking)),
    ("mustRegexSplit", COUNTED, None, |scope, given| split(scope, given, compiled)),
    ("regexQuoteMeta", &[Type::Text], None, |scope, given| {
        let mut out = String::new();
        for character in text(given, 0).chars() {
            if "\\.+*?()|[]{}^$".contains(character) {
                out.push('\\');
            }
            out.push(character);
        }
        new_text(scope, out)
    }),
];

/// A compiled expression with the text that it searches.
struct Search<'a> {
    scope: &'a Scope,
    regex: Regex,
    weight: u64,
    whole: Cow<'a, str>,
}

impl Search<'_> {
    /// Pays for one search from this place on: in the worst case it looks at each state for each byte that is left.
    fn pay(&self, start: usize) -> Result<(), Fault> {
        let left = (self.whole.len() - start.min(self.whole.len())) as u64;
        let cost = left.saturating_mul(self.weight.saturating_add(8)) / 512;
        self.scope.step(usize::try_from(cost).unwrap_or(usize::MAX).saturating_add(1))
    }

    /// All matches, each paid for. An empty match next to another match does not count.
    fn matches(&self, limit: usize) -> Result<Vec<Range<usize>>, Fault> {
        let mut found = Vec::new();
        self.pay(0)?;
        for one in self.regex.find_iter(&self.whole).take(limit) {
            self.pay(one.end())?;
            self.scope.allocate(48)?;
            found.push(one.range());
        }
        Ok(found)
    }
}

type Compile = for<'a> fn(&'a Scope, &'a [Value]) -> Result<Search<'a>, Fault>;

/// The expression of the first argument, to be used on the second.
fn compiled<'a>(scope: &'a Scope, given: &'a [Value]) -> Result<Search<'a>, Fault> {
    let (pattern, whole) = (text(given, 0), text(given, 1));
    if whole.len() > MAX_TEXT {
        return Err(Fault(format!(
            "the text is longer than {} KiB, the most that a regexp may search",
            MAX_TEXT >> 10
        )));
    }
    if let Some((regex, weight)) = scope.known_regex(&pattern) {
        return Ok(Search { scope, regex, weight, whole });
    }
    let failed = |reason: String| Fault(format!("error parsing regexp: {reason}"));
    scope.step(pattern.len())?;
    let rewritten = rewrite(&pattern).map_err(failed)?;
    scope.step(
        usize::try_from(rewritten.weight.min(MAX_SIZE as u64 / 16)).unwrap_or(MAX_SIZE).saturating_add(256),
    )?;
    let built = RegexBuilder::new(&rewritten.text).size_limit(MAX_SIZE).dfa_size_limit(MAX_SIZE).build();
    let regex = built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => failed(format!("expression is too large: `{pattern}`")),
        _ => failed(format!("invalid expression: `{pattern}`")),
    })?;
    scope.keep_regex(&pattern, regex.clone(), rewritten.weight);
    Ok(Search { scope, regex, weight: rewritten.weight, whole })
}

/// The same for functions that panic in Go.
fn panicking<'a>(scope: &'a Scope, given: &'a [Value]) -> Result<Search<'a>, Fault> {
    compiled(scope, given).map_err(|fault| {
        let pattern = text(given, 0);
        let is_syntax = fault.0.starts_with("error parsing regexp");
        if is_syntax { Fault(format!("regexp: Compile(`{pattern}`): {fault}")) } else { fault }
    })
}

fn is_match(search: &Search<'_>) -> Result<Value, Fault> {
    search.pay(0)?;
    Ok(Value::Bool(search.regex.is_match(&search.whole)))
}

fn find(scope: &Scope, given: &[Value], compile: Compile) -> Result<Value, Fault> {
    let search = compile(scope, given)?;
    search.pay(0)?;
    new_text(scope, search.regex.find(&search.whole).map_or("", |found| found.as_str()))
}

fn limit(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn find_all(scope: &Scope, given: &[Value], compile: Compile) -> Result<Value, Fault> {
    let search = compile(scope, given)?;
    let found = search.matches(limit(integer(given, 2)))?;
    if found.is_empty() {
        return Ok(Value::nil_list(scope, Items::Text));
    }
    scope.allocate(search.whole.len())?;
    Value::texts(scope, found.into_iter().map(|range| &search.whole[range]))
}

fn replace(scope: &Scope, given: &[Value], compile: Compile, literal: bool) -> Result<Value, Fault> {
    let search = compile(scope, given)?;
    let (whole, with) = (&search.whole, text(given, 2));
    let mut out = String::new();
    let mut end = 0;
    search.pay(0)?;
    for captures in search.regex.captures_iter(whole) {
        let Some(found) = captures.get(0) else { continue };
        search.pay(found.end())?;
        let before = out.len();
        out.push_str(&whole[end..found.start()]);
        if literal {
            out.push_str(&with);
        } else {
            scope.step(with.len() / 16)?;
            captures.expand(&with, &mut out);
        }
        scope.allocate(out.len() - before)?;
        end = found.end();
    }
    out.push_str(&whole[end..]);
    new_text(scope, out)
}

fn split(scope: &Scope, given: &[Value], compile: Compile) -> Result<Value, Fault> {
    let search = compile(scope, given)?;
    let whole = &search.whole;
    let limit = limit(integer(given, 2));
    let mut parts: Vec<&str> = Vec::new();
    if limit == 0 {
        return Ok(Value::nil_list(scope, Items::Text));
    }
    if whole.is_empty() && !text(given, 0).is_empty() {
        return Value::texts(scope, [""]);
    }
    let (mut start, mut end) = (0, 0);
    for found in search.matches(limit)? {
        if parts.len() + 1 >= limit {
            break;
        }
        end = found.start;
        if found.end != 0 {
            parts.push(&whole[start..end]);
        }
        start = found.end;
    }
    if end != whole.len() {
        parts.push(&whole[start..]);
    }
    scope.allocate(whole.len())?;
    Value::texts(scope, parts)
}
