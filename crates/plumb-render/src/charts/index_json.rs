//! An index in JSON, read as a stream: of other charts and other fields no value is kept.

use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::index::{ChartVersions, IndexEntry, IndexError};

/// The versions of one chart; `None` if the text is no JSON.
pub(super) fn read(reader: impl Read, name: &str) -> Result<Option<ChartVersions>, IndexError> {
    let mut found = None;
    let mut over = None;
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = json.deserialize_map(Top { name, found: &mut found, over: &mut over });
    match (over, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => found.map(Some).ok_or(IndexError::NoEntries),
        (None, Err(_)) => Ok(None),
    }
}

/// The index itself.
struct Top<'a> {
    name: &'a str,
    found: &'a mut Option<ChartVersions>,
    /// A limit that was exceeded.
    over: &'a mut Option<IndexError>,
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "entries" {
                map.next_value_seed(Entries { name: self.name, found: self.found, over: self.over })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// `entries`.
struct Entries<'a> {
    name: &'a str,
    found: &'a mut Option<ChartVersions>,
    over: &'a mut Option<IndexError>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("charts by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut n_charts = 0;
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            n_charts += 1;
            if key == self.name && found.is_none() {
                let versions = ChartVersions::new(true, n_charts);
                found = Some(map.next_value_seed(Versions { versions, over: self.over })?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        *self.found = Some(found.unwrap_or_else(|| ChartVersions::new(false, n_charts)));
        Ok(())
    }
}

/// The versions of the chart.
struct Versions<'a> {
    versions: ChartVersions,
    over: &'a mut Option<IndexError>,
}

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = ChartVersions;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<ChartVersions, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = ChartVersions;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of versions")
    }

    fn visit_unit<E>(self) -> Result<ChartVersions, E> {
        Ok(self.versions)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<ChartVersions, A::Error> {
        while let Some(entry) = list.next_element_seed(Entry)? {
            let Some(entry) = entry else { continue };
            if let Err(error) = self.versions.push(entry) {
                *self.over = Some(error);
                return Err(serde::de::Error::custom("too many versions"));
            }
        }
        Ok(self.versions)
    }
}

/// One version; `None` if it has another shape.
struct Entry;

impl<'de> DeserializeSeed<'de> for Entry {
    type Value = Option<IndexEntry>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry {
    type Value = Option<IndexEntry>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a version")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut version, mut url, mut digest) = (String::new(), None, String::new());
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => version = map.next_value_seed(FirstText)?.unwrap_or_default(),
                "digest" => digest = map.next_value_seed(FirstText)?.unwrap_or_default(),
                "urls" => url = map.next_value_seed(FirstText)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(url.map(|url| IndexEntry { version, url, digest }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A text, or the first text of a list; `None` for every other value.
struct FirstText;

impl<'de> DeserializeSeed<'de> for FirstText {
    type Value = Option<String>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstText {
    type Value = Option<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut first = None;
        while let Some(text) = list.next_element_seed(FirstText)? {
            first = first.or(text);
        }
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map).map(|_| None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
}
