//! Which differences the ignore rules hide.

use serde_json::Value;

use super::case::Case;
use crate::compare::{Change, Difference};
use crate::ignore::Ignored;
use crate::normalize::is_item_without_key;
use crate::object::{FieldPath, has_all};

/// Do the rules ignore this difference? A missing item has no owner: its path is that of another item.
pub(super) fn is_difference_ignored(case: &Case<'_>, ignored: &Ignored, difference: &Difference<'_>) -> bool {
    let (live, desired) = (&difference.path, &difference.desired_path);
    if difference.change == Change::ItemMissing && !ignored.managers.is_empty() {
        let by_place = Ignored { managers: Vec::new(), ..ignored.clone() };
        return is_ignored(case, &by_place, live, desired);
    }
    is_ignored(case, ignored, live, desired)
}

/// Do the rules ignore this field?
pub(super) fn is_ignored(case: &Case<'_>, ignored: &Ignored, live: &FieldPath, desired: &FieldPath) -> bool {
    if ignored.is_empty() {
        return false;
    }
    match IgnoredItems::around(case, ignored, live) {
        Some(items) => {
            // An ignored item of the cluster does not hide an item of Git.
            let is_extra = ignored.covers_live(live) && desired.find(case.desired.value()).is_none();
            items.leave_the_same
                || is_extra
                || ignored.covers_both(live, desired)
                || items.other_rules.covers(live, desired, &case.owners)
        }
        None => ignored.covers(live, desired, &case.owners),
    }
}

/// Whole items of a list without keys that the rules ignore. Items are compared by position, and an ignored item shifts those
/// after it. So the lists are compared without the ignored items.
struct IgnoredItems {
    /// Are the remaining items what Git asks for?
    leave_the_same: bool,
    /// The rules that are not about whole items of this list.
    other_rules: Ignored,
}

impl IgnoredItems {
    /// The ignored items of the list around this field.
    fn around(case: &Case<'_>, ignored: &Ignored, place: &FieldPath) -> Option<Self> {
        let schema = case.kind.map(|kind| kind.root);
        let (desired, live) = (case.desired.value(), case.live.value());
        let list = ignored.live.iter().chain(&ignored.desired).find_map(|rule| {
            let list = rule.parent()?;
            let is_item = [desired, live].iter().any(|object| is_item_without_key(rule, object, schema));
            (is_item && place.starts_with(&list) && *place != list).then_some(list)
        })?;
        let is_of_list = |rule: &FieldPath| rule.parent().as_ref() == Some(&list);
        let left = |rules: &[FieldPath], object: &Value| -> Vec<Value> {
            let items = list.find(object).and_then(Value::as_array).into_iter().flatten().enumerate();
            let is_named = |index: usize| {
                rules.iter().any(|rule| *rule == list.index(index) || *rule == list.field(index.to_string()))
            };
            items.filter(|(index, _)| !is_named(*index)).map(|(_, item)| item.clone()).collect()
        };
        let (asked, found) = (left(&ignored.desired, desired), left(&ignored.live, live));
        let leave_the_same = asked.len() == found.len()
            && asked.iter().zip(&found).all(|(asked, found)| has_all(found, asked));
        let mut other_rules = ignored.clone();
        other_rules.live.retain(|rule| !is_of_list(rule));
        other_rules.desired.retain(|rule| !is_of_list(rule));
        Some(Self { leave_the_same, other_rules })
    }
}
