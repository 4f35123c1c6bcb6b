//! Typed values of a JSON document that are absent if they have another type, and lists that keep a bounded number of
//! entries. The parser skips what is not kept, without storing it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longest text that is kept. Addresses, branches and paths are far shorter.
const MAX_TEXT: usize = 4096;

/// A text, or nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text(Option<Box<str>>);

impl Text {
    /// The text, unless it is empty.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    pub(super) fn to_owned_text(&self) -> Option<String> {
        self.get().map(str::to_owned)
    }
}

/// True or false; anything else is false.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flag(pub(super) bool);

/// A whole number, or nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Number(pub(super) Option<u64>);

/// An object, or its default.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Maybe<T>(pub(super) T);

/// The first entries of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List<T, const MOST: usize> {
    items: Vec<T>,
    n_all: usize,
}

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self { items: Vec::new(), n_all: 0 }
    }
}

impl<T, const MOST: usize> List<T, MOST> {
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    /// How many entries the document has.
    pub(super) fn n_all(&self) -> usize {
        self.n_all
    }

    /// True if the document has more entries than are kept.
    pub(super) fn is_cut(&self) -> bool {
        self.n_all > self.items.len()
    }
}

/// The kinds of JSON values that a type takes. It skips all others and is then its default.
trait Takes<'de>: Default {
    fn text(_: &str) -> Self {
        Self::default()
    }
    fn flag(_: bool) -> Self {
        Self::default()
    }
    fn number(_: u64) -> Self {
        Self::default()
    }
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_map(map)?;
        Ok(Self::default())
    }
    fn list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        IgnoredAny.visit_seq(list)?;
        Ok(Self::default())
    }
}

impl Takes<'_> for Text {
    fn text(text: &str) -> Self {
        Self((text.len() <= MAX_TEXT).then(|| text.into()))
    }
}

impl Takes<'_> for Flag {
    fn flag(flag: bool) -> Self {
        Self(flag)
    }
}

impl Takes<'_> for Number {
    fn number(number: u64) -> Self {
        Self(Some(number))
    }
}

impl<'de, T: Deserialize<'de> + Default> Takes<'de> for Maybe<T> {
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Self)
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Takes<'de> for List<T, MOST> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut kept = Self::default();
        while kept.items.len() < MOST {
            let Some(item) = list.next_element()? else { return Ok(kept) };
            kept.items.push(item);
            kept.n_all += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            kept.n_all += 1;
        }
        Ok(kept)
    }
}

/// Reads the kinds of values that a type takes.
struct Any<T>(PhantomData<T>);

impl<'de, T: Takes<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }
    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }
    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::number(number))
    }
    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// Parses a body.
pub(super) fn parse<'a, T: Deserialize<'a> + Default>(body: &'a [u8]) -> Result<T, String> {
    // The error of the parser can quote the body, which any sender wrote, so only its place is told.
    serde_json::from_slice::<Maybe<T>>(body).map(|body| body.0).map_err(|error| {
        format!("the body is not JSON as documented: line {}, column {}", error.line(), error.column())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> T {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_value_of_another_type_is_absent() {
        for other in ["3", "-3", "3.5", "null", "true", "[[1]]", "{\"a\": {}}"] {
            assert_eq!(read::<Text>(other), Text::default(), "{other}");
        }
        for other in ["-3", "3.5", "null", "true", "[]", "{}", "\"3\""] {
            assert_eq!(read::<Number>(other), Number(None), "{other}");
            assert_eq!(read::<List<Text, 2>>(other).n_all(), 0, "{other}");
        }
        assert_eq!((read("true"), read("7")), (Flag(true), Number(Some(7))));
        assert_eq!(read::<Text>("\"a\\u0062\"").get(), Some("ab"));
        assert_eq!(read::<Text>(&format!("\"{}\"", "x".repeat(MAX_TEXT + 1))).get(), None);
    }

    #[test]
    fn a_list_keeps_its_first_entries_and_counts_the_rest() {
        let list: List<Text, 2> = read("[\"a\", \"b\", {\"c\": []}, 4]");
        let kept: Vec<&str> = list.items().iter().filter_map(Text::get).collect();
        assert_eq!((kept, list.n_all(), list.is_cut()), (vec!["a", "b"], 4, true));
        assert!(!read::<List<Text, 2>>("[1, 2]").is_cut());
    }
}
