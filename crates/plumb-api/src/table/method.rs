//! Calls and their REST rules.

use super::message::MessageId;

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// `package.Service/Method`: its path in gRPC, without the first slash.
    pub path: String,
    /// The message of the request.
    pub input: MessageId,
    /// The message of an answer.
    pub output: MessageId,
    /// True if the client sends several messages.
    pub client_streams: bool,
    /// True if the server sends several messages.
    pub server_streams: bool,
    /// How REST reaches it.
    pub rules: Vec<Rule>,
}

/// One way to reach a call by REST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The verb of HTTP.
    pub verb: String,
    /// The parts of the path.
    pub segments: Vec<Segment>,
    /// The field that the body is: `*` for the whole request, empty for none.
    pub body: String,
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// This text.
    Text(String),
    /// A value for the field with these names.
    Field(Vec<String>),
    /// All that follows, for the field with these names.
    Rest(Vec<String>),
}
