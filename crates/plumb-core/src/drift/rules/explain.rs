//! Applies the rules to everything that the comparison found.

use std::collections::HashSet;

use super::addition::rule_on_addition;
use super::difference::rule_on_difference;
use super::forgiven::rule_on_forgiven;
use super::object::{explain_manifest, explain_pair};
use super::refusal::explain_refusal;
use super::rule::{RuleInfo, named};
use crate::compare::Change;
use crate::drift::case::{Case, is_bookkeeping};
use crate::drift::classes::admission_mutated;
use crate::drift::explained::Explained;
use crate::drift::ignore_rules::IgnoredFields;
use crate::drift::{DriftClass, DryRun, Question};
use crate::object::FieldPath;

/// Applied last, with `IncludeMutationWebhook=true`.
pub(super) const PENDING_ADMISSION: RuleInfo =
    RuleInfo { name: "pending-admission-change", classes: &[DriftClass::Behind] };

/// Explains everything that the comparison found. The result is complete if the case has no questions afterwards.
pub(in crate::drift) fn explain(case: &Case<'_>) -> Vec<Explained> {
    let ignored = case.evidence.rules.of(case.evidence.key, Some(case.desired), Some(case.live));
    let ignored = IgnoredFields::new(case, ignored);
    let mut found = explain_manifest(case);
    found.extend(explain_pair(case));
    for forgiven in &case.comparison.forgiven {
        if !ignored.has_field(case, &forgiven.path, &forgiven.desired_path) {
            found.extend(rule_on_forgiven(case, forgiven).explained());
        }
    }
    for difference in &case.comparison.differences {
        if !is_bookkeeping(&difference.path) && !ignored.has_difference(case, difference) {
            found.extend(rule_on_difference(case, difference).explained());
        }
    }
    for addition in &case.comparison.additions {
        if !is_bookkeeping(&addition.path) && !ignored.has_field(case, &addition.path, &addition.path) {
            found.extend(rule_on_addition(case, addition).explained());
        }
    }
    let mut found = explain_refusal(case, found, &ignored);
    found.extend(pending_admission_changes(case, &found));
    keep_one_per_null(&mut found);
    // A missing item has the path of another item, whose owner may be ignored.
    let differences = case.comparison.differences.iter();
    let missing_items: HashSet<&FieldPath> = differences
        .filter(|difference| difference.change == Change::ItemMissing)
        .map(|difference| &difference.path)
        .collect();
    found.retain(|explained| {
        !explained.counts
            || missing_items.contains(&explained.field)
            || !ignored.has_field(case, &explained.field, &explained.field)
    });
    found
}

/// What means nothing and stays when an object is adopted: Git writes the same in another way.
pub(in crate::drift) fn explain_forgiven(case: &Case<'_>) -> Vec<Explained> {
    let ignored = case.evidence.rules.of(case.evidence.key, Some(case.desired), Some(case.live));
    let ignored = IgnoredFields::new(case, ignored);
    let forgiven = case.comparison.forgiven.iter();
    let forgiven = forgiven.filter(|known| !ignored.has_field(case, &known.path, &known.desired_path));
    let explained = forgiven.filter_map(|known| rule_on_forgiven(case, known).explained());
    explained.filter(|explained| !explained.counts).collect()
}

/// With `ServerSideDiff=true` and `IncludeMutationWebhook=true`: what admission would change if the object were written now.
fn pending_admission_changes(case: &Case<'_>, found: &[Explained]) -> Vec<Explained> {
    let options = case.evidence.options;
    match case.evidence.answers.dry_run {
        None if options.server_side_diff == Some(true) => {
            case.ask(Question::DryRun);
            Vec::new()
        }
        Some(DryRun::Object(predicted))
            if options.server_side_diff == Some(true) && options.include_mutation_webhook =>
        {
            let due = admission_mutated::due(case, predicted, found).into_iter();
            named(PENDING_ADMISSION.name, due.filter(|explained| !is_bookkeeping(&explained.field)))
        }
        None | Some(_) => Vec::new(),
    }
}

/// Git writes null for a field that the cluster has: keeps the more telling one of the two explanations. A default in the
/// cluster says less than the null.
fn keep_one_per_null(found: &mut Vec<Explained>) {
    let is_null = |known: &Explained| known.class == DriftClass::PhantomDefault;
    let nulls: HashSet<FieldPath> =
        found.iter().filter(|known| is_null(known)).map(|known| known.field.clone()).collect();
    if nulls.is_empty() {
        return;
    }
    let beside: HashSet<FieldPath> = found
        .iter()
        .filter(|known| !is_null(known) && known.class != DriftClass::SchemaDefault)
        .filter(|known| nulls.contains(&known.field))
        .map(|known| known.field.clone())
        .collect();
    found.retain(|known| match known.class {
        DriftClass::PhantomDefault => !beside.contains(&known.field),
        DriftClass::SchemaDefault => !nulls.contains(&known.field),
        _ => true,
    });
}
