//! Argo CD's API as tables.
//!
//! [`Tables`] names every message, call and REST rule; the numbers of fields are facts of the interface. [`encode`] and
//! [`decode`] convert between JSON and protobuf by these tables, so a handler sees JSON only. [`rest`](Tables::route)
//! finds the call of an HTTP request. This crate has no network: `plumb-server` opens the doors.
//!
//! A module uses only modules that are listed above it.

mod status;
mod table;
mod codec;
mod framing;
mod rest;
mod selected_fields;

pub use codec::{CodecError, decode, encode};
pub use framing::{FRAME_HEAD, FrameError, frame, grpc_message, trailer_frame, unframe};
pub use rest::{NoRoute, Routed, query_pairs};
pub use selected_fields::SelectedFields;
pub use status::{Code, Status};
pub use table::{Cardinality, Field, Kind, Message, MessageId, Method, Rule, Tables};
