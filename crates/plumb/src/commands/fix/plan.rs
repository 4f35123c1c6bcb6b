//! From proposals to new contents of files, each change proved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use plumb_core::app::AppId;
use plumb_core::desired::{DesiredSet, Origin};
use plumb_core::drift::DriftClass;
use plumb_core::fix::{
    Action, ObjectChange, ProofFailure, Unstable, drop_document, edit_file, locate, prove, prove_dropped,
    same_places, still_there,
};
use plumb_core::source::RepoPath;
use plumb_core::yaml::{Limits, Operation, parse_documents_bytes};
use plumb_render::{Freshness, Rendered};
use serde_json::Value;

use super::application_files::ApplicationFiles;
use super::case::{Advice, Case, OfApplication, Unit, UnitChange};
use super::place::FilePlace;
use super::readers::Readers;
use crate::local::{LocalRenderer, LocalSource, desired_set};

/// Contents of files.
pub(super) type Contents = BTreeMap<FilePlace, Vec<u8>>;

/// The changes of one class: one commit.
pub(super) struct Step {
    pub(super) class: DriftClass,
    pub(super) units: Vec<Unit>,
    /// The files that it changes, as they are after it.
    pub(super) files: Contents,
}

/// What will be written.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// The files as they are on disk.
    pub(super) before: Contents,
    /// Changes that cannot be made, with the reason and the instruction.
    pub(super) refused: Vec<Advice>,
}

impl Plan {
    /// The files as they will be.
    pub(super) fn after(&self) -> Contents {
        self.steps.iter().flat_map(|step| step.files.clone()).collect()
    }

    /// The working copies that change.
    pub(super) fn roots(&self) -> BTreeSet<PathBuf> {
        self.steps.iter().flat_map(|step| step.files.keys()).map(|place| place.root.clone()).collect()
    }
}

/// What changes are planned with.
pub(super) struct Planning<'run> {
    pub(super) cases: &'run [Case],
    /// Everything that was proposed, also what the user does not choose: another app may intend the same change.
    pub(super) proposed: &'run [Unit],
    pub(super) renderer: &'run LocalRenderer,
    pub(super) applications: &'run ApplicationFiles,
    pub(super) readers: &'run Readers,
}

/// Makes the plan for these changes.
pub(super) fn plan(planning: &Planning<'_>, units: &[Unit]) -> Plan {
    let cases = planning.cases;
    let mut planner = Planner {
        planning,
        current: Contents::new(),
        untouched: BTreeMap::new(),
        unstable: BTreeMap::new(),
        plan: Plan::default(),
    };
    let classes: BTreeSet<DriftClass> = units.iter().map(|unit| unit.class).collect();
    for class in classes {
        let before = planner.current.clone();
        let mut made = Vec::new();
        for number in 0..cases.len() {
            let units: Vec<&Unit> =
                units.iter().filter(|unit| unit.class == class && unit.case == number).collect();
            made.extend(planner.make(&units));
        }
        let at_start = |place: &FilePlace| before.get(place).or_else(|| planner.plan.before.get(place));
        let changed = planner.current.iter().filter(|(place, content)| at_start(place) != Some(*content));
        let files: Contents = changed.map(|(place, content)| (place.clone(), content.clone())).collect();
        if !files.is_empty() {
            planner.plan.steps.push(Step { class, units: made, files });
        }
    }
    planner.plan
}

pub(super) struct Planner<'cases> {
    pub(super) planning: &'cases Planning<'cases>,
    /// Renders of the working copies as they are, by the app and the place of the source.
    untouched: BTreeMap<(AppId, usize), Arc<DesiredSet>>,
    /// What their renders make anew each time, where it was asked for.
    unstable: BTreeMap<(AppId, usize), Unstable>,
    /// The files that were read, as they are so far.
    pub(super) current: Contents,
    pub(super) plan: Plan,
}

impl<'cases> Planner<'cases> {
    /// Makes changes of one class and one app. Returns those that were made.
    fn make(&mut self, units: &[&Unit]) -> Vec<Unit> {
        let edits: Vec<&Unit> =
            units.iter().filter(|unit| matches!(unit.change, UnitChange::Edit(..))).copied().collect();
        // One render proves all; if it does not, each change is tried by itself.
        let mut made = match self.try_edits(&edits) {
            Ok(made) => made,
            Err(_) => edits
                .iter()
                .flat_map(|unit| match self.try_edits(&[*unit]) {
                    Ok(made) => made,
                    Err(why) => self.elsewhere(unit, &why).into_iter().collect(),
                })
                .collect(),
        };
        for unit in units {
            let outcome = match &unit.change {
                UnitChange::Edit(..) => continue,
                UnitChange::Ignore(entry) => {
                    self.kept_for_all(unit, |planner| planner.application(unit, OfApplication::Ignore(entry)))
                }
                UnitChange::Compare(comparison) => self.kept_for_all(unit, |planner| {
                    planner.application(unit, OfApplication::Compare(comparison))
                }),
                UnitChange::Drop(change) => self.kept_for_all(unit, |planner| planner.drop(unit, change)),
                UnitChange::Through(change, compared, otherwise) => {
                    let through = self.kept_for_all(unit, |planner| planner.through(unit, change, compared));
                    match (through, &**otherwise) {
                        (Ok(is_other), _) => Ok(is_other),
                        (Err(_), Action::Ignore(entry)) => {
                            let rule = OfApplication::Ignore(entry);
                            self.kept_for_all(unit, |planner| planner.application(unit, rule))
                        }
                        (Err(why), _) => Err(why),
                    }
                }
            };
            match outcome {
                Ok(true) => made.push((*unit).clone()),
                Ok(false) => {}
                Err(why) => self.refuse(unit, &why),
            }
        }
        made
    }

    /// Nothing is kept of a change that fails.
    pub(super) fn kept_if_proved(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<bool, String>,
    ) -> Result<bool, String> {
        let kept = self.current.clone();
        let made = change(self);
        if made.is_err() {
            self.current = kept;
        }
        made
    }

    /// The same, and what others render from the changed files stays as it is, or as their own changes intend.
    fn kept_for_all(
        &mut self,
        unit: &Unit,
        change: impl FnOnce(&mut Self) -> Result<bool, String>,
    ) -> Result<bool, String> {
        self.kept_if_proved(|planner| {
            let before = planner.current.clone();
            let is_other = change(planner)?;
            planner.others_stay(&[unit], &before)?;
            Ok(is_other)
        })
    }

    /// Removes the document of an object that another app keeps.
    fn drop(&mut self, unit: &Unit, change: &ObjectChange) -> Result<bool, String> {
        let (case, source) = self.case_of(unit, change)?;
        let before = self.render(case, source)?;
        let place = own_file(source, &change.origin.file)?;
        let content = self.content(&place)?;
        let text = drop_document(&content, change).map_err(|why| why.to_string())?;
        self.current.insert(place, text);
        let after = self.render(case, source)?;
        self.proof((case, source), |unstable| prove_dropped(&before, &after, &change.key, unstable))?;
        Ok(true)
    }

    /// The app of a change, and its source in a working copy.
    pub(super) fn case_of(
        &self,
        unit: &Unit,
        change: &ObjectChange,
    ) -> Result<(&'cases Case, &'cases LocalSource), String> {
        let missing = || "the file is not in one of the given working copies".to_owned();
        let case = self.planning.cases.get(unit.case).ok_or_else(missing)?;
        Ok((case, case.sources.get(&change.origin.source).ok_or_else(missing)?))
    }

    /// Edits files, renders, and compares. Nothing is kept if that fails.
    fn try_edits(&mut self, units: &[&Unit]) -> Result<Vec<Unit>, String> {
        let (kept, n_refused) = (self.current.clone(), self.plan.refused.len());
        let made = self.edit_and_prove(units).and_then(|made| {
            let all: Vec<&Unit> = made.iter().collect();
            self.others_stay(&all, &kept)?;
            Ok(made)
        });
        if made.is_err() {
            self.current = kept;
            self.plan.refused.truncate(n_refused);
        }
        made
    }

    fn edit_and_prove(&mut self, units: &[&Unit]) -> Result<Vec<Unit>, String> {
        let mut by_source: BTreeMap<usize, Vec<(&Unit, &ObjectChange)>> = BTreeMap::new();
        for unit in units {
            if let UnitChange::Edit(change, _) = &unit.change {
                by_source.entry(change.origin.source).or_default().push((unit, change));
            }
        }
        let mut made = Vec::new();
        for (index, units) in by_source {
            let case = units.first().and_then(|(unit, _)| self.planning.cases.get(unit.case));
            let Some(case) = case else { continue };
            let Some(source) = case.sources.get(&index) else {
                for (unit, _) in units {
                    self.refuse(unit, "the file is not in one of the given working copies");
                }
                continue;
            };
            let before = self.render(case, source)?;
            let mut changed: Vec<(&Unit, &ObjectChange)> = Vec::new();
            let mut left: Vec<(&Unit, String)> = Vec::new();
            for (unit, change) in units {
                match self.edit((case, source), unit, change, &before) {
                    Ok(true) => changed.push((unit, change)),
                    Ok(false) => {}
                    Err(why) => left.push((unit, why)),
                }
            }
            if !changed.is_empty() {
                let after = self.render(case, source)?;
                let of_file: Vec<&ObjectChange> = changed.iter().map(|(_, change)| *change).collect();
                self.proof((case, source), |unstable| prove(&before, &after, &of_file, unstable))?;
                made.extend(changed.into_iter().map(|(unit, _)| unit.clone()));
            }
            for (unit, why) in left {
                made.extend(self.elsewhere(unit, &why));
            }
        }
        Ok(made)
    }

    /// A document that cannot be changed where it is, such as one of a base that other apps use, may be changed by a
    /// patch in the app's overlay.
    fn elsewhere(&mut self, unit: &Unit, why: &str) -> Option<Unit> {
        let UnitChange::Edit(change, compared) = &unit.change else { return None };
        if self.kept_for_all(unit, |planner| planner.through(unit, change, compared)).is_ok() {
            return Some(unit.clone());
        }
        self.refuse(unit, why);
        None
    }

    /// Changes one document. Returns whether the file is another one now.
    fn edit(
        &mut self,
        (case, source): (&Case, &LocalSource),
        unit: &Unit,
        change: &ObjectChange,
        rendered: &DesiredSet,
    ) -> Result<bool, String> {
        if let (UnitChange::Edit(_, compared), Some(object)) = (&unit.change, rendered.objects.get(&unit.key))
        {
            let is_made = self.is_made((case, source), object.manifest.value(), change)?;
            if is_made || self.is_there((case, source), change)? {
                return Ok(false);
            }
            self.in_place((case, source), compared, object.manifest.value(), change)?;
        }
        let place = self.document_place((case, source), change)?;
        self.write(&place, change)
    }

    /// The file of an object's document, if it is the app's own.
    pub(super) fn document_place(
        &self,
        (case, source): (&Case, &LocalSource),
        change: &ObjectChange,
    ) -> Result<FilePlace, String> {
        own_file(source, &change.origin.file).or_else(|why| {
            // A base that nothing else uses is the app's own, wherever it is.
            self.planning.readers.only_of(&case.id, source, &change.origin.file).ok_or(why)
        })
    }

    /// The working copy says what was compared with the cluster, and no other change of this run changed the place.
    pub(super) fn in_place(
        &mut self,
        (case, source): (&Case, &LocalSource),
        compared: &Value,
        now: &Value,
        change: &ObjectChange,
    ) -> Result<(), String> {
        let untouched = self.untouched(case, source)?;
        let object = untouched.objects.get(&change.key);
        let object = object.ok_or_else(|| format!("the render does not have {}", change.key))?;
        same_places(compared, object.manifest.value(), change).map_err(|why| why.to_string())?;
        still_there(object.manifest.value(), now, change).map_err(|why| why.to_string())
    }

    /// Does the working copy say what it shall, before any change? Then an earlier run made the change, and the cluster does
    /// not follow it yet.
    pub(super) fn is_there(
        &mut self,
        (case, source): (&Case, &LocalSource),
        change: &ObjectChange,
    ) -> Result<bool, String> {
        let untouched = self.untouched(case, source)?;
        let Some(object) = untouched.objects.get(&change.key) else { return Ok(false) };
        let changes_nothing = |operation: &Operation| {
            operation.apply(object.manifest.value()).is_ok_and(|after| after == *object.manifest.value())
        };
        Ok(!change.operations.is_empty() && change.operations.iter().all(changes_nothing))
    }

    /// Was the change made already, for another app that reads the same file?
    fn is_made(
        &mut self,
        (case, source): (&Case, &LocalSource),
        now: &Value,
        change: &ObjectChange,
    ) -> Result<bool, String> {
        let untouched = self.untouched(case, source)?;
        let Some(object) = untouched.objects.get(&change.key) else { return Ok(false) };
        let mut made = object.manifest.value().clone();
        for operation in &change.operations {
            match operation.apply(&made) {
                Ok(next) => made = next,
                Err(_) => return Ok(false),
            }
        }
        Ok(made == *now && made != *object.manifest.value())
    }

    fn untouched(&mut self, case: &Case, source: &LocalSource) -> Result<Arc<DesiredSet>, String> {
        let key = (case.id.clone(), source.index);
        if let Some(known) = self.untouched.get(&key) {
            return Ok(Arc::clone(known));
        }
        let rendered = Arc::new(self.render_with(case, source, BTreeMap::new())?);
        self.untouched.insert(key, Arc::clone(&rendered));
        Ok(rendered)
    }

    pub(super) fn write(&mut self, place: &FilePlace, change: &ObjectChange) -> Result<bool, String> {
        let content = self.content(place)?;
        let mut edit = edit_file(&content, std::slice::from_ref(change));
        if let Some((_, why)) = edit.refused.pop() {
            return Err(why.to_string());
        }
        let is_other = edit.text != content;
        self.current.insert(place.clone(), edit.text);
        Ok(is_other)
    }

    /// Changes the document of the Application, or of the set that makes it.
    fn application(&mut self, unit: &Unit, change: OfApplication<'_>) -> Result<bool, String> {
        let Some(case) = self.planning.cases.get(unit.case) else { return Ok(false) };
        let file = self.planning.applications.of(&case.id, &case.written)?;
        let content = self.content(&file.place)?;
        let documents =
            parse_documents_bytes(&content, &Limits::default()).map_err(|error| error.to_string())?;
        let found = locate(&documents, &file.key, file.line);
        let object = found.as_ref().and_then(|found| found.path.find(&documents.get(found.document)?.value));
        let application = object.and_then(|object| file.inside.find(object));
        let application = application
            .ok_or_else(|| format!("{} does not have the {} any more", file.place.path, file.key.kind))?;
        let operations = change.operations(application)?;
        let is_shared = matches!(change, OfApplication::Compare(_));
        let change = ObjectChange {
            key: file.key,
            origin: Origin {
                source: 0,
                file: file.place.path.as_str().to_owned(),
                line: file.line,
                verbatim: true,
            },
            operations: operations.iter().map(|operation| operation.inside(&file.inside)).collect(),
            why: change.why(),
        };
        let is_other = self.write(&file.place, &change)?;
        // Objects share an annotation: it is made for each of them.
        Ok(is_other || is_shared && self.plan.before.get(&file.place) != self.current.get(&file.place))
    }

    pub(super) fn content(&mut self, place: &FilePlace) -> Result<Vec<u8>, String> {
        if let Some(content) = self.current.get(place) {
            return Ok(content.clone());
        }
        let content = std::fs::read(place.absolute())
            .map_err(|error| format!("cannot read {}: {error}", place.path))?;
        self.plan.before.insert(place.clone(), content.clone());
        Ok(content)
    }

    pub(super) fn render(&self, case: &Case, source: &LocalSource) -> Result<DesiredSet, String> {
        self.render_with(case, source, edits_of(&self.current, source))
    }

    fn render_with(
        &self,
        case: &Case,
        source: &LocalSource,
        edits: BTreeMap<RepoPath, Vec<u8>>,
    ) -> Result<DesiredSet, String> {
        let rendered = self
            .planning
            .renderer
            .render(source, edits, Freshness::Cached)
            .map_err(|error| error.message())?;
        Ok(desired_set(&rendered, &case.instance, case.namespace.as_deref(), &case.scopes))
    }

    /// Proves a change. Where that fails, the files are rendered once more as they are: a chart may make values anew each
    /// time, and these are left out then.
    pub(super) fn proof(
        &mut self,
        (case, source): (&Case, &LocalSource),
        prove: impl Fn(&Unstable) -> Result<(), ProofFailure>,
    ) -> Result<(), String> {
        let Err(why) = prove(&Unstable::default()) else { return Ok(()) };
        let key = (case.id.clone(), source.index);
        let unstable = self.unstable.entry(key).or_insert_with(|| {
            unstable(self.planning.renderer, source, |rendered| {
                desired_set(rendered, &case.instance, case.namespace.as_deref(), &case.scopes)
            })
        });
        if unstable.is_empty() {
            return Err(why.to_string());
        }
        prove(unstable).map_err(|why| why.to_string())
    }

    fn refuse(&mut self, unit: &Unit, why: &str) {
        let Some(case) = self.planning.cases.get(unit.case) else { return };
        let instruction = match &unit.change {
            UnitChange::Edit(change, _) | UnitChange::Through(change, ..) => change.instruction(),
            UnitChange::Drop(change) => {
                let file = &change.origin.file;
                format!("remove the document of {} from {file}: {}", change.key, change.why)
            }
            UnitChange::Ignore(entry) => match &case.written.set {
                Some(set) => format!(
                    "add to spec.template.spec.ignoreDifferences of the ApplicationSet {set}: {}",
                    entry.value()
                ),
                None => {
                    format!("add to spec.ignoreDifferences of the Application {}: {}", case.id, entry.value())
                }
            },
            UnitChange::Compare(comparison) => comparison.instruction.clone(),
        };
        self.plan.refused.push(Advice {
            app: case.id.clone(),
            class: unit.class,
            key: unit.key.clone(),
            text: format!("{instruction} (not done: {why})"),
        });
    }
}

/// What each render of a source makes anew. An earlier render may come from the cache: then it is of an earlier time.
pub(super) fn unstable(
    renderer: &LocalRenderer,
    source: &LocalSource,
    build: impl Fn(&Rendered) -> DesiredSet,
) -> Unstable {
    let render = |freshness| renderer.render(source, BTreeMap::new(), freshness).ok();
    let renders = render(Freshness::Cached).zip(render(Freshness::Fresh));
    renders.map(|(one, other)| Unstable::between(&build(&one), &build(&other))).unwrap_or_default()
}

/// The changed files of the working copy of a source.
pub(super) fn edits_of(contents: &Contents, source: &LocalSource) -> BTreeMap<RepoPath, Vec<u8>> {
    let root = source.root.canonicalize().unwrap_or_else(|_| source.root.clone());
    let edits = contents.iter().filter(|(place, _)| place.root == root);
    edits.map(|(place, content)| (place.path.clone(), content.clone())).collect()
}

/// A file of the app's own directory.
pub(super) fn own_file(source: &LocalSource, file: &str) -> Result<FilePlace, String> {
    let place = FilePlace::find(&source.root, file)?;
    let folder = source.source.path.as_deref().unwrap_or(".");
    let folder = RepoPath::root().join(folder).map_err(|error| error.to_string())?;
    if !place.path.is_within(&folder) {
        return Err(format!("{} is outside of the app's directory, and other apps may use it", place.path));
    }
    Ok(place)
}
