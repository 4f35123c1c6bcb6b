//! JSON and protobuf, converted by table.

mod decode;
mod encode;
mod error;
mod wire;

#[cfg(test)]
mod tests;

pub use decode::decode;
pub use encode::encode;
pub use error::CodecError;
