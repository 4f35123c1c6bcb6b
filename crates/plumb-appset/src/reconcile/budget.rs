//! How many Applications a set may delete without asking.
//!
//! A generator cannot tell a folder that was deleted from one that was renamed, or an organisation without repositories
//! from a server in trouble. A deleted Application usually takes its workloads with it. So deletions of many
//! Applications wait for a user, and so do all deletions when a generator that asks a server returns nothing.

use jiff::Timestamp;
use plumb_core::plan::PruneBudget;
use plumb_crd::ApplicationSet;
use plumb_crd::annotations::DELETION_APPROVED;

/// Annotation of a set with its own budget: `off`, a number of Applications, or a share such as `50%`.
pub const BUDGET_ANNOTATION: &str = "plumb.appset.budget";

/// How many names a message lists.
const SHOWN: usize = 20;

/// The limits for deletions; the same as for prunes of an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionBudget(pub PruneBudget);

impl DeletionBudget {
    /// The budget of a set: its annotation, or that of the installation. An annotation that cannot be read changes nothing.
    pub(super) fn of(self, set: &ApplicationSet) -> Self {
        let Some(text) = set.metadata.annotations.get(BUDGET_ANNOTATION).map(|text| text.trim()) else {
            return self;
        };
        if text == "off" {
            return Self(PruneBudget::Off);
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse::<u8>().ok().filter(|percent| *percent <= 100);
            return percent
                .map_or(self, |share_percent| Self(PruneBudget::Limited { share_percent, count: 0 }));
        }
        text.parse().map_or(self, |count| Self(PruneBudget::Limited { share_percent: 0, count }))
    }

    /// Why the deletions must wait, if they must. `n_before` counts the Applications of the set before the change that ends
    /// the doomed ones. `is_silent` says that a generator that asks a server has just returned nothing. The text does not
    /// depend on what is created in the meantime: an approval counts for exactly this text.
    pub(super) fn objection(
        self,
        set: &ApplicationSet,
        doomed: &[&str],
        n_before: usize,
        is_silent: bool,
    ) -> Option<String> {
        if doomed.is_empty() || self.0 == PruneBudget::Off {
            return None;
        }
        let why = if is_silent {
            "a generator returned nothing"
        } else {
            self.0.exceeded(doomed.len(), n_before)?;
            "this exceeds the deletion budget"
        };
        let (n, set_name) = (doomed.len(), &set.metadata.name);
        let namespace = &set.metadata.namespace;
        let mut names = doomed.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        if n > SHOWN {
            names = format!("{names} and {} more", n - SHOWN);
        }
        let (word, verb) = if n == 1 { ("Application", "is") } else { ("Applications", "are") };
        Some(format!(
            "{n} {word} {verb} no longer generated, and {why}. They are kept until a user approves: \
             `plumb appset confirm-deletion {namespace}/{set_name}`. They are: {names}"
        ))
    }
}

/// When a user approved the deletions of a set.
pub(super) fn approved_at(set: &ApplicationSet) -> Option<Timestamp> {
    set.metadata.annotations.get(DELETION_APPROVED)?.trim().parse().ok()
}
