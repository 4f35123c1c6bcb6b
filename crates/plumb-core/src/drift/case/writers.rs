//! Who wrote what, and when: the object's `managedFields`, the witness, and earlier findings.

use jiff::Timestamp;
use serde_json::Value;

use super::Case;
use crate::compare::{Addition, Change, Difference, twin};
use crate::drift::DriftClass;
use crate::fields::{Entry, Operation, is_control_plane, is_controller_by_name, is_person};
use crate::object::FieldPath;
use crate::witness::Note;

impl<'a> Case<'a> {
    /// The other writer that wrote this field last. An earlier apply, client-side or by another delivery tool, counts
    /// as another writer only if it came after ours.
    pub(in crate::drift) fn other_writer(&self, place: &FieldPath) -> Option<&Entry<'a>> {
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
                // Another client may have written under our name: an update after our apply is not ours.
                _ => ours.is_some() && is_later(entry.time_text, ours),
            })
            .max_by_key(|entry| (entry.time_text.is_none(), entry.time_text))
    }

    /// The other writer of what differs. A missing item and an order have no owner in `managedFields`: the entries of a
    /// keyed list name its items. Times have full seconds; another apply within the same second came after ours, because
    /// ours would have replaced its value.
    pub(in crate::drift) fn other_writer_of(&self, difference: &Difference<'_>) -> Option<&Entry<'a>> {
        let is_gone = matches!(difference.change, Change::ItemMissing | Change::Order);
        match &difference.whole {
            Some(whole) => self.last_writer(whole, |entry, ours| entry >= ours),
            None if is_gone => None,
            None => self.last_writer(&difference.path, |entry, ours| entry >= ours),
        }
    }

    /// The last writer that used another version of the kind after our apply. The fields may have other names there, so
    /// its entry does not name the field that differs.
    pub(in crate::drift) fn writer_in_other_version(&self) -> Option<&Entry<'a>> {
        let version = self.desired.api_version();
        let entries = self.owners.entries().iter().filter(|entry| {
            !entry.is_ours()
                && entry.subresource.is_none()
                && entry.api_version.is_some_and(|other| other != version)
                && self.is_after_ours(entry)
        });
        entries.max_by_key(|entry| entry.time_text)
    }

    /// Does plumb own this field, by a server-side or an earlier client-side apply?
    pub(in crate::drift) fn is_ours(&self, place: &FieldPath) -> bool {
        self.owners.of_place(place).any(Entry::is_ours)
    }

    /// Did this entry change after our last apply? Times have full seconds; a tie counts as "after", because our apply
    /// would have replaced the value otherwise.
    pub(in crate::drift) fn is_after_ours(&self, entry: &Entry<'_>) -> bool {
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

    /// Does this writer own a value that Git sets too, apart from labels and annotations?
    pub(in crate::drift) fn owns_fields_of_git(&self, entry: &Entry<'_>) -> bool {
        let position =
            self.owners.entries().iter().position(|other| std::ptr::eq(other.fields, entry.fields));
        let Some(position) = position else { return self.finds_fields_of_git(entry) };
        let known = self.once.owners_of_git.borrow().get(&position).copied();
        known.unwrap_or_else(|| {
            let owns = self.finds_fields_of_git(entry);
            self.once.owners_of_git.borrow_mut().insert(position, owns);
            owns
        })
    }

    fn finds_fields_of_git(&self, entry: &Entry<'_>) -> bool {
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

    /// Is this writer, as far as can be told, no person? Where the witness knows the user behind the write, the user decides:
    /// controllers are users of the system. So are, for this question, the users that may do everything.
    pub(in crate::drift) fn is_controller(&self, entry: &Entry<'_>) -> bool {
        let is_user_of_system = || {
            let note = self.note_on(entry)?;
            let user = note.user.as_deref()?;
            Some(note.is_administrator || ["system:", "eks:"].iter().any(|prefix| user.starts_with(prefix)))
        };
        !is_person(entry.manager) && is_user_of_system().unwrap_or(true)
    }

    /// Is this writer known to be a controller, by its name or because it writes the object's status?
    pub(in crate::drift) fn is_known_controller(&self, entry: &Entry<'_>) -> bool {
        let writes_status = || {
            let mut entries = self.owners.entries().iter();
            entries.any(|other| other.manager == entry.manager && other.subresource == Some("status"))
        };
        self.is_controller(entry) && (is_controller_by_name(entry.manager) || writes_status())
    }

    /// Does a controller write the object itself, not only its status? Without the witness that is the only trace of a
    /// typed client that writes the object back. The time of its entry is that of the first such write.
    pub(in crate::drift) fn is_reprinted_by_controller(&self) -> bool {
        self.owners.entries().iter().any(|entry| {
            !entry.is_ours()
                && entry.operation == Operation::Update
                && entry.subresource.is_none()
                && is_controller_by_name(entry.manager)
        })
    }

    /// The writer and time that an earlier finding gave for the same change, unless plumb has applied since.
    pub(in crate::drift) fn named_before(
        &self,
        field: &FieldPath,
    ) -> Option<(Option<String>, Option<Timestamp>)> {
        let ours = self.owners.ours().and_then(Entry::time);
        let finding = self.facts().earlier.iter().find(|finding| {
            finding.class == DriftClass::LiveEdit
                && finding.actor.is_some()
                && finding.fields.contains(field)
                && finding.since.is_some_and(|since| ours.is_none_or(|ours| since >= ours))
        })?;
        Some((finding.actor.clone(), finding.since))
    }

    /// Did an earlier finding explain that this value was dropped, and has plumb not applied since?
    pub(in crate::drift) fn was_found_dropped(&self, field: &FieldPath) -> bool {
        let ours = self.owners.ours().and_then(Entry::time);
        self.facts().earlier.iter().any(|finding| {
            finding.class == DriftClass::PhantomDefault
                && finding.fields.contains(field)
                && finding.since.is_none_or(|since| ours.is_none_or(|ours| since >= ours))
        })
    }

    /// Did an earlier finding name this writer for the same addition? Our next apply makes its entry look older than ours,
    /// but that does not make the addition a leftover of an earlier apply.
    pub(in crate::drift) fn was_found_added(&self, addition: &Addition<'_>, entry: &Entry<'_>) -> bool {
        self.facts().earlier.iter().any(|finding| {
            finding.class == DriftClass::UnclaimedAddition
                && finding.actor.as_deref() == Some(entry.manager)
                && finding.fields.contains(&addition.path)
        })
    }

    /// The user behind an entry, as the API server told the witness: a client chooses the name of its field manager, but
    /// not its user. Only of the last write.
    pub(in crate::drift) fn user_of(&self, entry: &Entry<'_>) -> Option<String> {
        self.note_on(entry)?.user
    }

    /// The note of the witness on the write of this entry.
    fn note_on(&self, entry: &Entry<'_>) -> Option<Note> {
        let note = Note::on(self.live).filter(|note| note.writer == entry.manager)?;
        let is_same_write = entry.time().is_none_or(|at| note.at.as_second() == at.as_second());
        is_same_write.then_some(note)
    }

    /// Is this writer part of the control plane, as far as can be told? A user that is known not to be is none, whatever name
    /// its field manager has.
    pub(in crate::drift) fn is_control_plane(&self, entry: &Entry<'_>) -> bool {
        const USERS: [&str; 7] = [
            "system:apiserver",
            "system:cloud-controller-manager",
            "system:k3s",
            "system:kube-controller-manager",
            "system:kube-scheduler",
            "system:node:",
            "system:serviceaccount:kube-system:",
        ];
        is_control_plane(entry.manager)
            && self.user_of(entry).is_none_or(|user| USERS.iter().any(|known| user.starts_with(known)))
    }

    /// The last writer that the witness noted, if it wrote after our apply. It stands in for the writer of a removal or of
    /// a new order, which `managedFields` do not record.
    pub(in crate::drift) fn witnessed_writer(&self) -> (Option<String>, Option<Timestamp>) {
        let ours = self.owners.ours().and_then(Entry::time);
        match Note::on(self.live).filter(|note| ours.is_none_or(|ours| note.at >= ours)) {
            Some(note) => (Some(note.writer), Some(note.at)),
            None => (None, None),
        }
    }
}

/// The paths of all scalars, empty maps and empty lists.
pub(in crate::drift) fn leaf_places(value: &Value, place: FieldPath) -> Vec<FieldPath> {
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
