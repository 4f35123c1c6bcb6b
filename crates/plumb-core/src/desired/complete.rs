//! The proof that a desired set is complete.

use std::fmt;

use super::{DesiredProblem, DesiredSet, Origin};

/// A set that holds every object that Git asks for: every source rendered, and no object was lost on the way. Only a
/// complete set may lead to deletions, so the functions that plan them take this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Complete<T>(T);

impl<T> Complete<T> {
    /// The set.
    pub fn get(&self) -> &T {
        &self.0
    }
}

/// The set lacks objects that Git asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Incomplete {
    /// The set as it is; it proves nothing about objects that are not in it.
    pub set: DesiredSet,
}

impl DesiredSet {
    /// The proof that no object was lost while building the set. Call it only if every source rendered.
    pub fn complete(self) -> Result<Complete<Self>, Incomplete> {
        if self.is_whole() { Ok(Complete(self)) } else { Err(Incomplete { set: self }) }
    }
}

impl Incomplete {
    /// The problems that lost an object, at least one.
    pub fn problems(&self) -> impl Iterator<Item = &DesiredProblem> {
        self.set.problems.iter().filter(|problem| problem.loses_an_object())
    }

    /// A message for each of them.
    pub fn messages(&self) -> Vec<String> {
        self.problems().map(|problem| Lost(problem).to_string()).collect()
    }

    /// Is a missing namespace the only problem? Then the spec is at fault and not the manifests.
    pub fn lacks_only_namespaces(&self) -> bool {
        self.problems().all(|problem| matches!(problem, DesiredProblem::NamespaceMissing { .. }))
    }
}

impl std::error::Error for Incomplete {}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join("; "))
    }
}

/// A problem that lost an object.
struct Lost<'a>(&'a DesiredProblem);

impl fmt::Display for Lost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |origin: &Option<Origin>| {
            origin.as_ref().map(|origin| format!(" at {}:{}", origin.file, origin.line)).unwrap_or_default()
        };
        match self.0 {
            DesiredProblem::NameMissing { kind, origin } => {
                write!(f, "a {kind}{} has no name", place(origin))
            }
            DesiredProblem::NotAnObject { reason, origin } => {
                write!(f, "a document{} is not an object: {reason}", place(origin))
            }
            // Argo CD's wording.
            DesiredProblem::NamespaceMissing { key } => write!(f, "Namespace for {key} is missing."),
            // These lose no object.
            DesiredProblem::Repeated { .. }
            | DesiredProblem::Excluded { .. }
            | DesiredProblem::PassedOver { .. }
            | DesiredProblem::NotText { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{FieldPath, NotAnObject, ObjectKey};

    #[test]
    fn only_a_set_that_lost_nothing_is_complete() {
        let key = ObjectKey::new("", "ConfigMap", None, "conf");
        let origin = Some(Origin { source: 0, file: "a.yaml".to_owned(), line: 3, verbatim: true });
        let nameless = DesiredProblem::NameMissing { kind: "Secret".to_owned(), origin: origin.clone() };
        let text =
            DesiredProblem::NotAnObject { reason: NotAnObject::NotAMap { found: "a string" }, origin: None };
        let homeless = DesiredProblem::NamespaceMissing { key: key.clone() };
        let repeated = DesiredProblem::Repeated { key: key.clone(), count: 2, origins: Vec::new() };
        let excluded = DesiredProblem::Excluded { key: key.clone() };
        let not_text =
            DesiredProblem::NotText { key: Some(key), field: FieldPath::from_pointer("/a"), origin };
        let check = |problems: &[&DesiredProblem], expected: Option<(&str, bool)>| {
            let problems = problems.iter().map(|problem| (*problem).clone()).collect();
            let set = DesiredSet { problems, ..DesiredSet::default() };
            let found = set.complete().err().map(|error| (error.to_string(), error.lacks_only_namespaces()));
            assert_eq!(found, expected.map(|(message, only)| (message.to_owned(), only)));
        };
        // The message, and whether only namespaces are missing.
        check(&[], None);
        let passed_over = DesiredProblem::PassedOver { file: "values.yaml".to_owned() };
        check(&[&repeated, &excluded, &passed_over, &not_text], None);
        check(&[&nameless], Some(("a Secret at a.yaml:3 has no name", false)));
        let not_a_map = "a document is not an object: a Kubernetes object is a map, this is a string";
        check(&[&text], Some((not_a_map, false)));
        check(&[&homeless, &repeated], Some(("Namespace for ConfigMap conf is missing.", true)));
        let both = "Namespace for ConfigMap conf is missing.; a Secret at a.yaml:3 has no name";
        check(&[&homeless, &nameless], Some((both, false)));
    }
}
