//! Changes of what Kustomize and Helm render an object from.

use plumb_core::app::SourceTool;
use plumb_core::desired::DesiredSet;
use plumb_core::fix::{
    ObjectChange, literal_lines, names_for_patches, overlay_patch, prove, value_candidates,
};
use plumb_core::yaml::{Limits, Operation, edit_document, parse_documents_bytes};
use serde_json::Value;

use super::case::{Case, Unit};
use super::place::{FilePlace, KUSTOMIZATIONS};
use super::plan::{Planner, own_file};
use crate::local::LocalSource;

/// Each candidate costs up to two renders.
const MAX_CANDIDATES: usize = 12;

/// An app and its source.
type Place<'cases> = (&'cases Case, &'cases LocalSource);

impl<'cases> Planner<'cases> {
    /// Changes an overlay, the values or a template, whichever gives exactly this change when it is rendered.
    pub(super) fn through(
        &mut self,
        unit: &Unit,
        change: &ObjectChange,
        compared: &Value,
    ) -> Result<bool, String> {
        let at = self.case_of(unit, change)?;
        if self.is_there(at, change)? {
            return Ok(false);
        }
        let before = self.render(at.0, at.1)?;
        let rendered = before.objects.get(&change.key);
        let rendered = rendered.ok_or_else(|| format!("the render does not have {}", change.key))?;
        self.in_place(at, compared, rendered.manifest.value(), change)?;
        let folder = at.1.source.path.as_deref().unwrap_or(".").to_owned();
        let has = |name: &str| at.1.root.join(&folder).join(name).is_file();
        if let Some(name) = KUSTOMIZATIONS.into_iter().find(|name| has(name)) {
            let in_document = |planner: &mut Self| planner.in_document(at, change, &before);
            if self.kept_if_proved(in_document).is_ok() {
                return Ok(true);
            }
            let file = format!("{folder}/{name}");
            let kustomization = self.first_document(&own_file(at.1, &file)?)?;
            let mut outcome = Err("the overlay does not render the object".to_owned());
            for name in names_for_patches(&kustomization, &rendered.manifest) {
                let entry = overlay_patch(change, &rendered.manifest, &name);
                let entry = entry.ok_or("a JSON patch cannot express the change")?;
                outcome =
                    self.kept_if_proved(|planner| planner.in_overlay(at, &file, entry, (&before, change)));
                if outcome.is_ok() {
                    break;
                }
            }
            return outcome;
        }
        if has("Chart.yaml") {
            for operation in &change.operations {
                let step = ObjectChange { operations: vec![operation.clone()], ..change.clone() };
                self.in_chart(at, &folder, &step)?;
            }
            return Ok(true);
        }
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| change.origin.file.ends_with(end));
        Err(if is_manifest {
            "it is not a document of its own".to_owned()
        } else {
            "its tool computes it: change the program that renders it".to_owned()
        })
    }

    /// The document that an overlay adds to, where the change passes through the overlay as it is.
    fn in_document(
        &mut self,
        at: Place<'cases>,
        change: &ObjectChange,
        before: &DesiredSet,
    ) -> Result<bool, String> {
        let place = self.document_place(at, change)?;
        self.write(&place, change)?;
        let after = self.render(at.0, at.1)?;
        self.proof(at, |unstable| prove(before, &after, &[change], unstable))?;
        Ok(true)
    }

    fn in_overlay(
        &mut self,
        (case, source): Place<'cases>,
        file: &str,
        entry: Operation,
        (before, change): (&DesiredSet, &ObjectChange),
    ) -> Result<bool, String> {
        let place = own_file(source, file)?;
        self.edit_first_document(&place, entry)?;
        let after = self.render(case, source)?;
        self.proof((case, source), |unstable| prove(before, &after, &[change], unstable))?;
        Ok(true)
    }

    /// One operation: in the values, or in a line of the template that says it, or beside one.
    fn in_chart(&mut self, at: Place<'cases>, folder: &str, step: &ObjectChange) -> Result<(), String> {
        let before = self.render(at.0, at.1)?;
        let rendered = before.objects.get(&step.key).map(|object| object.manifest.value().clone());
        let rendered = rendered.ok_or_else(|| format!("the render does not have {}", step.key))?;
        let operation = step.operations.first().ok_or("nothing changes")?;
        for place in values_files(at.1, folder) {
            let content = self.content(&place)?;
            let documents = parse_documents_bytes(&content, &Limits::default());
            let Ok([document]) = documents.as_deref() else { continue };
            let candidates = value_candidates(&document.value, &rendered, operation);
            for candidate in candidates.into_iter().take(MAX_CANDIDATES) {
                let mapped = match &candidate.marker {
                    None => Ok(true),
                    Some((marker, value)) => self.maps(at, &place, marker, value, (&before, step)),
                };
                let is_made = mapped.is_ok_and(|maps| maps)
                    && self
                        .kept_if_proved(|planner| {
                            planner.edit_first_document(&place, candidate.operation.clone())?;
                            planner.proved(at, (&before, step))
                        })
                        .is_ok();
                if is_made {
                    return Ok(());
                }
            }
        }
        let place = own_file(at.1, &step.origin.file)?;
        let content = self.content(&place)?;
        let text = std::str::from_utf8(&content).map_err(|error| error.to_string())?;
        let mut outcome = Err("no value and no line of the template is certainly this field".to_owned());
        for changed in literal_lines(text, &rendered, operation).into_iter().take(MAX_CANDIDATES) {
            outcome = self.kept_if_proved(|planner| {
                planner.current.insert(place.clone(), changed.into_bytes());
                planner.proved(at, (&before, step))
            });
            if outcome.is_ok() {
                break;
            }
        }
        outcome.map(drop)
    }

    fn proved(
        &mut self,
        (case, source): Place<'cases>,
        (before, step): (&DesiredSet, &ObjectChange),
    ) -> Result<bool, String> {
        let after = self.render(case, source)?;
        self.proof((case, source), |unstable| prove(before, &after, &[step], unstable))?;
        Ok(true)
    }

    /// Does the field, and nothing else, become the marker? Nothing is kept.
    fn maps(
        &mut self,
        at: Place<'cases>,
        place: &FilePlace,
        marker: &Operation,
        value: &Value,
        (before, step): (&DesiredSet, &ObjectChange),
    ) -> Result<bool, String> {
        let path = step.operations.first().map(|operation| operation.path().clone()).ok_or("nothing")?;
        let kept = self.current.clone();
        let edited = self.edit_first_document(place, marker.clone());
        let after = edited.and_then(|()| self.render(at.0, at.1));
        self.current = kept;
        let after = after?;
        let became = after.objects.get(&step.key).and_then(|object| path.find(object.manifest.value()));
        // A template may print a number as a text.
        let printed = value.to_string();
        let is_it = |became: &Value| became == value || became.as_str() == Some(printed.as_str());
        let Some(became) = became.filter(|became| is_it(became)) else { return Ok(false) };
        let set = Operation::Set { path: path.clone(), value: became.clone() };
        let expected = ObjectChange { operations: vec![set], ..step.clone() };
        Ok(self.proof(at, |unstable| prove(before, &after, &[&expected], unstable)).is_ok())
    }

    fn first_document(&mut self, place: &FilePlace) -> Result<Value, String> {
        let content = self.content(place)?;
        let documents =
            parse_documents_bytes(&content, &Limits::default()).map_err(|error| error.to_string())?;
        documents
            .into_iter()
            .next()
            .map(|document| document.value)
            .ok_or_else(|| format!("{} is empty", place.path))
    }

    fn edit_first_document(&mut self, place: &FilePlace, operation: Operation) -> Result<(), String> {
        let content = self.content(place)?;
        let edited = edit_document(&content, 0, &[operation]).map_err(|why| why.to_string())?;
        self.current.insert(place.clone(), edited.text.into_bytes());
        Ok(())
    }
}

/// The values files of a chart, in this working copy; the last one wins in Helm, so it comes first here. One outside of the
/// app's directory counts only if the app names it. What else is rendered from it is proved to stay.
fn values_files(source: &LocalSource, folder: &str) -> Vec<FilePlace> {
    let named = match &source.source.tool {
        Some(SourceTool::Helm(options)) => options.value_files.as_slice(),
        _ => &[],
    };
    let own = own_file(source, &format!("{folder}/values.yaml")).ok();
    let named = named.iter().filter_map(|file| {
        let of_reference = file.strip_prefix('$').and_then(|rest| rest.split_once('/'));
        let path = match of_reference {
            // Files of another working copy are not rendered with their changes.
            Some((name, path)) => source.refs.get(name).filter(|root| **root == source.root).map(|_| path)?,
            // An absolute path begins at the root of the repository.
            None => match file.strip_prefix('/') {
                Some(path) => path,
                None => return own_file(source, &format!("{folder}/{file}")).ok(),
            },
        };
        FilePlace::find(&source.root, path).ok()
    });
    let mut files: Vec<FilePlace> = own.into_iter().chain(named).collect();
    files.reverse();
    files
}
