//! A paused app or object.

use jiff::Timestamp;
use serde_json::Value;

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
    /// The annotation's key.
    pub const ANNOTATION: &'static str = "plumb.dev/pause";

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

    /// Does it hold at this time?
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
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
    fn what_cannot_be_understood_still_holds() {
        for text in ["yes", "[1]", r#"{"until":"tomorrow"}"#, r#"{"until":7}"#, "{", ""] {
            let pause = Pause::parse(text);
            assert!(pause.holds_at(time("2999-01-01T00:00:00Z")), "{text}");
        }
        assert_eq!(Pause::parse(" release freeze ").reason, "release freeze");
    }
}
