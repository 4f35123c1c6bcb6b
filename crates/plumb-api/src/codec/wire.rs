//! The bytes of protobuf: numbers, tags and lengths.

use super::error::CodecError;

/// A number of variable length.
pub(super) const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
/// Bytes with a length before them.
pub(super) const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

pub(super) fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u64) {
    put_varint(out, (u64::from(field) << 3) | wire_type);
}

pub(super) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_tag(out, field, LENGTH);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn put_number(out: &mut Vec<u8>, field: u32, number: u64) {
    put_tag(out, field, VARINT);
    put_varint(out, number);
}

/// One value as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A type that no field of the tables has.
    Other,
}

/// Reads fields one after the other.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field and its value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Item<'a>)>, CodecError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = u32::try_from(tag >> 3).map_err(|_| CodecError::Damaged)?;
        let item = match tag & 7 {
            VARINT => Item::Number(self.varint()?),
            FIXED_64 => self.take(8).map(|_| Item::Other)?,
            LENGTH => {
                let length = usize::try_from(self.varint()?).map_err(|_| CodecError::Damaged)?;
                Item::Bytes(self.take(length)?)
            }
            FIXED_32 => self.take(4).map(|_| Item::Other)?,
            _ => return Err(CodecError::Damaged),
        };
        Ok(Some((field, item)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, CodecError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(CodecError::Damaged)?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(CodecError::Damaged)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], CodecError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CodecError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }
}
