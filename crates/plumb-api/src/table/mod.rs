//! The tables: messages with their fields, calls with their REST rules.

mod message;
mod method;
mod parse;
mod tables;

pub use message::{Cardinality, Field, Kind, Message, MessageId};
pub(crate) use method::Segment;
pub use method::{Method, Rule};
pub use tables::Tables;
