//! One object in the store.

use std::fmt;
use std::sync::Arc;

use plumb_core::object::{Manifest, ObjectKey};

use crate::packed::PackedObject;

/// `metadata.uid`. Nearly always a UUID, which fits in 16 bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    Uuid([u8; 16]),
    Other(Arc<str>),
}

impl Uid {
    /// Reads a uid; any text is valid.
    pub fn new(text: &str) -> Self {
        match uuid(text) {
            Some(number) => Self(Form::Uuid(number.to_be_bytes())),
            None => Self(Form::Other(text.into())),
        }
    }
}

/// Accepts only lowercase UUIDs with dashes, so that printing returns the same text.
fn uuid(text: &str) -> Option<u128> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    if text.len() != 36 {
        return None;
    }
    let mut number = 0u128;
    for (at, byte) in text.bytes().enumerate() {
        if DASHES.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Uuid(number) => {
                let hex = format!("{:032x}", u128::from_be_bytes(*number));
                let (start, rest) = hex.split_at(8);
                let (low, rest) = rest.split_at(4);
                let (high, rest) = rest.split_at(4);
                let (clock, node) = rest.split_at(4);
                write!(f, "{start}-{low}-{high}-{clock}-{node}")
            }
            Form::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A kind, as a number.
pub(super) type KindId = u32;

/// Identity of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) kind: KindId,
    pub(super) namespace: Option<Arc<str>>,
    pub(super) name: Arc<str>,
}

/// One object. Other fields are in the packed body, if the object is kept whole, or have to be fetched.
pub(super) struct Record {
    pub(super) address: Address,
    pub(super) uid: Uid,
    /// The resource version, a growing number; zero for servers whose versions are not numbers.
    pub(super) version: u64,
    /// The list or watch in which it was last seen.
    pub(super) round: u32,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) terminating: bool,
    /// True for a Secret that a controller makes and another manager may have written to.
    pub(super) may_be_edited: bool,
    /// The app that its tracking mark names.
    pub(super) mark: Option<Arc<str>>,
    pub(super) parents: Box<[Uid]>,
    /// The objects that it refers to by name.
    pub(super) refs: Box<[Address]>,
    pub(super) images: Box<[Arc<str>]>,
    pub(super) body: Option<PackedObject>,
}

/// An object as the tree shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Which object.
    pub key: ObjectKey,
    /// The API version it is watched in, such as `v1`.
    pub version: String,
    /// Its uid.
    pub uid: Uid,
    /// Its resource version.
    pub resource_version: String,
    /// The uids of its owners, real or inferred.
    pub parents: Vec<Uid>,
    /// Creation time in seconds since 1970; 0 if unknown.
    pub created: i64,
    /// True if it has a deletion timestamp.
    pub terminating: bool,
    /// True for a Secret that a controller makes and another manager may have written to.
    pub may_be_edited: bool,
    /// The app that tracks it, by instance name; only objects without owner are tracked.
    pub owner: Option<Arc<str>>,
    /// The images of its containers, if it is a Pod.
    pub images: Vec<Arc<str>>,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: Uid,
    /// Its resource version.
    pub resource_version: u64,
    /// True if it was deleted.
    pub gone: bool,
    /// How plumb learnt of it.
    pub origin: Origin,
    /// The apps that this concerns; empty for objects without an app.
    pub touched: Vec<Touched>,
    /// Its last state, if it was deleted, was kept whole and concerns an app: how a Job ended that was
    /// deleted after its TTL.
    pub last: Option<Arc<Manifest>>,
}

/// How a change became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From a watch event.
    Watched,
    /// From the answer to a write of plumb; the watch event that follows is not reported again.
    Written,
}

/// An app that a change concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Touched {
    /// Its instance name.
    pub instance: Arc<str>,
    /// How the object relates to the app.
    pub role: Role,
}

/// How an object relates to an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It has, or had until this change, the app's tracking mark.
    Tracked,
    /// The app's desired set has this key.
    Wanted,
    /// It descends from an object with the app's tracking mark.
    Child,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_prints_as_it_was_read() {
        for text in [
            "0b9f1c4e-8d3a-4f6e-9a51-3c2b1a09f8e7",
            "00000000-0000-0000-0000-000000000000",
            "0B9F1C4E-8d3a-4f6e-9a51-3c2b1a09f8e7",
            "0b9f1c4e8d3a4f6e9a513c2b1a09f8e7",
            "",
            "some/uid",
        ] {
            assert_eq!(Uid::new(text).to_string(), text);
        }
        assert_eq!(size_of::<Uid>(), 24);
    }
}
