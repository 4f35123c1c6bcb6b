//! Which differences the ignore rules hide.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::case::Case;
use crate::compare::{Change, Difference};
use crate::fields::Owners;
use crate::ignore::{Ignored, PlaceSet};
use crate::normalize::is_item_without_key;
use crate::object::{FieldPath, Segment, has_all};

/// What the rules ignore of one object, prepared for many questions: an object can differ in thousands of places, and
/// the rules can name thousands.
pub(super) struct IgnoredFields {
    ignored: Ignored,
    live: PlaceSet,
    desired: PlaceSet,
    /// Lists without keys of which rules name whole items, each with its position among them.
    lists: HashMap<Vec<Segment>, (usize, OnceCell<bool>)>,
}

impl IgnoredFields {
    pub(super) fn new(case: &Case<'_>, ignored: Ignored) -> Self {
        let schema = case.kind.map(|kind| kind.root);
        let objects = [case.desired.value(), case.live.value()];
        let mut lists: HashMap<Vec<Segment>, (usize, OnceCell<bool>)> = HashMap::new();
        for rule in ignored.live.iter().chain(&ignored.desired) {
            if objects.iter().any(|object| is_item_without_key(rule, object, schema))
                && let Some((_, list)) = rule.segments().split_last()
                && !lists.contains_key(list)
            {
                lists.insert(list.to_vec(), (lists.len(), OnceCell::new()));
            }
        }
        let (live, desired) = (PlaceSet::new(&ignored.live), PlaceSet::new(&ignored.desired));
        Self { ignored, live, desired, lists }
    }

    /// Do the rules ignore this difference? A missing item has no owner: its path is that of another item.
    pub(super) fn has_difference(&self, case: &Case<'_>, difference: &Difference<'_>) -> bool {
        let owners = (difference.change != Change::ItemMissing).then_some(&case.owners);
        self.has_field_of(case, &difference.path, &difference.desired_path, owners)
    }

    /// Do the rules ignore this field? `live` and `desired` are its positions on the two sides.
    pub(super) fn has_field(&self, case: &Case<'_>, live: &FieldPath, desired: &FieldPath) -> bool {
        self.has_field_of(case, live, desired, Some(&case.owners))
    }

    fn has_field_of(
        &self,
        case: &Case<'_>,
        live: &FieldPath,
        desired: &FieldPath,
        owners: Option<&Owners<'_>>,
    ) -> bool {
        if self.ignored.is_empty() {
            return false;
        }
        let Some((list, leave_the_same)) = self.list_around(live) else {
            return self.covers(live, desired, None, owners);
        };
        if *leave_the_same.get_or_init(|| self.leave_the_same(case, list)) {
            return true;
        }
        // An ignored item of the cluster does not hide an item of Git.
        let is_live = self.live.covers(live, None);
        let is_extra = is_live && desired.find(case.desired.value()).is_none();
        is_extra
            || (is_live && self.desired.covers(desired, None))
            || self.covers(live, desired, Some(list.len() + 1), owners)
    }

    /// Does a rule cover this place? Those about whole items of a list, which have so many segments, can be left out.
    fn covers(
        &self,
        live: &FieldPath,
        desired: &FieldPath,
        except: Option<usize>,
        owners: Option<&Owners<'_>>,
    ) -> bool {
        let managers = &self.ignored.managers;
        let is_theirs = |owners: &Owners<'_>| {
            owners.of_place(live).any(|entry| managers.iter().any(|name| name == entry.manager))
        };
        self.live.covers(live, except)
            || self.desired.covers(desired, except)
            || (!managers.is_empty() && owners.is_some_and(is_theirs))
    }

    /// The list around this field of which rules name whole items. Items are compared by position, and an ignored item
    /// shifts those after it. So the lists are compared without the ignored items.
    fn list_around(&self, place: &FieldPath) -> Option<(&[Segment], &OnceCell<bool>)> {
        if self.lists.is_empty() {
            return None;
        }
        let segments = place.segments();
        let lists = (0..segments.len()).filter_map(|len| self.lists.get_key_value(segments.get(..len)?));
        let (list, (_, leave_the_same)) = lists.min_by_key(|(_, (position, _))| *position)?;
        Some((list, leave_the_same))
    }

    /// Are the items of the list that no rule names what Git asks for?
    fn leave_the_same(&self, case: &Case<'_>, list: &[Segment]) -> bool {
        let path = FieldPath::from(list.to_vec());
        let left = |rules: &[FieldPath], object: &Value| -> Vec<Value> {
            let named: HashSet<&Segment> = rules
                .iter()
                .filter_map(|rule| rule.segments().split_last())
                .filter(|(_, parent)| *parent == list)
                .map(|(item, _)| item)
                .collect();
            let is_named = |index: usize| {
                named.contains(&Segment::Index(index))
                    || named.contains(&Segment::Field(index.to_string().into()))
            };
            let items = path.find(object).and_then(Value::as_array).into_iter().flatten().enumerate();
            items.filter(|(index, _)| !is_named(*index)).map(|(_, item)| item.clone()).collect()
        };
        let asked = left(&self.ignored.desired, case.desired.value());
        let found = left(&self.ignored.live, case.live.value());
        asked.len() == found.len() && asked.iter().zip(&found).all(|(asked, found)| has_all(found, asked))
    }
}
