//! When two scalars mean the same.

use jiff::SignedDuration;
use serde_json::Value;

use super::quantity::Quantity;
use crate::duration::parse_go_duration;
use crate::schema::Scalar;

/// How two scalars relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same value.
    Same,
    /// Another spelling of the same value.
    Respelled(Spelling),
    /// Other values.
    Different,
}

/// In what way a value is spelled differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spelling {
    /// `1000m` and `1`.
    Quantity,
    /// `4` and `"4"`.
    IntOrString,
    /// `8760h` and `8760h0m0s`.
    Duration,
    /// Base64 with line breaks.
    Base64,
    /// The same instant.
    Time,
    /// `stringData` and `data`.
    StringData,
    /// The order of a set, or of a list whose order means nothing.
    Order,
    /// An older version of the same kind.
    ApiVersion,
    /// The server itself prints Git's value like this.
    Server,
}

/// Compares two scalars as the server would, given what the schema says about the place.
pub(super) fn relate(desired: &Value, live: &Value, scalar: Option<Scalar>, built_in: bool) -> Relation {
    if desired == live || same_number(desired, live) {
        return Relation::Same;
    }
    match scalar {
        Some(Scalar::Quantity | Scalar::QuantityText) => {
            respelled(Quantity::of(desired), Quantity::of(live), Spelling::Quantity)
        }
        // Built-in kinds keep the type: `"80"` is a port's name there, not its number.
        Some(Scalar::IntOrString) if !built_in => {
            respelled(as_text(desired), as_text(live), Spelling::IntOrString)
        }
        Some(Scalar::Duration) => respelled(duration(desired), duration(live), Spelling::Duration),
        Some(Scalar::DateTime) => respelled(instant(desired), instant(live), Spelling::Time),
        Some(Scalar::Bytes) => respelled(bare_base64(desired), bare_base64(live), Spelling::Base64),
        Some(Scalar::String | Scalar::Integer | Scalar::Number | Scalar::Boolean | Scalar::IntOrString)
        | None => Relation::Different,
    }
}

/// Could `live` be what a controller prints after reading `desired`, where the schema only says "text"? Each
/// library prints in its own way (`1m`, `60s`, `1m0s`), so the value decides. It is for the caller to show that a
/// controller wrote it, and that the text is one that has a value.
pub(crate) fn reprinted(desired: &Value, live: &Value) -> Option<Spelling> {
    let (Value::String(desired), Value::String(live)) = (desired, live) else { return None };
    let duration = parse_go_duration(desired).ok();
    if duration.is_some() && duration == parse_go_duration(live).ok() {
        return Some(Spelling::Duration);
    }
    // Two bare numbers (`1.0` and `1`) may as well be versions.
    let has_suffix = Quantity::has_suffix(desired) || Quantity::has_suffix(live);
    let quantity = Quantity::parse(desired);
    (has_suffix && quantity.is_some() && quantity == Quantity::parse(live)).then_some(Spelling::Quantity)
}

fn respelled<T: PartialEq>(desired: Option<T>, live: Option<T>, spelling: Spelling) -> Relation {
    match (desired, live) {
        (Some(desired), Some(live)) if desired == live => Relation::Respelled(spelling),
        _ => Relation::Different,
    }
}

/// `1` and `1.0` are one number, though not one `serde_json` number.
pub(super) fn same_number(one: &Value, other: &Value) -> bool {
    let (Value::Number(one), Value::Number(other)) = (one, other) else { return false };
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn instant(value: &Value) -> Option<jiff::Timestamp> {
    value.as_str()?.parse().ok()
}

fn duration(value: &Value) -> Option<SignedDuration> {
    parse_go_duration(value.as_str()?).ok()
}

fn bare_base64(value: &Value) -> Option<String> {
    Some(value.as_str()?.split_ascii_whitespace().collect())
}

/// A value that reads the same as no value at all in Go: `false`, `0`, `""`, `[]`, `{}`, `null`.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
