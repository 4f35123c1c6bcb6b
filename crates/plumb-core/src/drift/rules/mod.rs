//! The rules that give each difference its class, as ordered lists: the first rule that decides wins. The order is part of
//! the product: it goes from the strongest evidence to the weakest. `docs/drift-classes.md` lists the rules, and a test
//! compares.

mod addition;
mod catalog;
mod difference;
mod explain;
mod forgiven;
mod object;
mod refusal;
mod rule;
mod whole_object;

pub use catalog::{RuleGroup, rule_groups};
pub(super) use explain::{explain, explain_forgiven};
pub(super) use object::explain_manifest;
pub use rule::RuleInfo;
pub(super) use rule::named;
pub(super) use whole_object::{
    FINISHED_HOOK, FINISHED_JOB, NOT_IN_CLUSTER, NOT_IN_GIT, RANDOM_NAME, REFUSED, TRACKED_BY_OTHER_APP,
    UNTRACKED,
};
