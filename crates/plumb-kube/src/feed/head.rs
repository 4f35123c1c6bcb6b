//! The metadata of an object, parsed without the rest of the object.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

/// Text that borrows from the JSON it was read from, unless it contains an escape.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The metadata of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Head<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) namespace: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) resource_version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) creation_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) deletion_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) labels: Option<BTreeMap<Text<'a>, Text<'a>>>,
    #[serde(borrow)]
    pub(crate) annotations: Option<BTreeMap<Text<'a>, Text<'a>>>,
    #[serde(borrow)]
    pub(crate) owner_references: Option<Vec<OwnerReference<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OwnerReference<'a> {
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
}

impl Head<'_> {
    /// Namespace, if the object is namespaced.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_ref().map(|text| text.0.as_ref()).filter(|text| !text.is_empty())
    }

    /// The labels and annotations that tracking reads.
    pub(crate) fn marks(&self) -> Marks<'_> {
        Marks { head: self }
    }
}

/// The labels and annotations of an object, from which tracking finds its app.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    head: &'a Head<'a>,
}

impl Marks<'_> {
    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        lookup(self.head.metadata.labels.as_ref(), key)
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        lookup(self.head.metadata.annotations.as_ref(), key)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.head.metadata.name
    }

    /// The object's namespace, if it is namespaced.
    pub fn namespace(&self) -> Option<&str> {
        self.head.namespace()
    }
}

fn lookup<'m>(map: Option<&'m BTreeMap<Text<'_>, Text<'_>>>, key: &str) -> Option<&'m str> {
    let map = map?;
    map.iter().find(|(name, _)| name.0 == key).map(|(_, text)| text.0.as_ref())
}
