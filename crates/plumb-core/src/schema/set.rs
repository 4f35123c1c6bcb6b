//! All schemas of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use super::compile::Document;
use super::known_types::KnownType;
use super::node::{Scalar, Schema};
use super::sensitive::{SensitiveField, change_passwords};
use crate::object::GroupVersionKind;

/// The schemas of one cluster, by group version. Cheap to clone and to change: a document that was fetched
/// again replaces the old one, the others are shared.
#[derive(Clone, Default)]
pub struct SchemaSet {
    documents: BTreeMap<String, Arc<Document>>,
    known: Arc<[KnownType]>,
    sensitive: Arc<[SensitiveField]>,
}

/// What is known about one kind.
#[derive(Clone, Copy)]
pub struct KindSchema<'a> {
    /// The whole object.
    pub root: Schema<'a>,
    /// Is `status` a subresource, and ignored in ordinary writes?
    pub has_status_subresource: bool,
    /// Changes whenever anything changes that a comparison of this kind can see.
    pub fingerprint: u64,
    /// Changes with every word of the published schema, also with the rules by which the API server refuses objects.
    pub text_hash: u64,
    kind: &'a GroupVersionKind,
    set: &'a SchemaSet,
}

impl KindSchema<'_> {
    /// What the settings say is at this place, given by the fields of its path.
    pub(crate) fn known_scalar(&self, way: &[&str]) -> Option<Scalar> {
        let mut own = self.set.known.iter().filter(|known| is_of(known, self.kind));
        own.find_map(|known| known.scalar(self.set, way))
    }
}

fn is_of(known: &KnownType, kind: &GroupVersionKind) -> bool {
    known.kind.group == kind.group && known.kind.kind == kind.kind
}

impl SchemaSet {
    /// From the documents that the API server serves under `/openapi/v3/…`.
    pub fn from_openapi<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Self {
        documents.into_iter().fold(Self::default(), Self::with_document)
    }

    /// A copy in which this document replaces the one of the same group version.
    #[must_use]
    pub fn with_document(self, document: &Value) -> Self {
        self.with_openapi(document.to_string().as_bytes(), |_| true)
    }

    /// The same with the document's JSON. Of custom resources it takes only the kinds that are `wanted`: a cluster
    /// has hundreds of them with large schemas, and most clusters use few.
    #[must_use]
    pub fn with_openapi(mut self, json: &[u8], wanted: impl Fn(&GroupVersionKind) -> bool) -> Self {
        let document = Arc::new(Document::compile(json, wanted));
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

    /// A copy in which these fields of custom resources have types of Kubernetes.
    #[must_use]
    pub fn with_known_types(mut self, known: Arc<[KnownType]>) -> Self {
        self.known = known;
        self
    }

    /// A copy in which these fields are sensitive, besides those whose schema says so.
    #[must_use]
    pub fn with_sensitive_fields(mut self, sensitive: Arc<[SensitiveField]>) -> Self {
        self.sensitive = sensitive;
        self
    }

    /// Does the kind have sensitive fields?
    pub fn has_sensitive_fields(&self, gvk: &GroupVersionKind) -> bool {
        let kind = self.documents.get(&gvk.api_version()).and_then(|document| document.kinds.get(gvk));
        kind.is_some_and(|kind| kind.has_password) || self.sensitive_of(gvk).next().is_some()
    }

    /// Calls `change` for the value of every sensitive field of an object of this kind.
    pub fn change_sensitive(
        &self,
        gvk: &GroupVersionKind,
        object: &mut Value,
        change: &mut dyn FnMut(&mut Value),
    ) {
        if let Some(kind) = self.kind(gvk) {
            change_passwords(object, kind.root, change);
        }
        self.sensitive_of(gvk).for_each(|field| field.change(object, change));
    }

    fn sensitive_of<'s>(&'s self, gvk: &'s GroupVersionKind) -> impl Iterator<Item = &'s SensitiveField> {
        self.sensitive.iter().filter(|field| field.kind.group == gvk.group && field.kind.kind == gvk.kind)
    }

    /// The definition of this name, from whichever document has it: the core group's, or a group's whose kinds
    /// contain it.
    pub(super) fn definition(&self, name: &str) -> Option<Schema<'_>> {
        let mut documents = self.documents.get("v1").into_iter().chain(self.documents.values());
        documents.find_map(|document| Some(Schema { document, id: document.named(name)? }))
    }

    /// Is there a document for this group version (`apps/v1`)?
    pub fn knows(&self, api_version: &str) -> bool {
        self.documents.contains_key(api_version)
    }

    /// The schema of a kind, if its document was loaded.
    pub fn kind(&self, gvk: &GroupVersionKind) -> Option<KindSchema<'_>> {
        let document = self.documents.get(&gvk.api_version())?;
        let (gvk, kind) = document.kinds.get_key_value(gvk)?;
        Some(KindSchema {
            root: Schema { document, id: kind.root },
            has_status_subresource: kind.has_status,
            fingerprint: kind.fingerprint ^ self.known_fingerprint(gvk),
            text_hash: kind.text_hash,
            kind: gvk,
            set: self,
        })
    }
}

impl SchemaSet {
    fn known_fingerprint(&self, gvk: &GroupVersionKind) -> u64 {
        let mut own = self.known.iter().filter(|known| is_of(known, gvk)).peekable();
        let mut sensitive = self.sensitive_of(gvk).peekable();
        if own.peek().is_none() && sensitive.peek().is_none() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        own.for_each(|known| known.hash(&mut hasher));
        sensitive.for_each(|field| field.hash(&mut hasher));
        hasher.finish()
    }
}

impl fmt::Debug for KindSchema<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindSchema").field("kind", self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for SchemaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.documents.keys()).finish()
    }
}
