//! What can be said about an object as a whole or about Git's manifest alone, whatever else differs.

use super::rule::{Rule, named};
use crate::compare::Spelling;
use crate::drift::DriftClass;
use crate::drift::case::Case;
use crate::drift::classes::{blocked, equivalent_value, rejected_field, shared_resource};
use crate::drift::explained::Explained;
use crate::normalize::respelled_keys;
use crate::object::{FieldPath, Manifest};

type ObjectRule = Rule<fn(&Case<'_>) -> Vec<Explained>>;

/// About Git's manifest. All of them are applied.
pub(super) const MANIFEST_RULES: &[ObjectRule] = &[
    Rule { name: "field-set-by-server", classes: &[DriftClass::RejectedField], decide: rejected_field::kept },
    Rule { name: "unknown-field", classes: &[DriftClass::RejectedField], decide: rejected_field::unknown },
    Rule { name: "duplicate-list-item", classes: &[DriftClass::Blocked], decide: blocked::duplicates },
];

/// About an object that is in Git and in the cluster. All of them are applied.
pub(super) const PAIR_RULES: &[ObjectRule] = &[
    Rule { name: "stored-in-another-form", classes: &[DriftClass::EquivalentValue], decide: other_form },
    Rule {
        name: "rendered-by-several-apps",
        classes: &[DriftClass::SharedResource],
        decide: shared_resource::ours,
    },
];

/// What is wrong with Git's manifest, whatever the cluster has.
pub(in crate::drift) fn explain_manifest(case: &Case<'_>) -> Vec<Explained> {
    apply_all(MANIFEST_RULES, case)
}

/// What can be said about the pair as a whole.
pub(super) fn explain_pair(case: &Case<'_>) -> Vec<Explained> {
    apply_all(PAIR_RULES, case)
}

fn apply_all(rules: &[ObjectRule], case: &Case<'_>) -> Vec<Explained> {
    rules.iter().flat_map(|rule| named(rule.name, (rule.decide)(case))).collect()
}

/// What the API server stores in another form than Git writes it: `stringData`, wrapped base64, another version of the
/// kind.
fn other_form(case: &Case<'_>) -> Vec<Explained> {
    let mut found = Vec::new();
    if let Some(unredacted) = case.unredacted {
        let (folded, wrapped) = respelled_keys(unredacted);
        found.extend(folded.into_iter().map(|path| equivalent_value::at(path, Spelling::StringData)));
        found.extend(wrapped.into_iter().map(|path| equivalent_value::at(path, Spelling::Base64)));
    }
    let cached = case.evidence.live.map_or(case.live.api_version(), Manifest::api_version);
    if case.desired.api_version() != cached {
        found.push(equivalent_value::at(FieldPath::root().field("apiVersion"), Spelling::ApiVersion));
    }
    found
}
