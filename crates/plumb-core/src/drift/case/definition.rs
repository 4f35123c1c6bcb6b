//! The case itself: evidence, comparison, schema and questions.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::Discriminant;

use serde_json::Value;

use super::super::{Evidence, Facts, Question};
use super::server::Predicted;
use crate::compare::{Aside, Change, Comparison, compare};
use crate::drift::random_names::RandomKeysOf;
use crate::fields::Owners;
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{KindSchema, ListType, Schema, Shape};

/// One object that is both in Git and in the cluster, while it is judged.
pub(in crate::drift) struct Case<'a> {
    pub(in crate::drift) evidence: &'a Evidence<'a>,
    /// What Git asks for; a Secret's values are redacted.
    pub(in crate::drift) desired: &'a Manifest,
    /// What the cluster has, in the version that Git uses where it could be read.
    pub(in crate::drift) live: &'a Manifest,
    /// The unredacted manifest of a Secret, to see how its keys are written. `None` for all other kinds.
    pub(in crate::drift) unredacted: Option<&'a Manifest>,
    pub(in crate::drift) kind: Option<KindSchema<'a>>,
    pub(in crate::drift) owners: Owners<'a>,
    pub(in crate::drift) comparison: Comparison<'a>,
    /// The comparison of Git with the answer to the dry-run.
    pub(super) predicted: OnceCell<Predicted<'a>>,
    pub(super) last_applied: OnceCell<Option<Value>>,
    questions: RefCell<BTreeSet<Question>>,
    /// What several rules ask for each difference, computed once: objects may have many thousand of them.
    pub(in crate::drift) once: Once,
}

/// Answers about the whole comparison.
#[derive(Default)]
pub(in crate::drift) struct Once {
    /// Per list or map that is replaced as a whole: how many differences are in it, and whether all are values.
    pub(super) siblings: OnceCell<BTreeMap<FieldPath, (usize, bool)>>,
    /// Git's path of a missing item, to the position of the addition that another writer made out of it.
    pub(in crate::drift) edited_keys: OnceCell<BTreeMap<FieldPath, usize>>,
    /// The path of such an addition, to Git's path of the missing item.
    pub(in crate::drift) replacements: OnceCell<BTreeMap<FieldPath, FieldPath>>,
    /// The JSON types of which the live object still has a zero value of Git, where the types of an operator would drop it.
    pub(in crate::drift) kept_zeros: OnceCell<HashSet<Discriminant<Value>>>,
    /// Which entries, by their position, own a value that Git sets too.
    pub(super) owners_of_git: RefCell<BTreeMap<usize, bool>>,
    /// The keys that a chart generates at random.
    pub(in crate::drift) random_keys: RefCell<RandomKeysOf>,
}

impl<'a> Case<'a> {
    pub(in crate::drift) fn new(
        evidence: &'a Evidence<'a>,
        desired: &'a Manifest,
        live: &'a Manifest,
        unredacted: Option<&'a Manifest>,
    ) -> Self {
        let kind = evidence.schemas.kind(&desired.gvk());
        let comparison = compare(desired, live, kind, Self::aside(kind));
        Self {
            evidence,
            desired,
            live,
            unredacted,
            kind,
            owners: Owners::of(live),
            comparison,
            predicted: OnceCell::new(),
            last_applied: OnceCell::new(),
            questions: RefCell::new(BTreeSet::new()),
            once: Once::default(),
        }
    }

    /// Without a schema, `status` is more likely written by a controller than meant by Git.
    pub(in crate::drift) fn aside(kind: Option<KindSchema<'_>>) -> Aside {
        Aside { status: kind.is_none_or(|kind| kind.has_status_subresource) }
    }

    pub(in crate::drift) fn facts(&self) -> &'a Facts<'a> {
        &self.evidence.facts
    }

    /// Must no finding show a value?
    pub(in crate::drift) fn is_secret(&self) -> bool {
        self.unredacted.is_some()
    }

    /// Do additions count (`Strict=true`, on the app or on the object)?
    pub(in crate::drift) fn is_strict(&self) -> bool {
        let own = self.evidence.desired.map(|desired| desired.options.compare).unwrap_or_default();
        self.evidence.options.or(own).strict
    }

    /// A kind of Kubernetes itself, not a custom resource.
    pub(in crate::drift) fn is_built_in(&self) -> bool {
        self.kind.and_then(|kind| kind.root.type_name()).is_some_and(|name| name.starts_with("io.k8s."))
    }

    /// Do other values differ in the same list or map that is replaced as a whole, and only values?
    pub(in crate::drift) fn has_differing_siblings(&self, whole: &FieldPath) -> bool {
        let siblings = self.once.siblings.get_or_init(|| {
            let mut siblings: BTreeMap<FieldPath, (usize, bool)> = BTreeMap::new();
            for difference in &self.comparison.differences {
                let Some(whole) = &difference.whole else { continue };
                let (count, only_values) = siblings.entry(whole.clone()).or_insert((0, true));
                *count += 1;
                *only_values &= difference.change == Change::Value;
            }
            siblings
        });
        siblings.get(whole).is_some_and(|(count, only_values)| *count > 1 && *only_values)
    }

    /// Notes a question. Judging goes on, so that one round can answer several of them.
    pub(in crate::drift) fn ask(&self, question: Question) {
        self.questions.borrow_mut().insert(question);
    }

    /// The questions noted so far.
    pub(in crate::drift) fn questions(&self) -> Vec<Question> {
        self.questions.borrow().iter().cloned().collect()
    }

    /// The schema of a field.
    pub(in crate::drift) fn schema_of(&self, field: &FieldPath) -> Option<Schema<'a>> {
        field.segments().iter().try_fold(self.kind?.root, |schema, segment| match segment {
            Segment::Field(name) => schema.known(name),
            Segment::Index(_) => match schema.shape() {
                Shape::List { items, .. } => Some(items),
                Shape::Any | Shape::Map { .. } | Shape::Scalar(_) => None,
            },
        })
    }

    /// The fields that identify the items of a list (`x-kubernetes-list-map-keys`). The path may be Git's or the
    /// cluster's.
    pub(in crate::drift) fn keys_of(&self, list: &FieldPath) -> Option<&'a [String]> {
        match self.schema_of(list)?.shape() {
            Shape::List { list_type: ListType::Map(keys), .. } => Some(keys),
            Shape::List { .. } | Shape::Any | Shape::Map { .. } | Shape::Scalar(_) => None,
        }
    }
}
