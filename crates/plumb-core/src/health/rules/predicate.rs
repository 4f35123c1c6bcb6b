//! One test of a rule: a subject in the object, and what must be true of it.

use serde_json::Value;

use super::super::general::{self, LooseCondition};
use super::super::read::find;

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    /// Must it hold for every value that the subject finds (and there be one), not only for some?
    pub(super) every: bool,
    pub(super) subject: Subject,
    pub(super) predicate: Predicate,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    /// A field; `*` steps into every item.
    Field { path: Vec<String> },
    /// A field of the conditions of one type, among the conditions of `holder`.
    Condition { kind: String, field: String, holder: Vec<String>, age: Age },
}

/// Which generation of the object a condition may speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Any,
    /// The newest, or it does not say.
    Fresh,
    /// An older one.
    Stale,
}

/// What must be true.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predicate {
    Is(Vec<String>),
    IsNot(Vec<String>),
    /// Any of these texts is in it; they are in lowercase.
    Has(Vec<String>),
    HasNot(Vec<String>),
    Starts(Vec<String>),
    /// There are two that are not the same.
    Differ,
    Exists,
    Absent,
    Compare(Order, Operand),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
    Other,
}

impl Order {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::AtLeast => left >= right,
            Self::Same => (left - right).abs() < f64::EPSILON,
            Self::Other => (left - right).abs() >= f64::EPSILON,
        }
    }
}

/// The other side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Number(f64),
    Field(Vec<String>),
    /// One field less another.
    Difference(Vec<String>, Vec<String>),
}

impl Test {
    /// Does it hold for this object?
    pub(super) fn holds(&self, object: &Value) -> bool {
        if let (Predicate::Compare(order, operand), Subject::Field { path }) =
            (&self.predicate, &self.subject)
        {
            return compare(object, path, *order, operand);
        }
        let found = self.subject.texts(object);
        if self.every {
            return !found.is_empty() && found.iter().all(|text| self.predicate.holds_for(text));
        }
        self.predicate.holds(&found)
    }

    /// What was seen, in words for the message.
    pub(super) fn evidence(&self, object: &Value) -> Option<String> {
        match &self.subject {
            Subject::Condition { kind, field, holder, age } => {
                let mut all = matching(object, kind, holder, *age);
                let condition = all.find(|condition| {
                    field_of(condition, field).is_some_and(|text| self.predicate.holds_for(&text))
                });
                condition.map(|condition| condition.words().to_owned()).filter(|words| !words.is_empty())
            }
            Subject::Field { path } => {
                let name = path.join(".");
                if let Predicate::Compare(_, operand) = &self.predicate {
                    let left = number_at(object, path).unwrap_or(0.0);
                    return Some(match operand {
                        Operand::Number(right) => format!("`{name}` is {left}, not {right}"),
                        Operand::Field(other) => {
                            let right = number_at(object, other).unwrap_or(0.0);
                            format!("`{name}` is {left}, not `{}` {right}", other.join("."))
                        }
                        Operand::Difference(from, less) => {
                            format!("`{name}` is {left}, with `{}` and `{}`", from.join("."), less.join("."))
                        }
                    });
                }
                let texts = self.subject.texts(object);
                match texts.iter().find(|text| self.predicate.holds_for(text)) {
                    Some(text) => Some(message_beside(object, path).unwrap_or(format!("`{name}` is {text}"))),
                    None => Some(format!("`{name}` is not set")),
                }
            }
        }
    }
}

/// A message beside the field says more than the field's value.
fn message_beside(object: &Value, path: &[String]) -> Option<String> {
    let (_, holder) = path.split_last()?;
    if holder.first().is_none_or(|step| step != "status") {
        return None;
    }
    let holder = values(object, holder).into_iter().next()?;
    ["message", "reason"]
        .into_iter()
        .filter_map(|field| holder.get(field).and_then(Value::as_str))
        .find(|text| !text.is_empty())
        .map(str::to_owned)
}

impl Subject {
    /// Every value that the subject finds, as text. Null is absent.
    fn texts(&self, object: &Value) -> Vec<String> {
        match self {
            Self::Field { path } => values(object, path).into_iter().filter_map(text_of).collect(),
            Self::Condition { kind, field, holder, age } => matching(object, kind, holder, *age)
                .filter_map(|condition| field_of(&condition, field))
                .collect(),
        }
    }
}

fn field_of(condition: &LooseCondition<'_>, field: &str) -> Option<String> {
    match field {
        "status" => Some(condition.status.to_owned()),
        field => condition.entry.get(field).and_then(text_of),
    }
}

fn matching<'value>(
    object: &'value Value,
    kind: &'value str,
    holder: &[String],
    age: Age,
) -> impl Iterator<Item = LooseCondition<'value>> {
    let generation = find(object, "metadata.generation").and_then(general::whole_number);
    let is_stale = move |condition: &LooseCondition<'_>| matches!((condition.observed, generation), (Some(observed), Some(generation)) if observed < generation);
    values(object, holder).into_iter().flat_map(general::conditions).filter(move |condition| {
        let is_of_age = match age {
            Age::Any => true,
            Age::Fresh => !is_stale(condition),
            Age::Stale => is_stale(condition),
        };
        is_of_age && is_like(condition.kind, kind)
    })
}

/// A pattern may start or end with `*`.
fn is_like(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(end), _) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => name == pattern,
    }
}

fn values<'value>(object: &'value Value, path: &[String]) -> Vec<&'value Value> {
    let mut current = vec![object];
    for step in path {
        let mut next = Vec::new();
        for value in current {
            match (step.as_str(), value) {
                ("*", Value::Array(items)) => next.extend(items),
                ("*", Value::Object(map)) => next.extend(map.values()),
                (name, Value::Object(map)) => next.extend(map.get(name)),
                (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                }
            }
        }
        current = next;
    }
    current.retain(|value| !value.is_null());
    current
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        // An empty list or map is as good as absent.
        Value::Array(items) => (!items.is_empty()).then(|| "a list".to_owned()),
        Value::Object(map) => (!map.is_empty()).then(|| "a map".to_owned()),
    }
}

fn value_at<'value>(object: &'value Value, path: &[String]) -> Option<&'value Value> {
    values(object, path).into_iter().next()
}

/// A number, a text that is one (`3`, `2/3` as a part of the whole, or `3-…`: a generation and a hash), or the length of
/// a list.
fn number_at(object: &Value, path: &[String]) -> Option<f64> {
    match values(object, path).first()? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.split_once('/') {
            None => text.parse().ok().or_else(|| {
                let (number, _) = text.split_once('-')?;
                number.parse::<u32>().ok().map(f64::from)
            }),
            Some(("0", "0")) => Some(1.0),
            Some((part, whole)) => Some(part.parse::<f64>().ok()? / whole.parse::<f64>().ok()?),
        },
        Value::Array(items) => u32::try_from(items.len()).ok().map(f64::from),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// An absent counter is zero, as the API leaves zeros out; two absent ones are not compared. Two texts that are
/// no numbers can be the same or not. Where both sides start with the same steps up to a `*`, the items are
/// compared one by one, and it holds if it holds for some.
fn compare(object: &Value, path: &[String], order: Order, operand: &Operand) -> bool {
    let Operand::Field(other) = operand else { return compare_one(object, path, order, operand) };
    let Some(star) = path.iter().rposition(|step| step == "*") else {
        return compare_one(object, path, order, operand);
    };
    let (head, tail) = path.split_at(star + 1);
    let Some(other_tail) = other.strip_prefix(head) else { return compare_one(object, path, order, operand) };
    let operand = Operand::Field(other_tail.to_vec());
    values(object, head).into_iter().any(|item| compare_one(item, tail, order, &operand))
}

fn compare_one(object: &Value, path: &[String], order: Order, operand: &Operand) -> bool {
    let left = number_at(object, path);
    let right = match operand {
        Operand::Number(number) => Some(*number),
        Operand::Difference(from, less) => {
            number_at(object, from).map(|from| from - number_at(object, less).unwrap_or(0.0))
        }
        Operand::Field(other) => {
            if let Order::Same | Order::Other = order {
                let (left, right) = (value_at(object, path), value_at(object, other));
                // Names and hashes: absent is another than any of them.
                if left.or(right).is_some_and(Value::is_string) {
                    return (left.and_then(text_of) == right.and_then(text_of)) == (order == Order::Same);
                }
            }
            number_at(object, other)
        }
    };
    match (left, right) {
        (None, None) => false,
        (left, right) => order.holds(left.unwrap_or(0.0), right.unwrap_or(0.0)),
    }
}

impl Predicate {
    fn holds_for(&self, text: &str) -> bool {
        match self {
            Self::Is(values) => values.iter().any(|value| value == text),
            Self::IsNot(values) => values.iter().all(|value| value != text),
            Self::Has(parts) => contains_any(text, parts),
            Self::HasNot(parts) => !contains_any(text, parts),
            Self::Starts(starts) => starts.iter().any(|start| text.starts_with(start.as_str())),
            Self::Differ => true,
            Self::Exists => !text.is_empty(),
            Self::Absent => text.is_empty(),
            Self::Compare(_, _) => false,
        }
    }

    /// A predicate that says "not" must hold for all that was found, the others for some of it.
    fn holds(&self, found: &[String]) -> bool {
        match self {
            Self::IsNot(_) | Self::HasNot(_) | Self::Absent => found.iter().all(|text| self.holds_for(text)),
            Self::Differ => found.windows(2).any(|pair| pair[0] != pair[1]),
            Self::Is(_) | Self::Has(_) | Self::Starts(_) | Self::Exists | Self::Compare(_, _) => {
                found.iter().any(|text| self.holds_for(text))
            }
        }
    }
}

fn contains_any(text: &str, parts: &[String]) -> bool {
    let lower = text.to_lowercase();
    parts.iter().any(|part| lower.contains(part))
}
