//! All rules, in their order: for the documentation, and for tests.

use super::addition::{ADDITION_RULES, OTHER_WRITER_RULES, UNOWNED_RULES};
use super::difference::DIFFERENCE_RULES;
use super::explain::PENDING_ADMISSION;
use super::forgiven::FORGIVEN_RULES;
use super::object::{MANIFEST_RULES, PAIR_RULES};
use super::refusal::REFUSAL_RULES;
use super::rule::{Rule, RuleInfo};
use super::whole_object::WHOLE_OBJECT_RULES;

/// An ordered list of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleGroup {
    /// What the rules are about.
    pub title: &'static str,
    /// In the order in which they are tried.
    pub rules: Vec<RuleInfo>,
}

/// All rules, in the order in which they are tried.
pub fn rule_groups() -> Vec<RuleGroup> {
    let group = |title, rules| RuleGroup { title, rules };
    vec![
        group("Whole objects", WHOLE_OBJECT_RULES.to_vec()),
        group("Git's manifest", infos(MANIFEST_RULES)),
        group("The object as a whole", infos(PAIR_RULES)),
        group("Values that mean the same", infos(FORGIVEN_RULES)),
        group("Values that Git sets", infos(DIFFERENCE_RULES)),
        group("Fields that Git does not set", infos(ADDITION_RULES)),
        group("Fields that Git does not set and another writer owns", infos(OTHER_WRITER_RULES)),
        group("Fields that Git does not set and no other writer owns", infos(UNOWNED_RULES)),
        group("Refusals", infos(REFUSAL_RULES)),
        group("Options", vec![PENDING_ADMISSION]),
    ]
}

fn infos<F>(rules: &[Rule<F>]) -> Vec<RuleInfo> {
    rules.iter().map(Rule::info).collect()
}
