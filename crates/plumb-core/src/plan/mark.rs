//! How a hook object records which operation created it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::SyncPhase;
use crate::health::HOOK_FINALIZER;
use crate::object::{Manifest, ObjectKey};
use crate::tracking::TRACKING_ANNOTATION;

/// Annotation that holds [`OperationMark::text`], on hook objects only.
pub const OPERATION_ANNOTATION: &str = "plumb.dev/operation";
/// How many bytes of the hash are in the annotation: too many to guess.
const CODE_BYTES: usize = 12;

/// Which operation, and which try of it. With it a restarted engine distinguishes a hook of this operation
/// from one of an earlier operation, so that no hook runs twice.
///
/// Clients that may write the hook's object may write the annotation, too. So its text has a code that depends on the
/// hook and on the uid of the Application, which they cannot read: an object with a made-up annotation, or with that of
/// another hook, is no hook of this operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationMark {
    /// `metadata.uid` of the Application.
    #[serde(skip)]
    pub app_uid: String,
    /// `operationState.startedAt`, whole seconds.
    pub started_at: Timestamp,
    /// `operationState.retryCount`.
    pub retry: u32,
    /// The revision that is synced: a commit or a chart version, of the first source.
    pub revision: String,
}

impl OperationMark {
    /// The text of the annotation on this hook. The phase is part of it, because one hook may run in several.
    pub fn text(&self, phase: SyncPhase, hook: &ObjectKey) -> String {
        let stage = format!("{}-{}-{}", self.started_at.as_second(), self.retry, phase.name().to_lowercase());
        let mut code = Sha256::new();
        for part in [&self.app_uid, &stage, &hook.group, &hook.kind, &hook.name] {
            code.update(part.as_bytes());
            code.update([0]);
        }
        let hash = code.finalize();
        let code = hash.iter().take(CODE_BYTES).fold(0_u128, |code, byte| (code << 8) | u128::from(*byte));
        format!("{stage}-{code:024x}")
    }

    /// The hook's manifest as it is sent in this phase: named (Argo CD's rule for `generateName`), in its
    /// namespace, marked, and held by the hook finalizer.
    pub fn stamp(&self, hook: &Manifest, namespace: Option<&str>, phase: SyncPhase) -> Manifest {
        let name = self.name_of(hook, &phase.name().to_lowercase());
        let key = ObjectKey::new(hook.group(), hook.kind(), namespace.map(str::to_owned), name.as_str());
        named(hook, &name)
            .with_namespace(namespace)
            .with_annotation(OPERATION_ANNOTATION, &self.text(phase, &key))
            .edit_metadata(|metadata| {
                let finalizers = metadata.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(finalizers) = finalizers
                    && !finalizers.iter().any(|finalizer| finalizer == HOOK_FINALIZER)
                {
                    finalizers.push(Value::String(HOOK_FINALIZER.to_owned()));
                }
            })
    }

    /// A hook's own name, or the one that Argo CD would make from its `generateName`, which may be missing.
    pub(crate) fn name_of(&self, hook: &Manifest, phase: &str) -> String {
        if let Some(name) = hook.name() {
            return name.to_owned();
        }
        let prefix = hook.generate_name().unwrap_or_default();
        let short: String = if self.revision.chars().count() >= 8 {
            self.revision.chars().take(7).collect()
        } else {
            self.revision.clone()
        };
        let short = short.to_lowercase();
        format!("{prefix}{short}-{phase}-{}", self.started_at.as_second())
    }
}

/// A hook under this name. The tracking mark of one with `generateName` was made before it had a name; with it
/// the object is known as the app's, and can be cleaned up.
pub(crate) fn named(hook: &Manifest, name: &str) -> Manifest {
    let tracked = hook.annotation(TRACKING_ANNOTATION).filter(|id| id.ends_with('/'));
    let hook = match tracked.map(|id| format!("{id}{name}")) {
        Some(id) => hook.clone().with_annotation(TRACKING_ANNOTATION, &id),
        None => hook.clone(),
    };
    hook.edit_metadata(|metadata| {
        metadata.insert("name".to_owned(), Value::String(name.to_owned()));
        metadata.remove("generateName");
    })
}
