//! All schemas of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::compile::Document;
use super::node::Schema;
use crate::object::GroupVersionKind;

/// The schemas of one cluster, by group version. Cheap to clone and to change: a document that was fetched
/// anew replaces the old one, the others are shared.
#[derive(Clone, Default)]
pub struct SchemaSet {
    documents: BTreeMap<String, Arc<Document>>,
}

/// What is known about one kind.
#[derive(Clone, Copy, Debug)]
pub struct KindSchema<'a> {
    /// The whole object.
    pub root: Schema<'a>,
    /// Is `status` a subresource, and ignored in ordinary writes?
    pub has_status_subresource: bool,
    /// Changes whenever anything changes that a comparison of this kind can see.
    pub fingerprint: u64,
}

impl SchemaSet {
    /// From the documents that the API server serves under `/openapi/v3/…`.
    pub fn from_openapi<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Self {
        documents.into_iter().fold(Self::default(), Self::with_document)
    }

    /// A copy in which this document replaces the one of the same group version.
    #[must_use]
    pub fn with_document(mut self, document: &Value) -> Self {
        let document = Arc::new(Document::compile(document));
        let versions: BTreeSet<String> = match &document.about {
            Some(about) => BTreeSet::from([about.clone()]),
            None => document.kinds.keys().map(GroupVersionKind::api_version).collect(),
        };
        for version in versions {
            self.documents.insert(version, Arc::clone(&document));
        }
        self
    }

    /// A copy without this group version (`apps/v1`).
    #[must_use]
    pub fn without(mut self, api_version: &str) -> Self {
        self.documents.remove(api_version);
        self
    }

    /// Is there a document for this group version (`apps/v1`)?
    pub fn knows(&self, api_version: &str) -> bool {
        self.documents.contains_key(api_version)
    }

    /// The schema of a kind, if its document was loaded.
    pub fn kind(&self, gvk: &GroupVersionKind) -> Option<KindSchema<'_>> {
        let document = self.documents.get(&gvk.api_version())?;
        let kind = document.kinds.get(gvk)?;
        Some(KindSchema {
            root: Schema { document, id: kind.root },
            has_status_subresource: kind.has_status,
            fingerprint: kind.fingerprint,
        })
    }
}

impl fmt::Debug for SchemaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.documents.keys()).finish()
    }
}
