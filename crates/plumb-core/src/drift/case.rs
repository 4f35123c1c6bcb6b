//! One object under judgement: the evidence, what comparing found, and the questions that come up.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::evidence::{DryRun, Evidence, Facts, Question, SecondRender};
use super::{DriftClass, Previous};
use crate::compare::{Addition, Aside, Change, Comparison, Difference, Fill, compare, is_zero, twin};
use crate::fields::{Entry, Owners, is_controller_by_name, is_person};
use crate::normalize::LAST_APPLIED;
use crate::object::{FieldPath, Manifest, Segment};
use crate::schema::{KindSchema, ListType, Schema, Shape};
use crate::witness::Note;

/// One difference with its class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Explained {
    pub(super) class: DriftClass,
    pub(super) field: FieldPath,
    /// The same place in Git's document, where Git has one.
    pub(super) git: Option<FieldPath>,
    /// In what way a value of Git's differs; `None` for what Git does not mention.
    pub(super) change: Option<Change>,
    pub(super) actor: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) evidence: Cow<'static, str>,
    /// Does it count? Most classes have one answer, a few depend on the case.
    pub(super) counts: bool,
    /// The place whose live value an apply must keep.
    pub(super) keep: Option<FieldPath>,
    /// The place of Git's object that an apply must leave out.
    pub(super) leave_out: Option<FieldPath>,
    /// The place whose ownership an apply must take over first.
    pub(super) take: Option<FieldPath>,
    /// More to say in the fix: a known name, an error.
    pub(super) hint: Option<String>,
}

impl Explained {
    pub(super) fn new(
        class: DriftClass,
        field: FieldPath,
        counts: bool,
        evidence: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            class,
            field,
            git: None,
            change: None,
            actor: None,
            since: None,
            evidence: evidence.into(),
            counts,
            keep: None,
            leave_out: None,
            take: None,
            hint: None,
        }
    }

    pub(super) fn by(mut self, entry: &Entry<'_>) -> Self {
        self.actor = Some(entry.manager.to_owned());
        self.since = entry.time();
        self
    }

    /// Of a value that Git sets.
    pub(super) fn of(mut self, difference: &Difference<'_>) -> Self {
        self.change = Some(difference.change);
        self.git = difference.desired.map(|_| difference.desired_path.clone());
        self
    }

    /// Does an apply leave it as the cluster has it?
    pub(super) fn is_kept(&self) -> bool {
        self.keep.is_some() || self.leave_out.is_some()
    }

    pub(super) fn keeping(mut self, place: FieldPath) -> Self {
        self.keep = Some(place);
        self
    }
}

/// One object under judgement. Git asks for it, the cluster has it, and it is this app's.
pub(super) struct Case<'a> {
    pub(super) evidence: &'a Evidence<'a>,
    pub(super) desired: &'a Manifest,
    pub(super) live: &'a Manifest,
    pub(super) kind: Option<KindSchema<'a>>,
    pub(super) owners: Owners<'a>,
    pub(super) is_secret: bool,
    pub(super) comparison: Comparison<'a>,
    predicted: OnceCell<Option<Comparison<'a>>>,
    last_applied: OnceCell<Option<Value>>,
    questions: RefCell<BTreeSet<Question>>,
}

/// What the server would make of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prediction {
    /// It would leave it as it is.
    Unchanged,
    /// It would change it.
    Changed,
    /// It refuses the object.
    Refused,
    /// It could not be asked.
    Unavailable,
    /// It was not asked yet; the question is noted.
    Asked,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        evidence: &'a Evidence<'a>,
        desired: &'a Manifest,
        live: &'a Manifest,
        is_secret: bool,
    ) -> Self {
        let kind = evidence.schemas.kind(&desired.gvk());
        let comparison = compare(desired, live, kind, Self::aside(kind));
        Self {
            evidence,
            desired,
            live,
            kind,
            owners: Owners::of(live),
            is_secret,
            comparison,
            predicted: OnceCell::new(),
            last_applied: OnceCell::new(),
            questions: RefCell::new(BTreeSet::new()),
        }
    }

    /// Without a schema it is likelier that `status` is the controller's than that it is Git's.
    pub(super) fn aside(kind: Option<KindSchema<'_>>) -> Aside {
        Aside { status: kind.is_none_or(|kind| kind.has_status_subresource) }
    }

    pub(super) fn facts(&self) -> &'a Facts<'a> {
        &self.evidence.facts
    }

    pub(super) fn is_built_in(&self) -> bool {
        self.kind.and_then(|kind| kind.root.type_name()).is_some_and(|name| name.starts_with("io.k8s."))
    }

    pub(super) fn ask(&self, question: Question) {
        self.questions.borrow_mut().insert(question);
    }

    pub(super) fn questions(&self) -> Vec<Question> {
        self.questions.borrow().iter().cloned().collect()
    }

    /// Whoever else wrote this place last. Earlier applies, by client or by another tool, count as ours unless
    /// they came after our apply.
    pub(super) fn other_writer(&self, place: &FieldPath) -> Option<&Entry<'a>> {
        self.last_writer(place, |entry, ours| entry > ours)
    }

    fn last_writer(
        &self,
        place: &FieldPath,
        is_later: impl Fn(Option<&str>, Option<&str>) -> bool,
    ) -> Option<&Entry<'a>> {
        let ours = self.owners.ours().and_then(|entry| entry.time_text);
        self.owners
            .of_place(place)
            .filter(|entry| !entry.is_ours())
            .filter(|entry| match (entry.is_client_side_apply(), entry.is_other_delivery()) {
                (false, false) => true,
                (true, _) if entry.manager == crate::tracking::FIELD_MANAGER => false,
                _ => ours.is_some() && is_later(entry.time_text, ours),
            })
            .max_by_key(|entry| (entry.time_text.is_none(), entry.time_text))
    }

    /// Whoever else wrote what differs. What is not there has no owner, and neither has an order: the entries
    /// of a keyed list speak of its items. Within one second an apply that left another value than Git's came
    /// after ours, which would have replaced it.
    pub(super) fn other_writer_of(&self, difference: &Difference<'_>) -> Option<&Entry<'a>> {
        let is_gone = matches!(difference.change, Change::ItemMissing | Change::Order);
        match &difference.whole {
            Some(whole) => self.last_writer(whole, |entry, ours| entry >= ours),
            None if is_gone => None,
            None => self.last_writer(&difference.path, |entry, ours| entry >= ours),
        }
    }

    /// Whoever wrote the object after us in the terms of another version of its kind, in which the places have
    /// other names.
    pub(super) fn writer_in_other_version(&self) -> Option<&Entry<'a>> {
        let version = self.desired.api_version();
        let entries = self.owners.entries().iter().filter(|entry| {
            !entry.is_ours()
                && entry.subresource.is_none()
                && entry.api_version.is_some_and(|other| other != version)
                && self.is_after_ours(entry)
        });
        entries.max_by_key(|entry| entry.time_text)
    }

    /// Did Git ask for the same when we applied last? A value that is made up at each rendering was never the same, but
    /// what is gone was there.
    pub(super) fn was_asked(&self, difference: &Difference<'_>) -> bool {
        let place = &difference.desired_path;
        let is_gone = matches!(difference.change, Change::Missing | Change::ItemMissing | Change::Order);
        match self.facts().previous {
            Previous::Same => true,
            Previous::Changed(Some(previous)) => {
                let before = self.asked_in(previous, place);
                let is_same = difference.desired.is_some() && before == difference.desired;
                is_same || (is_gone && before.is_some() && self.is_unstable(place) == Some(true))
            }
            Previous::Rerendered => is_gone && self.has_second_render(place),
            Previous::Changed(None) | Previous::Unknown => false,
        }
    }

    /// Does a second rendering of the same commit have this place of Git's, too? `false`: it does not, or the question was
    /// noted.
    fn has_second_render(&self, place: &FieldPath) -> bool {
        match self.evidence.answers.second_render {
            None => {
                self.ask(Question::SecondRender);
                false
            }
            Some(SecondRender::Object(Some(second))) => self.asked_in(second, place).is_some(),
            Some(SecondRender::Object(None) | SecondRender::Unavailable) => false,
        }
    }

    /// What an earlier manifest asks for in this place of Git's.
    pub(super) fn asked_in<'m>(&self, earlier: &'m Manifest, place: &FieldPath) -> Option<&'m Value> {
        let schema = self.kind.map(|kind| kind.root);
        twin(place, self.desired.value(), earlier.value(), schema)?.find(earlier.value())
    }

    /// Do we own this place, by server-side or an earlier client-side apply?
    pub(super) fn is_ours(&self, place: &FieldPath) -> bool {
        self.owners.of_place(place).any(Entry::is_ours)
    }

    /// Was it the server that dropped what our apply asked for? Whoever takes a field away takes it from every
    /// record, and whoever changes a list that is replaced as a whole becomes its owner. So a field that stands in
    /// our record, or in another's, and not in the object was dropped when it was written. Some fields never go: whoever
    /// takes such a one out writes null, and that stands in his record.
    pub(super) fn is_dropped_by_server(&self, difference: &Difference<'_>) -> bool {
        if difference.change != Change::Missing {
            return false;
        }
        let Some(ours) = self.owners.ours() else { return false };
        let is_of_version = |entry: &Entry<'_>| entry.api_version == ours.api_version;
        match &difference.whole {
            None => {
                let live = self.live.value();
                let is_null = difference.path.find(live).is_some();
                self.owners.entries().iter().any(|entry| {
                    (entry.is_ours() || !is_null)
                        && is_of_version(entry)
                        && entry.names(&difference.path, live)
                })
            }
            Some(whole) => {
                matches!(self.facts().previous, Previous::Same)
                    && ours.owns(whole, self.live.value())
                    && self.owners.of_place(whole).all(Entry::is_ours)
            }
        }
    }

    /// Did this entry change after our last apply? Times have full seconds; a tie is taken for "after", as our
    /// own apply would otherwise have won.
    pub(super) fn is_after_ours(&self, entry: &Entry<'_>) -> bool {
        let ours = self.owners.entries().iter().filter(|entry| {
            entry.is_ours()
                || (entry.is_client_side_apply() && entry.manager == crate::tracking::FIELD_MANAGER)
        });
        // Entries of the `scale` subresource carry no time.
        match (ours.map(|entry| entry.time_text).max(), entry.time_text) {
            (Some(ours), Some(theirs)) => Some(theirs) >= ours,
            (None, _) | (_, None) => true,
        }
    }

    /// Asks the server (once) whether an apply would change this difference.
    pub(super) fn predict(&self, difference: &Difference<'_>) -> Prediction {
        self.prediction(|predicted| {
            predicted.differences.iter().any(|other| {
                other.desired_path == difference.desired_path
                    && other.change == difference.change
                    && other.live == difference.live
            })
        })
    }

    /// Asks the server (once) whether an apply would leave this addition.
    pub(super) fn predict_addition(&self, addition: &Addition<'_>) -> Prediction {
        self.prediction(|predicted| {
            predicted
                .additions
                .iter()
                .any(|other| is_same_place(&other.path, &addition.path) && other.live == addition.live)
        })
    }

    /// Asks the server (once) whether the very value would be there after an apply, however it came there.
    pub(super) fn predict_value(&self, addition: &Addition<'_>) -> Prediction {
        match self.evidence.answers.dry_run {
            Some(DryRun::Object(object)) => {
                let schema = self.kind.map(|kind| kind.root);
                let place = twin(&addition.path, self.live.value(), object.value(), schema);
                match place.and_then(|place| place.find(object.value())) {
                    Some(value) if value == addition.live => Prediction::Unchanged,
                    Some(_) | None => Prediction::Changed,
                }
            }
            None | Some(DryRun::Refused(_) | DryRun::Unavailable) => self.predict_addition(addition),
        }
    }

    /// Does the server fill this in by itself, with another value each time (the time of a taint)? A default is the same
    /// each time: where it differs from what is there, Git asked for that before.
    pub(super) fn is_filled_anew(&self, addition: &Addition<'_>) -> bool {
        let is_default = |other: &Addition<'_>| {
            matches!(other.fill, Fill::Schema | Fill::BuiltIn) || is_zero(other.live) || other.live == "0"
        };
        self.prediction(|predicted| {
            let mut same =
                predicted.additions.iter().filter(|other| is_same_place(&other.path, &addition.path));
            same.any(|other| !is_default(other))
        }) == Prediction::Unchanged
    }

    fn prediction(&self, stays: impl FnOnce(&Comparison<'_>) -> bool) -> Prediction {
        match self.evidence.answers.dry_run {
            None => {
                self.ask(Question::DryRun);
                Prediction::Asked
            }
            Some(DryRun::Refused(failure)) if failure.is_final() => Prediction::Refused,
            Some(DryRun::Refused(_) | DryRun::Unavailable) => Prediction::Unavailable,
            Some(DryRun::Object(object)) => {
                let predicted = self
                    .predicted
                    .get_or_init(|| Some(compare(self.desired, object, self.kind, Self::aside(self.kind))));
                match predicted {
                    Some(predicted) if stays(predicted) => Prediction::Unchanged,
                    Some(_) => Prediction::Changed,
                    None => Prediction::Unavailable,
                }
            }
        }
    }

    /// Does rendering the same commit again give another value here? `None`: the question was noted.
    pub(super) fn is_unstable(&self, place: &FieldPath) -> Option<bool> {
        if !self.facts().render_may_vary {
            return Some(false);
        }
        match self.evidence.answers.second_render {
            None => {
                self.ask(Question::SecondRender);
                None
            }
            Some(SecondRender::Unavailable) => Some(false),
            Some(SecondRender::Object(None)) => Some(true),
            Some(SecondRender::Object(Some(second))) => {
                Some(place.find(second.value()) != place.find(self.desired.value()))
            }
        }
    }

    /// The schema of a place.
    pub(super) fn schema_of(&self, place: &FieldPath) -> Option<Schema<'a>> {
        place.segments().iter().try_fold(self.kind?.root, |schema, segment| match segment {
            Segment::Field(name) => schema.known(name),
            Segment::Index(_) => match schema.shape() {
                Shape::List { items, .. } => Some(items),
                Shape::Any | Shape::Map { .. } | Shape::Scalar(_) => None,
            },
        })
    }

    /// The fields by which the items of a list are told apart, where it has such keys. The place may be of either side.
    pub(super) fn keys_of(&self, list: &FieldPath) -> Option<&'a [String]> {
        match self.schema_of(list)?.shape() {
            Shape::List { list_type: ListType::Map(keys), .. } => Some(keys),
            Shape::List { .. } | Shape::Any | Shape::Map { .. } | Shape::Scalar(_) => None,
        }
    }

    /// The record of the last client-side apply, if the object carries one.
    pub(super) fn last_applied(&self) -> Option<&Value> {
        let read = || serde_json::from_str(self.live.annotation(LAST_APPLIED)?).ok();
        self.last_applied.get_or_init(read).as_ref()
    }

    /// `Git says 3, the cluster has 10`, or nothing of the values where they are secret.
    pub(super) fn values(&self, difference: &Difference<'_>) -> String {
        if self.is_secret {
            return "the values differ (they are not shown)".to_owned();
        }
        let side = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), show);
        format!("Git says {}, the cluster has {}", side(difference.desired), side(difference.live))
    }

    /// Does this writer's record have a value that Git asks for as well, beside labels and annotations?
    pub(super) fn has_of_git(&self, entry: &Entry<'_>) -> bool {
        let schema = self.kind.map(|kind| kind.root);
        let (desired, live) = (self.desired.value(), self.live.value());
        let is_content = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
        let fields = desired.as_object().into_iter().flatten().filter(|(name, _)| is_content(name));
        fields.into_iter().any(|(name, value)| {
            leaf_places(value, FieldPath::root().field(name.as_str())).iter().any(|place| {
                let place = twin(place, desired, live, schema);
                place.is_some_and(|place| place.find(live).is_some() && entry.owns(&place, live))
            })
        })
    }

    /// Is there a sign that this writer is a controller: its name, or that it writes the object's status?
    pub(super) fn is_shown_controller(&self, entry: &Entry<'_>) -> bool {
        let writes_status = || {
            let mut entries = self.owners.entries().iter();
            entries.any(|other| other.manager == entry.manager && other.subresource == Some("status"))
        };
        is_controller(entry) && (is_controller_by_name(entry.manager) || writes_status())
    }

    /// Whom an earlier look named for the same change, unless we have written since.
    pub(super) fn named_before(&self, field: &FieldPath) -> Option<(Option<String>, Option<Timestamp>)> {
        let ours = self.owners.ours().and_then(Entry::time);
        let finding = self.facts().earlier.iter().find(|finding| {
            finding.class == DriftClass::LiveEdit
                && finding.actor.is_some()
                && finding.fields.contains(field)
                && finding.since.is_some_and(|since| ours.is_none_or(|ours| since >= ours))
        })?;
        Some((finding.actor.clone(), finding.since))
    }

    /// Who removed or reordered something that our apply had put there; `managedFields` keep no record of that,
    /// the witness does. A note that is older than our apply is of something else.
    pub(super) fn remover(&self) -> (Option<String>, Option<Timestamp>) {
        let ours = self.owners.ours().and_then(Entry::time);
        match Note::on(self.live).filter(|note| ours.is_none_or(|ours| note.at >= ours)) {
            Some(note) => (Some(note.writer), Some(note.at)),
            None => (None, None),
        }
    }
}

/// The places of all that is no map or list with something in it.
fn leaf_places(value: &Value, place: FieldPath) -> Vec<FieldPath> {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().flat_map(|(name, value)| leaf_places(value, place.field(name.as_str()))).collect()
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().flat_map(|(at, item)| leaf_places(item, place.index(at))).collect()
        }
        _ => vec![place],
    }
}

/// A value in a sentence: short, on one line.
pub(super) fn show(value: &Value) -> String {
    let text = value.to_string();
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// `kubectl-edit`, or `kube-controller-manager (scale)`.
pub(super) fn writer(entry: &Entry<'_>) -> String {
    match entry.subresource {
        Some(subresource) => format!("{} ({subresource})", entry.manager),
        None => entry.manager.to_owned(),
    }
}

/// A writer that is not known to be a person.
pub(super) fn is_controller(entry: &Entry<'_>) -> bool {
    !is_person(entry.manager)
}

/// The last step of a path, if it is a field.
pub(super) fn last_field(path: &FieldPath) -> Option<&str> {
    match path.segments().last()? {
        Segment::Field(name) => Some(name),
        Segment::Index(_) => None,
    }
}

/// Does the path consist of exactly these fields?
pub(super) fn is_path(path: &FieldPath, fields: &[&str]) -> bool {
    let segments = path.segments();
    segments.len() == fields.len()
        && segments
            .iter()
            .zip(fields)
            .all(|(segment, field)| matches!(segment, Segment::Field(name) if name == field))
}

/// Does the path lead through these fields first?
pub(super) fn is_under(path: &FieldPath, fields: &[&str]) -> bool {
    let segments = path.segments();
    segments.len() >= fields.len()
        && segments
            .iter()
            .zip(fields)
            .all(|(segment, field)| matches!(segment, Segment::Field(name) if name == field))
}

/// The same place but for positions in lists, which an apply may shift.
fn is_same_place(one: &FieldPath, other: &FieldPath) -> bool {
    let (one, other) = (one.segments(), other.segments());
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| match (one, other) {
            (Segment::Index(_), Segment::Index(_)) => true,
            (one, other) => one == other,
        })
}
