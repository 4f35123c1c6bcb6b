//! What others render from the files that change.

use plumb_core::desired::{DesiredSet, Origin};
use plumb_core::fix::{Action, ObjectChange, Unstable, prove_intended};
use plumb_render::Freshness;

use super::case::{OfApplication, Unit, UnitChange};
use super::place::FilePlace;
use super::plan::{Contents, Planner, edits_of, unstable};
use super::readers::Reader;
use crate::local::desired_set;

impl Planner<'_> {
    /// Renders everything else that reads a changed file, before and after. Fails if it becomes something that its own
    /// app does not intend. `before` are the files before these changes of one app.
    pub(super) fn others_stay(&self, units: &[&Unit], before: &Contents) -> Result<(), String> {
        let Some(first) = units.first() else { return Ok(()) };
        let Some(case) = self.planning.cases.get(first.case) else { return Ok(()) };
        let old = |place: &FilePlace| before.get(place).or_else(|| self.plan.before.get(place));
        let changed: Vec<&FilePlace> = self
            .current
            .iter()
            .filter(|(place, content)| old(place) != Some(*content))
            .map(|(place, _)| place)
            .collect();
        for place in changed {
            // An app reads its own files; which source of several does not matter here.
            let own = case.sources.values().find(|source| source.root == place.root);
            let others = match own {
                Some(source) => self.planning.readers.others(place, &case.id, source),
                None => self.planning.readers.of(place),
            };
            for reader in others {
                self.stays(&reader, first, before).map_err(|why| {
                    format!("{} is rendered from {}, too: {why}", reader.name(), place.path)
                })?;
            }
        }
        Ok(())
    }

    fn stays(&self, reader: &Reader, unit: &Unit, before: &Contents) -> Result<(), String> {
        let old = match self.rendered(reader, before) {
            Ok(old) => old,
            // What cannot be rendered now does not get worse. Of an unknown kustomization, nothing is known.
            Err(_) if reader.app.is_some() => return Ok(()),
            Err(why) => return Err(why),
        };
        let new = self.rendered(reader, &self.current)?;
        let intended: Vec<&ObjectChange> = self
            .planning
            .proposed
            .iter()
            .filter(|other| other.class == unit.class && self.is_of(other, reader))
            .filter_map(|other| match &other.change {
                UnitChange::Edit(change, _) | UnitChange::Through(change, ..) => Some(change),
                UnitChange::Drop(_) | UnitChange::Ignore(_) | UnitChange::Compare(_) => None,
            })
            .collect();
        let rule = self.change_in(&old, unit);
        let intended: Vec<&ObjectChange> = intended.into_iter().chain(&rule).collect();
        let Err(why) = prove_intended(&old, &new, &intended, &Unstable::default()) else { return Ok(()) };
        let unstable = unstable(self.planning.renderer, &reader.source, |rendered| {
            desired_set(rendered, &reader.instance, reader.namespace.as_deref(), &reader.scopes)
        });
        if unstable.is_empty() {
            return Err(why.to_string());
        }
        prove_intended(&old, &new, &intended, &unstable).map_err(|why| why.to_string())
    }

    /// The Application of the changed app, or the set that makes it, if it is one of these objects, with the rule or the
    /// annotation that it gets.
    fn change_in(&self, rendered: &DesiredSet, unit: &Unit) -> Option<ObjectChange> {
        let case = self.planning.cases.get(unit.case)?;
        let file = self.planning.applications.of(&case.id, &case.written).ok()?;
        let (key, object) = rendered
            .objects
            .iter()
            .find(|(key, _)| key.group_kind() == file.key.group_kind() && key.name == file.key.name)?;
        let operations = of_application(unit)?.operations(file.inside.find(object.manifest.value())?).ok()?;
        Some(ObjectChange {
            key: key.clone(),
            origin: Origin { source: 0, file: String::new(), line: 1, verbatim: true },
            operations: operations.iter().map(|operation| operation.inside(&file.inside)).collect(),
            why: String::new(),
        })
    }

    fn is_of(&self, unit: &Unit, reader: &Reader) -> bool {
        let case = self.planning.cases.get(unit.case);
        case.is_some_and(|case| reader.app.as_ref() == Some(&case.id))
    }

    fn rendered(&self, reader: &Reader, contents: &Contents) -> Result<DesiredSet, String> {
        let edits = edits_of(contents, &reader.source);
        let rendered = self.planning.renderer.render(&reader.source, edits, Freshness::Cached);
        let rendered = rendered.map_err(|error| error.message())?;
        Ok(desired_set(&rendered, &reader.instance, reader.namespace.as_deref(), &reader.scopes))
    }
}

fn of_application(unit: &Unit) -> Option<OfApplication<'_>> {
    match &unit.change {
        UnitChange::Ignore(entry) => Some(OfApplication::Ignore(entry)),
        UnitChange::Compare(comparison) => Some(OfApplication::Compare(comparison)),
        UnitChange::Through(_, _, otherwise) => match &**otherwise {
            Action::Ignore(entry) => Some(OfApplication::Ignore(entry)),
            _ => None,
        },
        UnitChange::Edit(..) | UnitChange::Drop(_) => None,
    }
}
