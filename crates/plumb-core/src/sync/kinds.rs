//! The kinds that a sync was planned with, and whether they have changed since.
//!
//! A CRD that is replaced or edited changes the meaning of the objects of a plan: where they are, which fields they have,
//! whether they can be written at all. Such a plan is made anew, and what failed before is no longer a reason not to try.

use std::collections::{BTreeMap, BTreeSet};

use crate::desired::Scope;
use crate::object::GroupVersionKind;

/// How the API server serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedAs {
    /// Where its objects are.
    pub scope: Scope,
    /// Fingerprint of its schema; `None` if the API server has not published it.
    pub schema: Option<u64>,
}

/// The kinds of a plan. `None` for one that is not served in this version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedKinds(BTreeMap<GroupVersionKind, Option<ServedAs>>);

/// How a kind changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindChange {
    /// It is served now.
    Appeared,
    /// It is no longer served in this version.
    Disappeared,
    /// Its objects are elsewhere.
    Scope,
    /// Its fields are others.
    Schema,
}

impl KindChange {
    /// The change in words, after the name of the kind.
    pub fn text(self) -> &'static str {
        match self {
            Self::Appeared => "is served now",
            Self::Disappeared => "is no longer served",
            Self::Scope => "has another scope",
            Self::Schema => "has another schema",
        }
    }
}

impl FromIterator<(GroupVersionKind, Option<ServedAs>)> for PlannedKinds {
    fn from_iter<T: IntoIterator<Item = (GroupVersionKind, Option<ServedAs>)>>(kinds: T) -> Self {
        Self(kinds.into_iter().collect())
    }
}

impl PlannedKinds {
    /// The kinds.
    pub fn kinds(&self) -> BTreeSet<GroupVersionKind> {
        self.0.keys().cloned().collect()
    }

    /// How the kinds changed since the plan was made. `now` has the same kinds.
    fn changes<'k>(&'k self, now: &'k Self) -> impl Iterator<Item = (&'k GroupVersionKind, KindChange)> {
        self.0.iter().filter_map(|(kind, before)| Some((kind, change(*before, *now.0.get(kind)?)?)))
    }

    /// The first change because of which a plan no longer holds. A kind that appears does not change the plan: it was
    /// planned for, and a sync that applies a CRD waits for its kind. A kind that disappears may come back, in another way,
    /// before its objects are written; if it does not, the API server refuses them.
    pub fn outdated_by<'k>(&'k self, now: &'k Self) -> Option<(&'k GroupVersionKind, KindChange)> {
        self.changes(now).find(|(_, change)| matches!(change, KindChange::Scope | KindChange::Schema))
    }

    /// The first change because of which an attempt that failed may succeed now. A schema that was not known then may be
    /// another one now.
    pub fn revived_by<'k>(&'k self, now: &'k Self) -> Option<(&'k GroupVersionKind, KindChange)> {
        let is_learnt = |(kind, before): (&'k GroupVersionKind, &Option<ServedAs>)| {
            let (before, now) = ((*before)?, (*now.0.get(kind)?)?);
            (before.schema.is_none() && now.schema.is_some()).then_some((kind, KindChange::Schema))
        };
        let changed = self.changes(now).find(|(_, change)| *change != KindChange::Disappeared);
        changed.or_else(|| self.0.iter().find_map(is_learnt))
    }
}

fn change(before: Option<ServedAs>, now: Option<ServedAs>) -> Option<KindChange> {
    match (before, now) {
        (None, None) => None,
        (None, Some(_)) => Some(KindChange::Appeared),
        (Some(_), None) => Some(KindChange::Disappeared),
        (Some(before), Some(now)) if before.scope != now.scope => Some(KindChange::Scope),
        // A kind is served a moment before its schema is published.
        (Some(before), Some(now)) => {
            let is_other = before.schema.zip(now.schema).is_some_and(|(before, now)| before != now);
            is_other.then_some(KindChange::Schema)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `namespaced 1`: the scope and the schema; `-` for a kind that is not served.
    fn kinds(text: &str) -> PlannedKinds {
        let served = text.split_once(' ').map(|(scope, schema)| ServedAs {
            scope: if scope == "cluster" { Scope::Cluster } else { Scope::Namespaced },
            schema: schema.parse().ok(),
        });
        let kind = GroupVersionKind::from_api_version("example.com/v1", "Thing");
        let other = GroupVersionKind::from_api_version("v1", "ConfigMap");
        let fixed = ServedAs { scope: Scope::Namespaced, schema: Some(7) };
        [(kind, served), (other, Some(fixed))].into_iter().collect()
    }

    #[test]
    fn what_a_change_of_a_kind_means_for_a_plan_and_for_a_failure() {
        use KindChange::{Appeared, Schema, Scope};
        for (before, now, outdated, revived) in [
            ("namespaced 1", "namespaced 1", None, None),
            ("namespaced 1", "cluster 1", Some(Scope), Some(Scope)),
            ("cluster 1", "namespaced 2", Some(Scope), Some(Scope)),
            ("namespaced 1", "namespaced 2", Some(Schema), Some(Schema)),
            ("namespaced 1", "-", None, None),
            ("-", "namespaced 1", None, Some(Appeared)),
            ("-", "-", None, None),
            // The schema is published a moment later, or is missing for a moment.
            ("namespaced ?", "namespaced 1", None, Some(Schema)),
            ("namespaced 1", "namespaced ?", None, None),
        ] {
            let (planned, present) = (kinds(before), kinds(now));
            let found = |change: Option<(&GroupVersionKind, KindChange)>| {
                change.map(|(kind, change)| {
                    assert_eq!(kind.kind, "Thing");
                    change
                })
            };
            assert_eq!(found(planned.outdated_by(&present)), outdated, "{before} → {now}");
            assert_eq!(found(planned.revived_by(&present)), revived, "{before} → {now}");
        }
    }
}
