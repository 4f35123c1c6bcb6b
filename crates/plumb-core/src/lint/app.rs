//! What the rules know about an app.

use crate::desired::{DesiredHook, DesiredObject, DesiredSet, Origin};
use crate::object::{Manifest, ObjectKey};

/// One app of the repository.
#[derive(Clone, Copy, Debug)]
pub struct LintApp<'app> {
    /// Its name.
    pub name: &'app str,
    /// The cluster that it is for.
    pub destination: &'app str,
    /// What it asks for.
    pub desired: &'app DesiredSet,
    /// The same files rendered once more, if a second render can differ.
    pub second: Option<&'app DesiredSet>,
    /// The namespace that its options create before anything else.
    pub creates: Option<&'app ObjectKey>,
    /// Is it to be checked? Others are only compared with.
    pub is_checked: bool,
}

/// An object or a hook.
#[derive(Clone, Copy)]
pub(super) struct Item<'app> {
    pub(super) key: Option<&'app ObjectKey>,
    pub(super) manifest: &'app Manifest,
    pub(super) origin: Option<&'app Origin>,
}

impl<'app> LintApp<'app> {
    pub(super) fn objects(&self) -> impl Iterator<Item = &'app DesiredObject> + use<'app> {
        self.desired.objects.values()
    }

    pub(super) fn hooks(&self) -> impl Iterator<Item = &'app DesiredHook> + use<'app> {
        self.desired.hooks.iter()
    }

    /// Objects and hooks.
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'app>> + use<'app> {
        let objects = self.objects().map(|object| Item {
            key: Some(&object.key),
            manifest: &object.manifest,
            origin: object.origin.as_ref(),
        });
        let hooks = self.hooks().map(|hook| Item {
            key: None,
            manifest: &hook.manifest,
            origin: hook.origin.as_ref(),
        });
        objects.chain(hooks)
    }
}

impl Item<'_> {
    /// Its identity; a hook may have none.
    pub(super) fn key(&self) -> Option<ObjectKey> {
        self.key.cloned().or_else(|| self.manifest.key())
    }
}
