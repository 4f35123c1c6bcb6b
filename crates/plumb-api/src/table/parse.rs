//! Reads the tables.
//!
//! A message is a line with its name, followed by its fields: two spaces, the name, the number, what it holds, and marks:
//! `required`, `optional` and `pointer` (absent and empty differ), `repeated`, `map`, `inline`, `json=NAME`. A call is a
//! line with its name and its messages below the name of its service; its REST rules follow with four spaces.

use std::collections::HashMap;

use super::message::{Cardinality, Field, Kind, Message, MessageId};
use super::method::{Method, Rule, Segment};

/// A line of a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the line `{0}` of a table")]
pub(super) struct TableError(String);

fn wrong(line: &str) -> TableError {
    TableError(line.to_owned())
}

/// Reads messages. A field may name a message of any of the texts.
pub(super) fn messages(texts: &[&str]) -> Result<Vec<Message>, TableError> {
    let lines = || texts.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty());
    let names = lines().filter(|line| !line.starts_with(' '));
    let ids: HashMap<&str, MessageId> =
        names.enumerate().map(|(index, name)| (name, MessageId(index))).collect();
    let mut messages: Vec<Message> = Vec::with_capacity(ids.len());
    for line in lines() {
        match line.strip_prefix("  ") {
            None => messages.push(Message { name: line.to_owned(), fields: Vec::new() }),
            Some(text) => {
                let field = field(text, &ids)?;
                messages.last_mut().ok_or_else(|| wrong(line))?.fields.push(field);
            }
        }
    }
    for message in &mut messages {
        message.fields.sort_by_key(|field| field.number);
    }
    Ok(messages)
}

fn field(text: &str, ids: &HashMap<&str, MessageId>) -> Result<Field, TableError> {
    let mut words = text.split(' ');
    let mut next = || words.next().ok_or_else(|| wrong(text));
    let (name, number, holds) = (next()?, next()?, next()?);
    let kind = match holds {
        "string" => Kind::Text,
        "bool" => Kind::Bool,
        "int32" | "int64" => Kind::Int,
        "bytes" => Kind::Bytes,
        "raw" => Kind::Raw,
        "time" => Kind::Time,
        "int-or-string" => Kind::IntOrText,
        "quantity" => Kind::Quantity,
        message => Kind::Message(*ids.get(message).ok_or_else(|| wrong(text))?),
    };
    let mut field = Field {
        json: name.to_owned(),
        number: number.parse().map_err(|_| wrong(text))?,
        kind,
        cardinality: Cardinality::Plain,
        is_inline: false,
    };
    for mark in words {
        match mark {
            "required" => field.cardinality = Cardinality::Required,
            "optional" | "pointer" => field.cardinality = Cardinality::Present,
            "repeated" => field.cardinality = Cardinality::List,
            "map" => field.cardinality = Cardinality::Map,
            "inline" => field.is_inline = true,
            other => {
                let json = other.strip_prefix("json=").ok_or_else(|| wrong(text))?;
                json.clone_into(&mut field.json);
            }
        }
    }
    Ok(field)
}

/// Reads calls.
pub(super) fn methods(text: &str, ids: &HashMap<String, MessageId>) -> Result<Vec<Method>, TableError> {
    let mut methods: Vec<Method> = Vec::new();
    let mut service = "";
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rule_text) = line.strip_prefix("    ") {
            let method = methods.last_mut().ok_or_else(|| wrong(line))?;
            method.rules.push(rule(rule_text).ok_or_else(|| wrong(line))?);
        } else if let Some(method_text) = line.strip_prefix("  ") {
            methods.push(method(service, method_text, ids).ok_or_else(|| wrong(line))?);
        } else {
            service = line;
        }
    }
    Ok(methods)
}

fn method(service: &str, text: &str, ids: &HashMap<String, MessageId>) -> Option<Method> {
    let mut words = text.split(' ');
    let name = words.next()?;
    let mut next = || {
        let word = words.next()?;
        if word == "stream" { Some((true, words.next()?)) } else { Some((false, word)) }
    };
    let (client_streams, input) = next()?;
    let (server_streams, output) = next()?;
    Some(Method {
        path: format!("{service}/{name}"),
        input: *ids.get(input)?,
        output: *ids.get(output)?,
        client_streams,
        server_streams,
        rules: Vec::new(),
    })
}

fn rule(text: &str) -> Option<Rule> {
    let mut words = text.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.strip_prefix('/')?);
    let names = |text: &str| text.split('.').map(str::to_owned).collect();
    let segments =
        path.split('/').map(|part| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            None => Segment::Text(part.to_owned()),
            Some(field) => match field.strip_suffix("=**") {
                Some(field) => Segment::Rest(names(field)),
                None => Segment::Field(names(field)),
            },
        });
    Some(Rule { verb, segments: segments.collect(), body: words.next().unwrap_or_default().to_owned() })
}
