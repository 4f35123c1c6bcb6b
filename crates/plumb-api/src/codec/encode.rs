//! JSON to protobuf.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::error::CodecError;
use super::wire::{put_bytes, put_number};
use crate::table::{Cardinality, Field, Kind, Message, MessageId, Tables};

/// Deepest nesting of messages.
const DEEPEST: usize = 100;

/// Writes a JSON object as this message. Fields that the message does not have are left out.
pub fn encode(tables: &Tables, id: MessageId, value: &Value) -> Result<Vec<u8>, CodecError> {
    let mut out = Vec::new();
    Encoder { tables }.message(&mut out, id, value, "the message", 0)?;
    Ok(out)
}

struct Encoder<'t> {
    tables: &'t Tables,
}

fn unexpected(field: &str, expected: &'static str) -> CodecError {
    CodecError::Unexpected { field: field.to_owned(), expected }
}

impl Encoder<'_> {
    fn message(
        &self,
        out: &mut Vec<u8>,
        id: MessageId,
        value: &Value,
        name: &str,
        depth: usize,
    ) -> Result<(), CodecError> {
        if depth > DEEPEST {
            return Err(CodecError::TooDeep);
        }
        let message = self.tables.message(id).ok_or(CodecError::Damaged)?;
        match value {
            Value::Null => self.fields(out, message, &Map::new(), depth),
            Value::Object(map) => self.fields(out, message, map, depth),
            _ => Err(unexpected(name, "an object")),
        }
    }

    fn fields(
        &self,
        out: &mut Vec<u8>,
        message: &Message,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), CodecError> {
        for field in &message.fields {
            if field.is_inline {
                self.inline(out, field, map, depth)?;
                continue;
            }
            match map.get(&field.json).filter(|value| !value.is_null()) {
                Some(value) => self.field(out, field, value, depth)?,
                None if field.cardinality == Cardinality::Required => self.empty(out, field, depth)?,
                None => {}
            }
        }
        Ok(())
    }

    /// A nested message whose fields JSON has side by side with the others.
    fn inline(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), CodecError> {
        let Kind::Message(id) = field.kind else { return Err(CodecError::Damaged) };
        let nested = self.tables.message(id).ok_or(CodecError::Damaged)?;
        let mut inner = Vec::new();
        self.fields(&mut inner, nested, map, depth + 1)?;
        if !inner.is_empty() {
            put_bytes(out, field.number, &inner);
        }
        Ok(())
    }

    fn field(&self, out: &mut Vec<u8>, field: &Field, value: &Value, depth: usize) -> Result<(), CodecError> {
        match field.cardinality {
            Cardinality::List => {
                let items = value.as_array().ok_or_else(|| unexpected(&field.json, "a list"))?;
                items.iter().try_for_each(|item| self.one(out, field, field.number, item, depth))
            }
            Cardinality::Map => {
                let entries = value.as_object().ok_or_else(|| unexpected(&field.json, "a map"))?;
                for (key, value) in entries {
                    let mut entry = Vec::new();
                    put_bytes(&mut entry, 1, key.as_bytes());
                    self.one(&mut entry, field, 2, value, depth)?;
                    put_bytes(out, field.number, &entry);
                }
                Ok(())
            }
            Cardinality::Plain | Cardinality::Present | Cardinality::Required => {
                self.one(out, field, field.number, value, depth)
            }
        }
    }

    fn one(
        &self,
        out: &mut Vec<u8>,
        field: &Field,
        number: u32,
        value: &Value,
        depth: usize,
    ) -> Result<(), CodecError> {
        let name = field.json.as_str();
        match field.kind {
            Kind::Text => {
                let text = value.as_str().ok_or_else(|| unexpected(name, "a text"))?;
                put_bytes(out, number, text.as_bytes());
            }
            Kind::Bool => {
                let truth = value.as_bool().ok_or_else(|| unexpected(name, "true or false"))?;
                put_number(out, number, u64::from(truth));
            }
            Kind::Int => put_number(out, number, whole(value).ok_or_else(|| unexpected(name, "a number"))?),
            Kind::Bytes => {
                let text = value.as_str().ok_or_else(|| unexpected(name, "a base64 text"))?;
                let bytes = STANDARD.decode(text).map_err(|_| unexpected(name, "a base64 text"))?;
                put_bytes(out, number, &bytes);
            }
            Kind::Raw => {
                let mut inner = Vec::new();
                put_bytes(&mut inner, 1, value.to_string().as_bytes());
                put_bytes(out, number, &inner);
            }
            Kind::Time => put_bytes(out, number, &time(value).ok_or_else(|| unexpected(name, "a time"))?),
            Kind::IntOrText => {
                put_bytes(
                    out,
                    number,
                    &int_or_text(value).ok_or_else(|| unexpected(name, "a number or a text"))?,
                );
            }
            Kind::Quantity => {
                let mut inner = Vec::new();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                put_bytes(&mut inner, 1, text.as_bytes());
                put_bytes(out, number, &inner);
            }
            Kind::Message(id) => {
                let mut inner = Vec::new();
                self.message(&mut inner, id, value, name, depth + 1)?;
                put_bytes(out, number, &inner);
            }
        }
        Ok(())
    }

    /// A required field without a value: Go's decoder refuses a message that lacks it.
    fn empty(&self, out: &mut Vec<u8>, field: &Field, depth: usize) -> Result<(), CodecError> {
        match field.kind {
            Kind::Bool | Kind::Int => put_number(out, field.number, 0),
            Kind::Message(id) => {
                let mut inner = Vec::new();
                self.message(&mut inner, id, &Value::Null, &field.json, depth + 1)?;
                put_bytes(out, field.number, &inner);
            }
            _ => put_bytes(out, field.number, &[]),
        }
        Ok(())
    }
}

/// Negative numbers are written as 64 bits, as protobuf does for both sizes.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_i64().or_else(|| value.as_str()?.parse().ok())?;
    Some(number.cast_unsigned())
}

fn time(value: &Value) -> Option<Vec<u8>> {
    let time: jiff::Timestamp = value.as_str()?.parse().ok()?;
    let mut inner = Vec::new();
    put_number(&mut inner, 1, time.as_second().cast_unsigned());
    let nanos = u64::try_from(time.subsec_nanosecond()).unwrap_or_default();
    if nanos > 0 {
        put_number(&mut inner, 2, nanos);
    }
    Some(inner)
}

fn int_or_text(value: &Value) -> Option<Vec<u8>> {
    let mut inner = Vec::new();
    if let Some(text) = value.as_str() {
        put_number(&mut inner, 1, 1);
        put_bytes(&mut inner, 3, text.as_bytes());
    } else {
        put_number(&mut inner, 1, 0);
        put_number(&mut inner, 2, value.as_i64()?.cast_unsigned());
    }
    Some(inner)
}
