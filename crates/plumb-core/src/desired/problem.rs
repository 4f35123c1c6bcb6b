//! What can be wrong with rendered manifests.

use super::Origin;
use crate::object::{FieldPath, NotAnObject, ObjectKey};

/// Something wrong with the rendered manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredProblem {
    /// Rendered more than once; the last one counts (`RepeatedResourceWarning`).
    Repeated {
        /// Which object.
        key: ObjectKey,
        /// How often.
        count: usize,
        /// Where, as far as it is known; the last one is what counts.
        origins: Vec<Origin>,
    },
    /// Excluded by the settings and dropped (`ExcludedResourceWarning`).
    Excluded {
        /// Which object.
        key: ObjectKey,
    },
    /// A namespaced object for which neither the manifest nor the destination names a namespace. It stays in
    /// the set under a key without namespace, which proves nothing about the live object.
    NamespaceMissing {
        /// Which object.
        key: ObjectKey,
    },
    /// A manifest without name; only hooks may leave it to the sync.
    NameMissing {
        /// Kind of the manifest.
        kind: String,
        /// Its place in the source.
        origin: Option<Origin>,
    },
    /// A document that is not a Kubernetes object; dropped.
    NotAnObject {
        /// Why not.
        reason: NotAnObject,
        /// Its place in the source.
        origin: Option<Origin>,
    },
    /// A YAML file in a directory of manifests that is no manifest. It says nothing about objects.
    PassedOver {
        /// Its path in the repository.
        file: String,
    },
    /// A label or annotation that is not text, such as an unquoted `5` or `true`: the server refuses the object.
    NotText {
        /// Which object; `None` for one that leaves its name to the server.
        key: Option<ObjectKey>,
        /// The label or annotation.
        field: FieldPath,
        /// Place of the object in the source.
        origin: Option<Origin>,
    },
}

impl DesiredProblem {
    /// Does the set lack an object that Git asks for? Then it proves nothing about objects that are not in it.
    pub fn loses_an_object(&self) -> bool {
        match self {
            Self::NameMissing { .. } | Self::NotAnObject { .. } | Self::NamespaceMissing { .. } => true,
            Self::Repeated { .. }
            | Self::Excluded { .. }
            | Self::PassedOver { .. }
            | Self::NotText { .. } => false,
        }
    }
}
