//! An app with its differences, and what would end each of them.

use std::collections::BTreeMap;

use plumb_core::app::AppId;
use plumb_core::desired::{DesiredSet, Origin, Scopes};
use plumb_core::drift::{DriftClass, Finding};
use plumb_core::fix::{
    Action, DryRunComparison, FixGoal, IgnoreEntry, Keeper, LastSync, ObjectChange, Subject,
    is_shown_by_argo_cd, propose,
};
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::yaml::Operation;
use plumb_crd::Application;
use serde_json::Value;

use super::application_files::Written;
use super::keepers::Keepers;
use super::readers::Reader;
use crate::local::LocalSource;
use crate::select::resource_filter::ResourceFilter;
use crate::view::rows::ObjectRow;

/// An app with its differences.
pub(super) struct Case {
    pub(super) id: AppId,
    /// Its name in tracking marks.
    pub(super) instance: String,
    /// Namespace of objects that name none.
    pub(super) namespace: Option<String>,
    /// Where its kinds live.
    pub(super) scopes: Scopes,
    /// Its sources that have a working copy, by their place in the Application.
    pub(super) sources: BTreeMap<usize, LocalSource>,
    pub(super) goal: FixGoal,
    /// What the Application says in the cluster.
    pub(super) written: Written,
    pub(super) objects: Vec<CaseObject>,
}

/// One object with its differences.
pub(super) struct CaseObject {
    pub(super) findings: Vec<Finding>,
    /// The object in Git, and where.
    pub(super) desired: Option<(Manifest, Option<Origin>)>,
    pub(super) live: Option<Manifest>,
    /// Does Argo CD show it as `OutOfSync`?
    pub(super) is_red: Option<bool>,
    pub(super) last_sync: Option<SyncResult>,
}

/// What the last sync said about an object.
#[derive(Clone)]
pub(super) struct SyncResult {
    status: String,
    message: String,
}

impl SyncResult {
    /// The results of the last sync, by object. Hooks are made anew by each sync.
    pub(super) fn all(application: &Application) -> BTreeMap<ObjectKey, Self> {
        let state = application.status.operation_state.as_ref();
        let result = state.and_then(|state| state.sync_result.as_deref());
        let objects = result.into_iter().flat_map(|result| &result.resources);
        let objects = objects.filter(|object| object.hook_type.is_empty());
        objects
            .map(|object| {
                (object.key(), Self { status: object.status.clone(), message: object.message.clone() })
            })
            .collect()
    }

    fn known(result: Option<&Self>) -> LastSync<'_> {
        match result {
            Some(result) if result.status == "Synced" => LastSync::Applied,
            Some(result) if result.status == "SyncFailed" => LastSync::Refused(&result.message),
            Some(_) | None => LastSync::Unknown,
        }
    }
}

impl CaseObject {
    /// What Git says about an object: as an object, or as a hook.
    pub(super) fn in_git(desired: &DesiredSet, key: &ObjectKey) -> Option<(Manifest, Option<Origin>)> {
        if let Some(object) = desired.objects.get(key) {
            return Some((object.manifest.clone(), object.origin.clone()));
        }
        let hook = desired.hooks.iter().find(|hook| {
            let manifest = hook.manifest.clone().with_namespace(hook.namespace.as_deref());
            manifest.key().as_ref() == Some(key)
        })?;
        Some((hook.manifest.clone(), hook.origin.clone()))
    }
}

impl Case {
    /// Its sources, as readers of their files.
    pub(super) fn readers(&self) -> impl Iterator<Item = Reader> {
        self.sources.values().map(|source| Reader {
            app: Some(self.id.clone()),
            instance: self.instance.clone(),
            namespace: self.namespace.clone(),
            scopes: self.scopes.clone(),
            source: source.clone(),
        })
    }
}

/// What the user wants changed; an empty list means everything.
pub(super) struct Wanted<'args> {
    pub(super) classes: &'args [DriftClass],
    pub(super) kinds: &'args [String],
    pub(super) keep_live: &'args [ResourceFilter],
    pub(super) keepers: &'args Keepers,
}

impl Wanted<'_> {
    fn has(&self, finding: &Finding) -> bool {
        (self.classes.is_empty() || self.classes.contains(&finding.class))
            && (self.kinds.is_empty()
                || self.kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&finding.key.kind)))
    }

    fn keeps(&self, key: &ObjectKey) -> bool {
        let row = ObjectRow {
            group: key.group.clone(),
            kind: key.kind.clone(),
            namespace: key.namespace_or_empty().to_owned(),
            name: key.name.clone(),
            ..ObjectRow::default()
        };
        !self.keep_live.is_empty() && ResourceFilter::any_matches(self.keep_live, &row)
    }
}

/// One change that can be made or left out by itself.
#[derive(Clone)]
pub(super) struct Unit {
    /// The case that it belongs to, by its place in the list.
    pub(super) case: usize,
    pub(super) class: DriftClass,
    pub(super) key: ObjectKey,
    pub(super) change: UnitChange,
}

#[derive(Clone)]
pub(super) enum UnitChange {
    /// Of the object's own document, with what was compared with the cluster.
    Edit(ObjectChange, Value),
    /// Of what a tool renders the object from, with what was compared with the cluster; else the other change.
    Through(ObjectChange, Value, Box<Action>),
    /// The object's document goes.
    Drop(ObjectChange),
    /// A rule in the Application.
    Ignore(IgnoreEntry),
    /// An annotation of the Application.
    Compare(DryRunComparison),
}

impl UnitChange {
    /// Why, in a sentence.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Edit(change, _) | Self::Through(change, ..) | Self::Drop(change) => &change.why,
            Self::Ignore(entry) => &entry.why,
            Self::Compare(comparison) => &comparison.why,
        }
    }

    /// Does it change the Application, and no object of it?
    pub(super) fn is_of_application(&self) -> bool {
        matches!(self, Self::Ignore(_) | Self::Compare(_))
    }
}

/// A change of an Application.
#[derive(Clone, Copy)]
pub(super) enum OfApplication<'change> {
    Ignore(&'change IgnoreEntry),
    Compare(&'change DryRunComparison),
}

impl OfApplication<'_> {
    /// What changes in this Application; in words, why nothing can.
    pub(super) fn operations(self, application: &Value) -> Result<Vec<Operation>, String> {
        match self {
            Self::Ignore(entry) => Ok(entry.operations(application)),
            Self::Compare(comparison) => {
                comparison.operations(application).ok_or_else(|| "the app asks for no dry runs".to_owned())
            }
        }
    }

    pub(super) fn why(self) -> String {
        match self {
            Self::Ignore(entry) => entry.why.clone(),
            Self::Compare(comparison) => comparison.why.clone(),
        }
    }
}

/// What a user has to do instead.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Advice {
    pub(super) app: AppId,
    pub(super) class: DriftClass,
    pub(super) key: ObjectKey,
    pub(super) text: String,
}

/// What would end the differences.
#[derive(Default)]
pub(super) struct Proposed {
    pub(super) units: Vec<Unit>,
    pub(super) advice: Vec<Advice>,
    /// How many differences need no change.
    pub(super) n_nothing: usize,
}

/// A shared object, as the app that keeps it asks for it: the one that the user chose, or its owner.
fn kept<'cases>(
    cases: &'cases [Case],
    chosen: Option<Keeper<'_>>,
    finding: &Finding,
) -> Option<&'cases Manifest> {
    let keeper = match (finding.class, chosen) {
        (DriftClass::SharedResource, Some(Keeper::Other(app))) => app,
        (DriftClass::SharedResource, None) => finding.actor.as_deref().filter(|_| finding.counts)?,
        _ => return None,
    };
    let case = cases.iter().find(|case| case.instance == keeper)?;
    let is_it = |object: &&CaseObject| object.findings.iter().any(|other| other.key == finding.key);
    case.objects.iter().find(is_it)?.desired.as_ref().map(|(copy, _)| copy)
}

/// Proposes for all apps.
pub(super) fn proposals(cases: &[Case], wanted: &Wanted<'_>) -> Proposed {
    let mut proposed = Proposed::default();
    for (number, case) in cases.iter().enumerate() {
        for object in &case.objects {
            for finding in object.findings.iter().filter(|finding| wanted.has(finding)) {
                let (desired, origin) = match &object.desired {
                    Some((desired, origin)) => (Some(desired), origin.as_ref()),
                    None => (None, None),
                };
                let subject = Subject {
                    finding,
                    desired,
                    origin,
                    live: object.live.as_ref(),
                    is_red_in_argo_cd: object.is_red,
                    keeps_live: wanted.keeps(&finding.key),
                    keeper: match finding.class {
                        DriftClass::SharedResource => wanted.keepers.of(case, &finding.key),
                        _ => None,
                    },
                    kept: kept(cases, wanted.keepers.of(case, &finding.key), finding),
                    last_sync: SyncResult::known(object.last_sync.as_ref()),
                    is_asked_for: wanted.classes.contains(&finding.class),
                    is_alone: object
                        .findings
                        .iter()
                        .all(|other| other.class == finding.class || !is_shown_by_argo_cd(other, desired)),
                };
                for proposal in propose(&subject, case.goal) {
                    let (class, key) = (proposal.class, proposal.key);
                    let unit = |change| Unit { case: number, class, key: key.clone(), change };
                    match proposal.action {
                        Action::Edit(change) => {
                            let compared = desired.map(|desired| desired.value().clone()).unwrap_or_default();
                            proposed.units.push(unit(UnitChange::Edit(change, compared)));
                        }
                        Action::Through(change, otherwise) => {
                            let compared = desired.map(|desired| desired.value().clone()).unwrap_or_default();
                            proposed.units.push(unit(UnitChange::Through(change, compared, otherwise)));
                        }
                        Action::Drop(change) => proposed.units.push(unit(UnitChange::Drop(change))),
                        Action::Ignore(entry) => proposed.units.push(unit(UnitChange::Ignore(entry))),
                        Action::Compare(comparison) => {
                            proposed.units.push(unit(UnitChange::Compare(comparison)));
                        }
                        Action::Instruct(text) => {
                            proposed.advice.push(Advice { app: case.id.clone(), class, key, text });
                        }
                        Action::Nothing(_) => proposed.n_nothing += 1,
                    }
                }
            }
        }
    }
    proposed
}
