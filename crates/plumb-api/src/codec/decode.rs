//! Protobuf to JSON.

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::CodecError;
use super::wire::{Item, Reader};
use crate::table::{Cardinality, Field, Kind, Message, MessageId, Tables};

/// Deepest nesting of messages.
const DEEPEST: usize = 100;
/// Most values of a message. A value takes 32 bytes and more, and an object with one field several hundred, however few bytes
/// the message has for it.
const MOST_VALUES: usize = 250_000;

/// Reads a message as a JSON object. Unknown fields are left out: newer clients send fields that the tables lack.
///
/// Go writes the empty values of fields that JSON leaves out. They are left out here, too, unless the field is one where
/// absent and empty differ.
pub fn decode(tables: &Tables, id: MessageId, bytes: &[u8]) -> Result<Value, CodecError> {
    Decoder { tables, left: Cell::new(MOST_VALUES) }.message(id, bytes, 0).map(Value::Object)
}

struct Decoder<'t> {
    tables: &'t Tables,
    /// How many values may still come.
    left: Cell<usize>,
}

impl Decoder<'_> {
    fn pay(&self, values: usize) -> Result<(), CodecError> {
        self.left.set(self.left.get().checked_sub(values).ok_or(CodecError::TooMany)?);
        Ok(())
    }

    fn message(&self, id: MessageId, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, CodecError> {
        let mut map = Map::new();
        self.fields(&mut map, self.tables.message(id).ok_or(CodecError::Damaged)?, bytes, depth)?;
        Ok(map)
    }

    fn fields(
        &self,
        map: &mut Map<String, Value>,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), CodecError> {
        if depth > DEEPEST {
            return Err(CodecError::TooDeep);
        }
        let mut reader = Reader::new(bytes);
        while let Some((number, item)) = reader.next()? {
            let Some(field) = message.by_number(number) else { continue };
            if field.is_inline {
                let (Kind::Message(id), Item::Bytes(bytes)) = (field.kind, item) else {
                    return Err(CodecError::Damaged);
                };
                let nested = self.tables.message(id).ok_or(CodecError::Damaged)?;
                self.fields(map, nested, bytes, depth + 1)?;
                continue;
            }
            self.field(map, field, item, depth)?;
        }
        Ok(())
    }

    fn field(
        &self,
        map: &mut Map<String, Value>,
        field: &Field,
        item: Item<'_>,
        depth: usize,
    ) -> Result<(), CodecError> {
        match field.cardinality {
            Cardinality::List => {
                let list = map.entry(field.json.clone()).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { return Err(CodecError::Damaged) };
                if let (Kind::Int | Kind::Bool, Item::Bytes(packed)) = (field.kind, item) {
                    let mut reader = Reader::new(packed);
                    while !reader.is_empty() {
                        list.push(self.one(field, Item::Number(reader.varint()?), depth)?);
                    }
                } else {
                    list.push(self.one(field, item, depth)?);
                }
            }
            Cardinality::Map => {
                let (key, value) = self.entry(field, item, depth)?;
                let entries = map.entry(field.json.clone()).or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(entries) = entries else { return Err(CodecError::Damaged) };
                entries.insert(key, value);
            }
            Cardinality::Plain => {
                let value = self.one(field, item, depth)?;
                if is_empty(&value) {
                    // The last value counts.
                    map.remove(&field.json);
                } else {
                    map.insert(field.json.clone(), value);
                }
            }
            Cardinality::Present | Cardinality::Required => {
                let value = self.one(field, item, depth)?;
                map.insert(field.json.clone(), value);
            }
        }
        Ok(())
    }

    fn entry(&self, field: &Field, item: Item<'_>, depth: usize) -> Result<(String, Value), CodecError> {
        let Item::Bytes(bytes) = item else { return Err(CodecError::Damaged) };
        let mut reader = Reader::new(bytes);
        let (mut key, mut value) = (String::new(), None);
        while let Some((number, item)) = reader.next()? {
            match (number, item) {
                (1, Item::Bytes(bytes)) => key = text(bytes)?,
                (2, item) => value = Some(self.one(field, item, depth)?),
                _ => {}
            }
        }
        // Go leaves out the value of an entry only if it is empty.
        let value = match value {
            Some(value) => value,
            None => match field.kind {
                Kind::Text | Kind::Bytes => json!(""),
                Kind::Bool => json!(false),
                Kind::Int => json!(0),
                Kind::Message(_) => json!({}),
                Kind::Raw | Kind::Time | Kind::IntOrText | Kind::Quantity => Value::Null,
            },
        };
        Ok((key, value))
    }

    fn one(&self, field: &Field, item: Item<'_>, depth: usize) -> Result<Value, CodecError> {
        self.pay(1)?;
        match (field.kind, item) {
            (Kind::Text, Item::Bytes(bytes)) => Ok(Value::String(text(bytes)?)),
            (Kind::Bool, Item::Number(number)) => Ok(Value::Bool(number != 0)),
            (Kind::Int, Item::Number(number)) => Ok(number.cast_signed().into()),
            (Kind::Bytes, Item::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
            (Kind::Raw, Item::Bytes(bytes)) => {
                self.pay(json_values(first_bytes(bytes)?.unwrap_or_default()))?;
                raw(bytes)
            }
            (Kind::Time, Item::Bytes(bytes)) => time(bytes),
            (Kind::IntOrText, Item::Bytes(bytes)) => int_or_text(bytes),
            (Kind::Quantity, Item::Bytes(bytes)) => {
                Ok(first_bytes(bytes)?.map(text).transpose()?.map_or(Value::Null, Value::String))
            }
            (Kind::Message(id), Item::Bytes(bytes)) => self.message(id, bytes, depth + 1).map(Value::Object),
            _ => Err(CodecError::Damaged),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn text(bytes: &[u8]) -> Result<String, CodecError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| CodecError::Damaged)
}

/// Field 1 of a message that has only that one.
fn first_bytes(bytes: &[u8]) -> Result<Option<&[u8]>, CodecError> {
    let mut reader = Reader::new(bytes);
    let mut found = None;
    while let Some((number, item)) = reader.next()? {
        if let (1, Item::Bytes(bytes)) = (number, item) {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// At least as many values as JSON has: commas and brackets, also those in texts.
fn json_values(json: &[u8]) -> usize {
    json.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}

fn raw(bytes: &[u8]) -> Result<Value, CodecError> {
    match first_bytes(bytes)?.filter(|bytes| !bytes.is_empty()) {
        None => Ok(Value::Null),
        Some(json) => serde_json::from_slice(json).map_err(|_| CodecError::Damaged),
    }
}

fn time(bytes: &[u8]) -> Result<Value, CodecError> {
    let mut reader = Reader::new(bytes);
    let mut seconds = None;
    while let Some((number, item)) = reader.next()? {
        if let (1, Item::Number(number)) = (number, item) {
            seconds = Some(number.cast_signed());
        }
    }
    let Some(seconds) = seconds else { return Ok(Value::Null) };
    let time = jiff::Timestamp::from_second(seconds).map_err(|_| CodecError::Damaged)?;
    Ok(time.to_string().into())
}

fn int_or_text(bytes: &[u8]) -> Result<Value, CodecError> {
    let mut reader = Reader::new(bytes);
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    while let Some((field, item)) = reader.next()? {
        match (field, item) {
            (1, Item::Number(kind)) => is_text = kind == 1,
            (2, Item::Number(value)) => number = value.cast_signed(),
            (3, Item::Bytes(bytes)) => words = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}
