//! The grammar of rules, one sentence a line; `#` starts a comment.
//!
//! ```text
//! group   GROUP …                          the kinds below belong to these groups
//! kind    KIND …                           the sentences below are about these kinds; `*`: any other
//!   ignore generation                      do not wait for `status.observedGeneration`
//!   strict generation                      wait also where there is none
//!   absent  STATUS                         without a status (else Progressing)
//!   empty   STATUS                         with an empty one (else as absent)
//!   [first] STATUS when TEST [and TEST …]
//!   otherwise STATUS                       (else general)
//! STATUS: Healthy, Suspended, Progressing, Missing, Degraded, Unknown; none; general
//! TEST:   [every] SUBJECT PREDICATE
//! SUBJECT: a.path.with.*.steps
//!          [fresh|stale] condition TYPE [FIELD] [in a.path.*]   TYPE may start or end with `*`; fresh: it speaks
//!                          of the newest generation; FIELD: reason, message, severity … (else its status)
//! PREDICATE: is A | B …, is not A | B …, has TEXT | TEXT …, has not TEXT …, starts TEXT …, exists, absent,
//!            differ (two of them are not the same), < <= > >= = != followed by a number, a path, or `path - path`;
//!            the text `3-…` is the number 3
//! ```
//!
//! Put a value that contains ` and ` or ` | ` in double quotes.

use std::fmt;

use super::super::HealthStatus;
use super::predicate::{Age, Operand, Order, Predicate, Subject, Test};
use super::rule::{Clause, Generation, Outcome, Rule, Rules};

/// A line that could not be parsed. It is skipped; the others apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    file: String,
    line: usize,
    what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Reads rules. Never fails: what cannot be read is in the problems.
pub(super) fn parse(text: &str) -> Rules {
    let mut rules = Rules::default();
    let mut file = "health rules".to_owned();
    let mut first_line = 0_usize;
    let mut groups: Vec<String> = Vec::new();
    let mut kinds: Vec<String> = Vec::new();
    let mut rule = Rule::default();
    for (index, raw) in text.lines().enumerate() {
        let line = without_comment(raw).trim();
        let number = index + 1 - first_line;
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        let read = match word {
            "" => Ok(()),
            "file" => {
                rules.keep(&groups, &kinds, &std::mem::take(&mut rule));
                (groups, kinds) = (Vec::new(), Vec::new());
                rest.clone_into(&mut file);
                first_line = index;
                Ok(())
            }
            "group" => {
                rules.keep(&groups, &kinds, &std::mem::take(&mut rule));
                (groups, kinds) = (words(rest), Vec::new());
                Ok(())
            }
            "kind" => {
                rules.keep(&groups, &kinds, &std::mem::take(&mut rule));
                kinds = words(rest);
                if groups.is_empty() { Err("a kind needs a group first".to_owned()) } else { Ok(()) }
            }
            _ if kinds.is_empty() => Err(format!("`{word}` needs a kind first")),
            _ => sentence(word, rest, line, &mut rule),
        };
        if let Err(what) = read {
            rules.problems.push(Problem { file: file.clone(), line: number, what });
        }
    }
    rules.keep(&groups, &kinds, &rule);
    rules
}

impl Rules {
    fn keep(&mut self, groups: &[String], kinds: &[String], rule: &Rule) {
        for group in groups {
            let known = self.by_group.entry(group.clone()).or_default();
            for kind in kinds {
                known.insert(kind.clone(), rule.clone());
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn without_comment(line: &str) -> &str {
    match line.find('#') {
        Some(0) => "",
        // Inside quotes a `#` is a letter.
        Some(at) if line[..at].matches('"').count().is_multiple_of(2) => &line[..at],
        Some(_) | None => line,
    }
}

fn sentence(word: &str, rest: &str, line: &str, rule: &mut Rule) -> Result<(), String> {
    match word {
        "ignore" if rest == "generation" => rule.generation = Generation::Ignored,
        "strict" if rest == "generation" => rule.generation = Generation::Strict,
        "absent" => rule.absent = outcome(rest)?,
        "empty" => rule.empty = Some(outcome(rest)?),
        "otherwise" => rule.otherwise = outcome(rest)?,
        "first" => rule.first.push(clause(rest)?),
        _ => rule.clauses.push(clause(line)?),
    }
    Ok(())
}

fn outcome(word: &str) -> Result<Outcome, String> {
    match word {
        "general" => Ok(Outcome::General),
        "none" => Ok(Outcome::Nothing),
        word => HealthStatus::from_word(word)
            .map(Outcome::Status)
            .ok_or_else(|| format!("no status is called `{word}`")),
    }
}

fn clause(line: &str) -> Result<Clause, String> {
    let (status, tests) = line.split_once(" when ").ok_or_else(|| format!("`{line}` has no ` when `"))?;
    let tests = split_outside_quotes(tests, " and ").into_iter().map(test).collect::<Result<Vec<_>, _>>()?;
    Ok(Clause { outcome: outcome(status.trim())?, tests })
}

fn test(text: &str) -> Result<Test, String> {
    let text = text.trim();
    let (every, text) = match text.strip_prefix("every ") {
        Some(text) => (true, text.trim()),
        None => (false, text),
    };
    let (subject, rest) = subject(text)?;
    Ok(Test { every, subject, predicate: predicate(rest, text)? })
}

const PREDICATES: &[&str] =
    &["is", "has", "starts", "exists", "absent", "differ", "<", "<=", ">", ">=", "=", "!="];

fn subject(text: &str) -> Result<(Subject, &str), String> {
    let (age, text) = if let Some(text) = text.strip_prefix("fresh ") {
        (Age::Fresh, text)
    } else if let Some(text) = text.strip_prefix("stale ") {
        (Age::Stale, text)
    } else {
        (Age::Any, text)
    };
    let Some(text) = text.strip_prefix("condition ") else {
        let (path, rest) = next_word(text);
        return Ok((Subject::Field { path: steps(path) }, rest));
    };
    let (kind, mut rest) = next_word(text);
    let mut field = "status";
    let (word, after) = next_word(rest);
    if word != "in" && !PREDICATES.contains(&word) {
        (field, rest) = (word, after);
    }
    let mut holder = vec!["status".to_owned()];
    if let Some(after) = rest.strip_prefix("in ") {
        let (path, after) = next_word(after);
        (holder, rest) = (steps(path), after);
    }
    if kind.is_empty() || field.is_empty() {
        return Err("`condition` needs a type and a predicate".to_owned());
    }
    Ok((Subject::Condition { kind: kind.to_owned(), field: field.to_owned(), holder, age }, rest))
}

fn next_word(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

/// `a.b.*` as steps; a name that contains dots is in brackets: `metadata.labels[a.b/c]`.
fn steps(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (name, after) = inside.split_once(']').unwrap_or((inside, ""));
            found.push(name.to_owned());
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
    }
    found
}

fn predicate(text: &str, whole: &str) -> Result<Predicate, String> {
    let values = |text: &str| -> Vec<String> {
        split_outside_quotes(text, " | ").into_iter().map(|value| unquote(value).to_owned()).collect()
    };
    let lower = |text: &str| values(text).iter().map(|value| value.to_lowercase()).collect();
    Ok(match text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim())) {
        ("differ", "") => Predicate::Differ,
        ("starts", rest) if !rest.is_empty() => Predicate::Starts(values(rest)),
        ("exists", "") => Predicate::Exists,
        ("absent", "") => Predicate::Absent,
        ("is", rest) if rest.starts_with("not ") => Predicate::IsNot(values(rest[4..].trim())),
        ("is", rest) if !rest.is_empty() => Predicate::Is(values(rest)),
        ("has", rest) if rest.starts_with("not ") => Predicate::HasNot(lower(rest[4..].trim())),
        ("has", rest) if !rest.is_empty() => Predicate::Has(lower(rest)),
        (sign, rest) if !rest.is_empty() => {
            let order = match sign {
                "<" => Order::Less,
                "<=" => Order::AtMost,
                ">" => Order::More,
                ">=" => Order::AtLeast,
                "=" => Order::Same,
                "!=" => Order::Other,
                _ => return Err(no_predicate(whole)),
            };
            let operand = match rest.parse() {
                Ok(number) => Operand::Number(number),
                Err(_) => match rest.split_once(" - ") {
                    Some((from, less)) => Operand::Difference(steps(from), steps(less)),
                    None => Operand::Field(steps(rest)),
                },
            };
            Predicate::Compare(order, operand)
        }
        _ => return Err(no_predicate(whole)),
    })
}

fn no_predicate(text: &str) -> String {
    format!("`{text}` needs `is`, `is not`, `has`, `has not`, `exists`, `absent` or a comparison")
}

fn unquote(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

fn split_outside_quotes<'text>(text: &'text str, separator: &str) -> Vec<&'text str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(separator) {
        if at >= start && text[start..at].matches('"').count().is_multiple_of(2) {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&text[start..]);
    parts
}
