//! Encodings and hashes, JSON and YAML.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;
use sha2::Digest;

use super::json_error::complaint;
use super::table::{Call, Row, Type, bytes, hex, new_text, text};
use crate::budget::Fault;
use crate::convert::{json_text, pretty_json_text, to_json};
use crate::value::{Scope, Value};
use crate::yaml;

const TEXT: &[Type] = &[Type::Text];
const ONE: &[Type] = &[Type::Any];

pub(super) const ROWS: &[Row] = &[
    ("b64enc", TEXT, None, |scope, given| {
        scope.allocate(bytes(given, 0).len() * 2)?;
        new_text(scope, base64::engine::general_purpose::STANDARD.encode(bytes(given, 0)))
    }),
    ("b64dec", TEXT, None, |scope, given| new_text(scope, decode_base64(bytes(given, 0)))),
    ("b32enc", TEXT, None, |scope, given| new_text(scope, encode_base32(bytes(given, 0)))),
    ("b32dec", TEXT, None, |scope, given| new_text(scope, decode_base32(bytes(given, 0)))),
    ("sha1sum", TEXT, None, |scope, given| hash::<sha1::Sha1>(scope, given)),
    ("sha256sum", TEXT, None, |scope, given| hash::<sha2::Sha256>(scope, given)),
    ("sha512sum", TEXT, None, |scope, given| hash::<sha2::Sha512>(scope, given)),
    ("adler32sum", TEXT, None, |scope, given| {
        scope.step(bytes(given, 0).len() / 64)?;
        let sums = bytes(given, 0).iter().fold((1u32, 0u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65_521;
            (low, (high + low) % 65_521)
        });
        Ok(Value::text(((sums.1 << 16) | sums.0).to_string()))
    }),
    ("fromJson", TEXT, None, |scope, given| {
        check_length(bytes(given, 0), "JSON")?;
        match parse_json(&text(given, 0)) {
            Ok(json) => Value::from_json(scope, &json),
            Err(_) => Ok(Value::Nil),
        }
    }),
    ("mustFromJson", TEXT, None, |scope, given| {
        check_length(bytes(given, 0), "JSON")?;
        Value::from_json(scope, &parse_json(&text(given, 0)).map_err(Fault)?)
    }),
    ("toJson", ONE, None, TO_JSON),
    ("mustToJson", ONE, None, TO_JSON),
    ("toPrettyJson", ONE, None, TO_PRETTY_JSON),
    ("mustToPrettyJson", ONE, None, TO_PRETTY_JSON),
    ("toRawJson", ONE, None, TO_RAW_JSON),
    ("mustToRawJson", ONE, None, TO_RAW_JSON),
    ("toYaml", ONE, None, |scope, given| {
        let text = yaml::write(scope, &to_json(scope, &given[0], 0)?)?;
        new_text(scope, text.strip_suffix('\n').unwrap_or(&text))
    }),
    ("fromYaml", TEXT, None, |scope, given| match read_yaml(scope, given)? {
        Json::Null => Value::map(scope, std::collections::BTreeMap::new()),
        map @ Json::Object(_) => Value::from_json(scope, &map),
        other => Err(wrong_yaml(&other, "map[string]interface {}")),
    }),
    ("fromYamlArray", TEXT, None, |scope, given| match read_yaml(scope, given)? {
        Json::Null => Value::list(scope, Vec::new()),
        list @ Json::Array(_) => Value::from_json(scope, &list),
        other => Err(wrong_yaml(&other, "[]interface {}")),
    }),
];

const TO_JSON: Call = |scope, given| new_text(scope, json_text(scope, &to_json(scope, &given[0], 0)?, true)?);
const TO_PRETTY_JSON: Call =
    |scope, given| new_text(scope, pretty_json_text(scope, &to_json(scope, &given[0], 0)?, true)?);
const TO_RAW_JSON: Call =
    |scope, given| new_text(scope, json_text(scope, &to_json(scope, &given[0], 0)?, false)?);

/// Longest text that is read. A value takes up to thirty times the memory of its text.
const MAX_READ: usize = 1 << 20;

fn check_length(text: &[u8], format: &str) -> Result<(), Fault> {
    if text.len() <= MAX_READ {
        return Ok(());
    }
    Err(Fault(format!(
        "the {format} is longer than {} MiB, the most that a template may read",
        MAX_READ >> 20
    )))
}

fn read_yaml(scope: &Scope, given: &[Value]) -> Result<Json, Fault> {
    check_length(bytes(given, 0), "YAML")?;
    let text = text(given, 0);
    scope.step(text.len())?;
    yaml::read(&text).map_err(|error| Fault(format!("error converting YAML to JSON: yaml: {error}")))
}

fn wrong_yaml(found: &Json, expected: &str) -> Fault {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    let reason = format!("json: cannot unmarshal {found} into Go value of type {expected}");
    Fault(format!("error unmarshaling JSON: while decoding JSON: {reason}"))
}

fn hash<D: Digest>(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let input = bytes(given, 0);
    scope.step(input.len() / 64)?;
    let sum = D::digest(input);
    Ok(Value::text(hex(&sum)))
}

/// The decoded bytes, or the message of Go's error: Sprig returns that as the result.
fn decode_base64(encoded: &[u8]) -> Vec<u8> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
    );
    let symbols: Vec<u8> = encoded.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    match LENIENT.decode(&symbols) {
        Ok(decoded) => decoded,
        Err(error) => {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _) => at,
                _ => symbols.len() - symbols.len() % 4,
            };
            format!("illegal base64 data at input byte {at}").into_bytes()
        }
    }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn encode_base32(input: &[u8]) -> String {
    let mut out = String::new();
    for chunk in input.chunks(5) {
        let mut block = [0; 8];
        block[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(block);
        let symbols = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let symbol = BASE32[usize::try_from(bits >> (35 - 5 * index) & 31).unwrap_or(0)];
            out.push(if index < symbols { char::from(symbol) } else { '=' });
        }
    }
    out
}

fn decode_base32(encoded: &[u8]) -> Vec<u8> {
    let symbols: Vec<u8> = encoded.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let illegal = |at: usize| format!("illegal base32 data at input byte {at}").into_bytes();
    let trimmed = symbols.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let mut out = Vec::new();
    let (mut bits, mut n_bits) = (0u64, 0);
    for (at, symbol) in symbols[..trimmed].iter().enumerate() {
        let Some(value) = BASE32.iter().position(|known| known == symbol) else { return illegal(at) };
        bits = bits << 5 | value as u64;
        n_bits += 5;
        if n_bits >= 8 {
            n_bits -= 8;
            out.push(u8::try_from(bits >> n_bits & 0xff).unwrap_or(0));
        }
    }
    if !symbols.len().is_multiple_of(8) {
        return illegal(symbols.len() - symbols.len() % 8);
    }
    out
}

/// JSON, with Go's words about what is wrong.
fn parse_json(text: &str) -> Result<Json, String> {
    serde_json::from_str(text).map_err(|_| {
        complaint(text.as_bytes())
            .unwrap_or_else(|| "the JSON is nested too deep, or a number is too large".to_owned())
    })
}
