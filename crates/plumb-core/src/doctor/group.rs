//! Findings that belong together, and illnesses.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::StatusOf;
use super::facts::is_crash_loop;
use crate::app::AppId;
use crate::drift::{DriftClass, Finding};
use crate::object::ObjectKey;

/// An object that has been unhealthy for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illness {
    /// Its app.
    pub app: AppId,
    /// The object.
    pub key: ObjectKey,
    /// Its health.
    pub status: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// It should have become healthy long ago.
    pub is_stuck: bool,
    /// Why, from the object to the container.
    pub causes: Vec<String>,
}

impl Illness {
    /// Does a container crash again and again? The reason of the kubelet says so, in every report and status.
    pub fn is_crash_loop(&self) -> bool {
        is_crash_loop(&self.causes)
    }
}

/// A finding with its app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The app.
    pub app: AppId,
    /// The finding.
    pub finding: Finding,
    /// The app's status shows the object as `OutOfSync`.
    pub is_red: bool,
    /// Who wrote that status.
    pub status_of: StatusOf,
}

impl Place {
    /// What Argo CD says about the object; `None` where plumb's engine writes the status.
    pub fn in_argo_cd(&self) -> Option<&'static str> {
        match (self.status_of, self.is_red) {
            (StatusOf::Plumb, _) => None,
            (StatusOf::ArgoCd, true) => Some("OutOfSync"),
            (StatusOf::ArgoCd, false) => Some("Synced"),
        }
    }
}

/// An app that has objects whose status is `OutOfSync`, or that could not be judged, without a verdict of plumb.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unjudged {
    /// The app.
    pub app: AppId,
    /// The objects that its status shows as `OutOfSync`.
    pub red: Vec<ObjectKey>,
    /// Why there is no verdict.
    pub problem: Option<String>,
}

/// Findings of one class about objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Why they differ.
    pub class: DriftClass,
    /// The kind of their objects.
    pub kind: String,
    /// Each of them; never empty, sorted by app and object.
    pub places: Vec<Place>,
}

impl Group {
    /// The apps, each once.
    pub fn apps(&self) -> BTreeSet<&AppId> {
        self.places.iter().map(|place| &place.app).collect()
    }

    /// The writers, each once.
    pub fn actors(&self) -> BTreeSet<&str> {
        self.places.iter().filter_map(|place| place.finding.actor.as_deref()).collect()
    }

    /// Since when the oldest of them exists.
    pub fn since(&self) -> Option<Timestamp> {
        self.places.iter().filter_map(|place| place.finding.since).min()
    }

    /// What ends them, in the words of the first.
    pub fn fix(&self) -> &str {
        self.places.first().map_or("", |place| place.finding.fix.text.as_str())
    }
}
