//! What a scalar means.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::YamlProblem;
use super::number::{self, Numeric};
use super::timestamp::is_timestamp;

/// How a scalar is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Plain and without tag: its text decides.
    Implicit,
    /// Quoted, or with a tag that only its author knows: text.
    Text,
    /// `!!str`: text too, but a plain one that is missing is empty, not null.
    Str,
    /// `!!bool`.
    Bool,
    /// `!!int`.
    Int,
    /// `!!float`.
    Float,
    /// `!!null`.
    Null,
    /// `!!timestamp`.
    Timestamp,
    /// `!!binary`: base64 of text.
    Binary,
    /// `!!merge`: text, and as the key `<<` a merge.
    Merge,
    /// A mere `!`: text, and as the key `<<` a merge all the same.
    Bang,
}

/// What a scalar says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Number(Numeric),
    Text(String),
}

/// What the text means under its tag.
pub(super) fn resolve(tag: Tag, text: &str) -> Result<Resolved, YamlProblem> {
    let as_text = || Ok(Resolved::Text(text.to_owned()));
    let wrong = |wanted| Err(YamlProblem::Tag { wanted });
    match tag {
        Tag::Implicit => Ok(implicit(text)),
        Tag::Text | Tag::Str | Tag::Merge | Tag::Bang => as_text(),
        Tag::Bool => match implicit(text) {
            found @ Resolved::Bool(_) => Ok(found),
            Resolved::Null | Resolved::Number(_) | Resolved::Text(_) => wrong("a boolean"),
        },
        Tag::Int => match implicit(text) {
            found @ Resolved::Number(Numeric::Int(_) | Numeric::Large(_)) => Ok(found),
            Resolved::Null | Resolved::Bool(_) | Resolved::Number(Numeric::Float(_)) | Resolved::Text(_) => {
                wrong("an integer")
            }
        },
        Tag::Float => match implicit(text) {
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for a float")]
            Resolved::Number(Numeric::Int(int)) => Ok(Resolved::Number(Numeric::Float(int as f64))),
            found @ Resolved::Number(Numeric::Float(_)) => Ok(found),
            Resolved::Null | Resolved::Bool(_) | Resolved::Number(Numeric::Large(_)) | Resolved::Text(_) => {
                wrong("a float")
            }
        },
        Tag::Null => match implicit(text) {
            Resolved::Null => Ok(Resolved::Null),
            Resolved::Bool(_) | Resolved::Number(_) | Resolved::Text(_) => wrong("null"),
        },
        Tag::Timestamp => {
            if is_timestamp(text) {
                as_text()
            } else {
                wrong("a timestamp")
            }
        }
        Tag::Binary => decode(text).map(Resolved::Text),
    }
}

fn implicit(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Resolved::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Resolved::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Resolved::Number(Numeric::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Resolved::Number(Numeric::Float(f64::INFINITY));
        }
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Number(Numeric::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => number::parse_fraction(text),
        Some(b'0'..=b'9' | b'+' | b'-') => number::parse(text),
        _ => None,
    };
    number.map_or_else(|| Resolved::Text(text.to_owned()), Resolved::Number)
}

/// Base64 as Go decodes it: line breaks do not matter, padding does, stray bits in the last digit do not.
/// Bytes that are not UTF-8 become replacement characters one by one, as Go's JSON has them.
fn decode(text: &str) -> Result<String, YamlProblem> {
    const LENIENT: GeneralPurpose =
        GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    let joined: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    let bytes = LENIENT.decode(joined).map_err(|_| YamlProblem::Base64)?;
    let mut decoded = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}

impl Resolved {
    /// As a value of a JSON document.
    pub(super) fn into_value(self) -> Result<Value, YamlProblem> {
        match self {
            Self::Null => Ok(Value::Null),
            Self::Bool(value) => Ok(Value::Bool(value)),
            Self::Number(number) => number::to_json(number).ok_or(YamlProblem::NotFinite),
            Self::Text(text) => Ok(Value::String(text)),
        }
    }

    /// As a key of a JSON map.
    pub(super) fn into_key(self) -> Result<String, YamlProblem> {
        match self {
            Self::Null => Err(YamlProblem::Key { found: "null" }),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Number(Numeric::Int(int)) => Ok(int.to_string()),
            Self::Number(Numeric::Large(_)) => Err(YamlProblem::Key { found: "an integer beyond 64 bits" }),
            Self::Number(Numeric::Float(float)) => Ok(number::float_key(float)),
            Self::Text(text) => Ok(text),
        }
    }
}
