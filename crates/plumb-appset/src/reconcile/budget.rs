//! How many Applications a set may delete without asking.
//!
//! A generator cannot tell a folder that was deleted from one that was renamed, or an organisation without repositories
//! from a server in trouble. A deleted Application usually takes its workloads with it. So deletions of many
//! Applications wait for a user, and so do all deletions if a generator that asks a server returned nothing.

use jiff::Timestamp;
use plumb_core::plan::PruneBudget;
use plumb_crd::ApplicationSet;
use plumb_crd::annotations::DELETION_APPROVED;
use plumb_crd::application_set::ApplicationSetGenerator;
use plumb_crd::wire::Wire as _;
use serde_json::Value as Json;

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

    /// Why the deletions must wait, if they must. `n_owned` counts the Applications before the deletions.
    pub(super) fn objection(
        self,
        set: &ApplicationSet,
        doomed: &[&str],
        n_owned: usize,
        n_generated: usize,
    ) -> Option<String> {
        if doomed.is_empty() || self.0 == PruneBudget::Off {
            return None;
        }
        let why = if n_generated == 0 && asks_servers(set) {
            "the generators returned nothing"
        } else {
            self.0.exceeded(doomed.len(), n_owned)?;
            "this exceeds the deletion budget"
        };
        let (n, set_name) = (doomed.len(), &set.metadata.name);
        let namespace = &set.metadata.namespace;
        let mut names = doomed.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        if n > SHOWN {
            names = format!("{names} and {} more", n - SHOWN);
        }
        Some(format!(
            "{n} of {n_owned} Applications are no longer generated, and {why}. They are kept until a user approves: \
             `plumb appset confirm-deletion {namespace}/{set_name}`. They are: {names}"
        ))
    }
}

/// When a user approved the deletions of a set.
pub(super) fn approved_at(set: &ApplicationSet) -> Option<Timestamp> {
    set.metadata.annotations.get(DELETION_APPROVED)?.trim().parse().ok()
}

/// Does any generator ask a server, or is one unknown? An empty answer of such a generator proves nothing. Pull requests
/// are different: that the last one is closed is usual.
fn asks_servers(set: &ApplicationSet) -> bool {
    set.spec.generators.iter().any(|entry| entry_asks(entry, 0))
}

fn entry_asks(entry: &ApplicationSetGenerator, depth: usize) -> bool {
    if entry.git.is_some()
        || entry.scm_provider.is_some()
        || entry.plugin.is_some()
        || entry.cluster_decision_resource.is_some()
    {
        return true;
    }
    let matrix = entry.matrix.iter().flat_map(|matrix| &matrix.generators);
    let merge = entry.merge.iter().flat_map(|merge| &merge.generators);
    let mut children = matrix.chain(merge).peekable();
    if children.peek().is_none() {
        return entry.list.is_none() && entry.clusters.is_none() && entry.pull_request.is_none();
    }
    depth < 3
        && children.any(|child| {
            let child = ApplicationSetGenerator::read(&Json::Object(child.0.clone()));
            child.is_ok_and(|child| entry_asks(&child, depth + 1))
        })
}
