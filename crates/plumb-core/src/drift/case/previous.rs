//! What Git asked for before: the last apply, and other renders of the same commit.

use serde_json::Value;

use super::Case;
use crate::compare::{Addition, Change, Difference, twin};
use crate::drift::{Previous, Question, SecondRender};
use crate::normalize::LAST_APPLIED;
use crate::object::{FieldPath, Manifest};

impl Case<'_> {
    /// Did the last apply ask for what Git asks for now? A value that the chart generates is different in each render, so
    /// for a missing field it is enough that the last apply had some value there.
    pub(in crate::drift) fn was_applied(&self, difference: &Difference<'_>) -> bool {
        let place = &difference.desired_path;
        let is_gone = matches!(difference.change, Change::Missing | Change::ItemMissing | Change::Order);
        match self.facts().previous {
            Previous::Same => true,
            Previous::Changed(Some(previous)) => {
                let before = self.desired_in(previous, place);
                let is_same = difference.desired.is_some() && before == difference.desired;
                is_same || (is_gone && before.is_some() && self.is_unstable(place) == Some(true))
            }
            Previous::Rerendered => is_gone && self.is_in_second_render(place),
            Previous::Changed(None) | Previous::Unknown => false,
        }
    }

    /// Does a second render of the same commit have this field too? Also `false` while there is no second render yet; the
    /// question is noted then.
    fn is_in_second_render(&self, place: &FieldPath) -> bool {
        match self.evidence.answers.second_render {
            None => {
                self.ask(Question::SecondRender);
                false
            }
            Some(SecondRender::Object(Some(second))) => self.desired_in(second, place).is_some(),
            Some(SecondRender::Object(None) | SecondRender::Unavailable) => false,
        }
    }

    /// What another manifest asks for in this field of Git's manifest.
    pub(in crate::drift) fn desired_in<'m>(
        &self,
        other: &'m Manifest,
        place: &FieldPath,
    ) -> Option<&'m Value> {
        let schema = self.kind.map(|kind| kind.root);
        twin(place, self.desired.value(), other.value(), schema)?.find(other.value())
    }

    /// Does an earlier manifest have what Git lacks now?
    pub(in crate::drift) fn is_addition_in(&self, earlier: &Manifest, addition: &Addition<'_>) -> bool {
        let schema = self.kind.map(|kind| kind.root);
        let place = twin(&addition.path, self.live.value(), earlier.value(), schema);
        place.is_some_and(|place| place.find(earlier.value()).is_some())
    }

    /// Does a second render of the same commit have another value here? `None`: there is no second render yet, and the
    /// question is noted.
    pub(in crate::drift) fn is_unstable(&self, place: &FieldPath) -> Option<bool> {
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

    /// What the last client-side apply was given, from its annotation.
    pub(in crate::drift) fn last_applied(&self) -> Option<&Value> {
        let read = || serde_json::from_str(self.live.annotation(LAST_APPLIED)?).ok();
        self.last_applied.get_or_init(read).as_ref()
    }
}
