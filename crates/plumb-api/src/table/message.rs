//! Messages and their fields.

/// The place of a message in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId(pub(super) usize);

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// A whole number of 32 or 64 bits.
    Int,
    /// Bytes; base64 in JSON.
    Bytes,
    /// Any JSON, as text in field 1 of a message.
    Raw,
    /// A time: RFC 3339 in JSON, seconds and nanoseconds in protobuf.
    Time,
    /// A number or a text.
    IntOrText,
    /// A quantity of Kubernetes: a text in field 1 of a message.
    Quantity,
    /// Another message.
    Message(MessageId),
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// At most once; absent and empty are equal.
    Plain,
    /// At most once; absent and empty differ.
    Present,
    /// Exactly once: Go's decoder refuses a message without it.
    Required,
    /// Any number of times.
    List,
    /// Entries with a text as key.
    Map,
}

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON.
    pub json: String,
    /// Its number in protobuf.
    pub number: u32,
    /// What it holds.
    pub kind: Kind,
    /// How often it occurs.
    pub cardinality: Cardinality,
    /// True if protobuf nests what JSON has side by side with the other fields.
    pub is_inline: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its name, with a short name of its package.
    pub name: String,
    /// Its fields by number.
    pub fields: Vec<Field>,
}

impl Message {
    /// The field with this number.
    pub fn by_number(&self, number: u32) -> Option<&Field> {
        self.fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()
            .and_then(|at| self.fields.get(at))
    }

    /// The field with this name in JSON; upper and lower case count alike, as in Go.
    pub fn by_json(&self, name: &str) -> Option<&Field> {
        let exact = self.fields.iter().find(|field| field.json == name);
        exact.or_else(|| self.fields.iter().find(|field| field.json.eq_ignore_ascii_case(name)))
    }
}
