//! Which orphans a run deletes.

use std::collections::BTreeSet;

use super::{Hold, Orphan};
use crate::object::ObjectKey;

/// What a user allows beyond the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Also those that hold data.
    pub with_data: bool,
    /// Names of objects that only a mark calls orphans.
    pub named: Vec<String>,
}

/// The orphans that can go, of these. One that is used by an orphan that stays, stays too: they are in an order in which
/// users come first.
pub fn deletable(orphans: &[Orphan], choice: &Choice) -> BTreeSet<ObjectKey> {
    let mut going: BTreeSet<ObjectKey> = BTreeSet::new();
    for orphan in orphans {
        let is_allowed = match &orphan.hold {
            None => true,
            Some(Hold::Data(_)) => choice.with_data,
            Some(Hold::Unproven(data)) => {
                choice.named.contains(&orphan.key.name) && (data.is_none() || choice.with_data)
            }
            Some(Hold::Used | Hold::Never(_) | Hold::Kept) => false,
        };
        let mut needed = orphan.users.iter().filter(|user| !user.is_optional);
        let is_free = needed.all(|user| match &user.orphan {
            Some(root) => going.contains(root) || *root == orphan.key,
            None => false,
        });
        if is_allowed && is_free {
            going.insert(orphan.key.clone());
        }
    }
    going
}
