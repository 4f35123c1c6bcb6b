//! The last sign of use. Kubernetes does not record who reads an object, so this is what can be known, and no more.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;

use crate::object::Manifest;

/// Set by the API server on the Secret of a token, with the day of its last use.
const TOKEN_LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The last sign of use of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSign {
    /// When; `None` if the object says nothing.
    pub at: Option<Timestamp>,
    /// What it was.
    pub what: &'static str,
}

impl LastSign {
    /// The best evidence that the object itself has.
    pub(super) fn of(object: &Manifest) -> Self {
        let value = object.value();
        let time = |pointer: &str| value.pointer(pointer)?.as_str()?.parse::<Timestamp>().ok();
        if let Some(day) = object.label(TOKEN_LAST_USED).and_then(|day| day.parse::<Date>().ok()) {
            let at = day.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp());
            return Self { at, what: "its token was used" };
        }
        match (object.group(), object.kind()) {
            ("batch", "Job") => {
                let ended =
                    time("/status/completionTime").or_else(|| condition(value, &["Complete", "Failed"]));
                if ended.is_some() {
                    return Self { at: ended, what: "it ended" };
                }
            }
            ("batch", "CronJob") => {
                if let Some(at) = time("/status/lastScheduleTime") {
                    return Self { at: Some(at), what: "it ran" };
                }
            }
            _ => {}
        }
        let written = written(value);
        let created = object.created_at();
        match (written, created) {
            (Some(written), Some(created)) if written > created => {
                Self { at: Some(written), what: "it was written" }
            }
            (Some(at), None) => Self { at: Some(at), what: "it was written" },
            (_, created) => Self { at: created, what: "it was created" },
        }
    }
}

/// The last write of its content. A controller that writes the status does not use it.
fn written(value: &Value) -> Option<Timestamp> {
    let entries = value.pointer("/metadata/managedFields")?.as_array()?;
    let of_content =
        entries.iter().filter(|entry| entry.get("subresource").is_none_or(|subresource| subresource == ""));
    of_content.filter_map(|entry| entry.get("time")?.as_str()?.parse().ok()).max()
}

fn condition(value: &Value, types: &[&str]) -> Option<Timestamp> {
    let conditions = value.pointer("/status/conditions")?.as_array()?;
    let mut found = conditions.iter().filter(|condition| {
        condition["status"] == "True" && types.iter().any(|wanted| condition["type"] == *wanted)
    });
    found.find_map(|condition| condition.get("lastTransitionTime")?.as_str()?.parse().ok())
}
