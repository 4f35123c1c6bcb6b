//! A paused app or object.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::ObjectKey;

/// `plumb.dev/pause`: nothing is written while it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it ends; `None`: when a user ends it.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: Option<String>,
}

impl Pause {
    /// The annotation's key, on an Application.
    pub const ANNOTATION: &'static str = "plumb.dev/pause";

    /// The longest time for which a pause holds after it was written. A forgotten pause must not hide for ever that the
    /// cluster is not what Git says.
    pub const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

    /// Reads the annotation: a JSON map `{until, reason, by}`, or just a reason. A text that cannot
    /// be parsed still is a pause: without end, and with the text as its reason.
    pub fn parse(text: &str) -> Self {
        let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else {
            return Self { until: None, reason: text.trim().to_owned(), by: None };
        };
        let field = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let reason = field("reason").unwrap_or_default();
        let by = field("by");
        match map.get("until") {
            None | Some(Value::Null) => Self { until: None, reason, by },
            Some(until) => match until.as_str().and_then(|until| until.parse().ok()) {
                Some(until) => Self { until: Some(until), reason, by },
                None => Self {
                    until: None,
                    reason: format!("{reason} (no end: {until} is not a time)").trim().to_owned(),
                    by,
                },
            },
        }
    }

    /// The annotation's text.
    pub fn to_text(&self) -> String {
        let mut map = serde_json::Map::new();
        if let Some(until) = self.until {
            map.insert("until".to_owned(), Value::String(until.to_string()));
        }
        map.insert("reason".to_owned(), Value::String(self.reason.clone()));
        if let Some(by) = &self.by {
            map.insert("by".to_owned(), Value::String(by.clone()));
        }
        Value::Object(map).to_string()
    }

    /// The same pause, which ends at the latest after the longest time. `written_at`: when the API server recorded the
    /// annotation, if that is known.
    #[must_use]
    pub fn written_at(self, written_at: Option<Timestamp>) -> Self {
        let latest = written_at.and_then(|at| at.checked_add(Self::LONGEST).ok());
        Self { until: [self.until, latest].into_iter().flatten().min(), ..self }
    }

    /// Does it hold at this time? One without an end does not, nor one that ends later than the longest time from now: its
    /// record of when it was written is missing or wrong.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        let latest = now.checked_add(Self::LONGEST).unwrap_or(Timestamp::MAX);
        self.until.is_some_and(|until| now < until && until <= latest)
    }
}

/// The paused objects of an app: `plumb.dev/paused-objects` on the Application. It is not on the objects themselves,
/// because a user who may edit an object may not therefore keep plumb from healing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PausedObjects(BTreeMap<ObjectKey, Pause>);

impl PausedObjects {
    /// The annotation's key, on an Application.
    pub const ANNOTATION: &'static str = "plumb.dev/paused-objects";

    /// Reads the annotation: a JSON map from `GROUP/KIND/NAMESPACE/NAME` to a pause. An entry that cannot be read pauses
    /// nothing.
    pub fn parse(text: &str) -> Self {
        let Ok(Value::Object(map)) = serde_json::from_str::<Value>(text) else { return Self::default() };
        let entries = map.iter().filter_map(|(name, pause)| {
            let text = pause.as_str().map_or_else(|| pause.to_string(), str::to_owned);
            Some((key_of(name)?, Pause::parse(&text)))
        });
        Self(entries.collect())
    }

    /// The annotation's text; `None` if no object is paused.
    pub fn to_text(&self) -> Option<String> {
        let entry = |(key, pause): (&ObjectKey, &Pause)| {
            let pause = serde_json::from_str(&pause.to_text()).unwrap_or_default();
            (name_of(key), pause)
        };
        (!self.0.is_empty()).then(|| Value::Object(self.0.iter().map(entry).collect()).to_string())
    }

    /// The same, each with an end; see [`Pause::written_at`].
    #[must_use]
    pub fn written_at(self, written_at: Option<Timestamp>) -> Self {
        Self(self.0.into_iter().map(|(key, pause)| (key, pause.written_at(written_at))).collect())
    }

    /// The pause of this object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Pause> {
        self.0.get(key)
    }

    /// Pauses this object, or ends its pause.
    pub fn set(&mut self, key: ObjectKey, pause: Option<Pause>) {
        match pause {
            Some(pause) => self.0.insert(key, pause),
            None => self.0.remove(&key),
        };
    }

    /// Removes the pauses that have ended.
    pub fn retain_holding(&mut self, now: Timestamp) {
        self.0.retain(|_, pause| pause.holds_at(now));
    }
}

fn name_of(key: &ObjectKey) -> String {
    format!("{}/{}/{}/{}", key.group, key.kind, key.namespace.as_deref().unwrap_or_default(), key.name)
}

fn key_of(name: &str) -> Option<ObjectKey> {
    let mut parts = name.splitn(4, '/');
    let (group, kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_named = !kind.is_empty() && !name.is_empty();
    let namespace = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
    is_named.then(|| ObjectKey::new(group, kind, namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_pause_ends_at_its_time() {
        let pause = Pause::parse(r#"{"until":"2026-11-15T20:00:00Z","reason":"migration","by":"ada"}"#);
        assert_eq!(pause.by.as_deref(), Some("ada"));
        assert!(pause.holds_at(time("2026-11-15T19:59:59Z")));
        assert!(!pause.holds_at(time("2026-11-15T20:00:00Z")));
    }

    #[test]
    fn a_pause_is_read_back_from_its_text() {
        let pause = Pause {
            until: Some(time("2026-11-15T20:00:00Z")),
            reason: "a \"quoted\" reason".to_owned(),
            by: Some("ada".to_owned()),
        };
        assert_eq!(Pause::parse(&pause.to_text()), pause);
        let endless = Pause { until: None, by: None, ..pause };
        assert_eq!(Pause::parse(&endless.to_text()), endless);
    }

    #[test]
    fn every_pause_ends() {
        let written = Some(time("2026-11-15T20:00:00Z"));
        let until = |text: &str| Pause::parse(text).written_at(written).until;
        assert_eq!(until("freeze"), Some(time("2026-11-22T20:00:00Z")));
        assert_eq!(until(r#"{"until":"2099-01-01T00:00:00Z"}"#), Some(time("2026-11-22T20:00:00Z")));
        assert_eq!(until(r#"{"until":"2026-11-16T00:00:00Z"}"#), Some(time("2026-11-16T00:00:00Z")));
    }

    #[test]
    fn paused_objects_are_read_back_from_their_text() {
        let web = ObjectKey::new("apps", "Deployment", Some("prod".to_owned()), "web");
        let role = ObjectKey::new("rbac.authorization.k8s.io", "ClusterRole", None, "a:b/c");
        let mut paused = PausedObjects::default();
        paused.set(web.clone(), Some(Pause::parse(r#"{"until":"2026-11-15T20:00:00Z","reason":"a"}"#)));
        paused.set(role.clone(), Some(Pause::parse(r#"{"until":"2026-11-15T21:00:00Z","reason":"b"}"#)));
        let read = PausedObjects::parse(&paused.to_text().expect("some"));
        assert_eq!(read, paused);
        assert_eq!(read.get(&role).map(|pause| pause.reason.as_str()), Some("b"));
        let mut later = read;
        later.retain_holding(time("2026-11-15T20:30:00Z"));
        assert!(later.get(&web).is_none() && later.get(&role).is_some());
        later.set(role, None);
        assert_eq!(later.to_text(), None);
        for soup in ["", "yes", "[]", r#"{"web":{}}"#, r#"{"//": 3}"#, r#"{"a/B//": {}}"#] {
            assert_eq!(PausedObjects::parse(soup), PausedObjects::default(), "{soup}");
        }
    }

    #[test]
    fn what_cannot_be_understood_holds_for_the_longest_time() {
        let written = time("2026-11-15T20:00:00Z");
        for text in ["yes", "[1]", r#"{"until":"tomorrow"}"#, r#"{"until":7}"#, "{", ""] {
            let pause = Pause::parse(text).written_at(Some(written));
            assert!(pause.holds_at(time("2026-11-22T19:59:59Z")), "{text}");
            assert!(!pause.holds_at(time("2026-11-22T20:00:00Z")), "{text}");
        }
        // The record of when it was written is gone, or lies in the future.
        let now = time("2026-11-16T00:00:00Z");
        let forged = Some(time("2099-01-01T00:00:00Z"));
        for text in ["yes", r#"{"until":"2099-01-01T00:00:00Z"}"#] {
            assert!(!Pause::parse(text).written_at(None).holds_at(now), "{text}");
            assert!(!Pause::parse(text).written_at(forged).holds_at(now), "{text}");
        }
        assert!(Pause::parse(r#"{"until":"2026-11-17T00:00:00Z"}"#).written_at(None).holds_at(now));
        assert_eq!(Pause::parse(" release freeze ").reason, "release freeze");
    }
}
