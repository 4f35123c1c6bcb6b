//! Which app keeps an object that several apps render.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::drift::{DriftClass, Finding};
use plumb_core::fix::Keeper;
use plumb_core::object::ObjectKey;

use super::case::Case;
use crate::context::Context;
use crate::error::CommandError;
use crate::prompt::choice;

/// The choices of the user: the app that keeps each object, by its name in tracking marks.
#[derive(Default)]
pub(super) struct Keepers(BTreeMap<ObjectKey, String>);

/// An object that several apps render.
struct Shared<'cases> {
    key: &'cases ObjectKey,
    /// The app that tracks it, if one of the cases does.
    owner: Option<&'cases str>,
    /// The apps that render it and have a working copy, the owner included.
    apps: BTreeSet<&'cases str>,
}

impl Keepers {
    /// What `--keep-in` says. An app that shares nothing is refused: it is misspelled, or its Git is not here.
    pub(super) fn given(cases: &[Case], names: &[String]) -> Result<Self, CommandError> {
        let shared = shared(cases);
        let mut chosen = BTreeMap::new();
        for name in names {
            let is_it = |case: &Case| *name == case.id.name || *name == case.id.to_string();
            let instance = cases.iter().find(|case| is_it(case)).map(|case| case.instance.as_str());
            let mut of_app =
                shared.iter().filter(|one| instance.is_some_and(|app| one.apps.contains(app))).peekable();
            if of_app.peek().is_none() {
                return Err(CommandError::usage(format!(
                    "--keep-in: {name} shares no object with another app"
                ))
                .hint("`plumb doctor --class SharedResource` shows the objects and their apps"));
            }
            for one in of_app {
                if let Some(other) = chosen.insert(one.key.clone(), instance.unwrap_or(name).to_owned()) {
                    let message = format!("--keep-in: {} cannot stay in both {other} and {name}", one.key);
                    return Err(CommandError::usage(message));
                }
            }
        }
        Ok(Self(chosen))
    }

    /// Asks for each object that has no choice yet.
    pub(super) fn ask(&mut self, context: &Context, cases: &[Case]) -> Result<(), CommandError> {
        for one in shared(cases).iter().filter(|one| one.apps.len() > 1) {
            if self.0.contains_key(one.key) {
                continue;
            }
            let apps: Vec<&str> = one.apps.iter().copied().collect();
            let owner = one.owner.map(|owner| format!(" {owner} owns it.")).unwrap_or_default();
            let question =
                format!("{} is in the Git of {}.{owner} Which app keeps it?", one.key, apps.join(" and "));
            let Some(keeper) = choice(&question, &apps)? else { continue };
            self.0.insert(one.key.clone(), keeper.to_owned());
        }
        self.note_order(context, cases);
        Ok(())
    }

    /// An engine that prunes by marks deletes what its app no longer has, unless another app has taken it over before.
    pub(super) fn note_order(&self, context: &Context, cases: &[Case]) {
        for one in shared(cases) {
            if let (Some(keeper), Some(owner)) = (self.0.get(one.key), one.owner)
                && keeper != owner
            {
                context.out.note(&format!(
                    "note: {} moves from {owner} to {keeper}: sync {keeper} before {owner}, \
                     because Argo CD prunes what {owner} still tracks",
                    one.key
                ));
            }
        }
    }

    /// Who keeps an object, as the app sees it.
    pub(super) fn of(&self, case: &Case, key: &ObjectKey) -> Option<Keeper<'_>> {
        let keeper = self.0.get(key)?;
        Some(if *keeper == case.instance { Keeper::ThisApp } else { Keeper::Other(keeper) })
    }
}

fn shared(cases: &[Case]) -> Vec<Shared<'_>> {
    let mut found: BTreeMap<&ObjectKey, Shared<'_>> = BTreeMap::new();
    for case in cases {
        let findings = case.objects.iter().flat_map(|object| &object.findings);
        for finding in findings.filter(|finding| finding.class == DriftClass::SharedResource) {
            let Finding { key, counts, .. } = finding;
            let one = found.entry(key).or_insert(Shared { key, owner: None, apps: BTreeSet::new() });
            one.apps.insert(case.instance.as_str());
            if !counts {
                one.owner = Some(case.instance.as_str());
            }
        }
    }
    found.into_values().collect()
}
