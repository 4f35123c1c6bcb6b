//! `ignoreApplicationDifferences`: fields of an Application that belong to others.
//!
//! Argo CD leaves such fields out of its patch. A list is sent whole, so there the field is lost as soon as another item
//! changes. plumb writes the live value instead.

use plumb_core::app::IgnoreRule;
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{FieldPath, Manifest, ObjectKey, Segment};
use plumb_crd::{Application, ApplicationSet};
use serde_json::{Map, Value as Json};

/// The rules of a set, compiled.
pub(super) struct IgnoredFields {
    rules: IgnoreRules,
    /// A jq expression that cannot be read.
    problem: Option<String>,
}

/// Never ignored.
const PROTECTED: [&str; 4] = ["/metadata/name", "/metadata/namespace", "/operation", ""];

impl IgnoredFields {
    pub(super) fn new(set: &ApplicationSet) -> Self {
        let written = &set.spec.ignore_application_differences;
        let rules = written.iter().map(|rule| IgnoreRule {
            group: "argoproj.io".to_owned(),
            kind: Application::KIND.to_owned(),
            name: Some(rule.name.clone()).filter(|name| !name.is_empty()),
            namespace: None,
            json_pointers: rule.json_pointers.clone(),
            jq_path_expressions: rule.jq_path_expressions.clone(),
            managed_fields_managers: Vec::new(),
        });
        let (rules, problems) = IgnoreRules::compile(rules);
        let is_jq =
            |expression: &String| written.iter().any(|rule| rule.jq_path_expressions.contains(expression));
        let problem = problems.into_iter().find(|problem| is_jq(&problem.expression));
        let problem = problem.map(|problem| {
            format!(
                "cannot read the jq path {:?} of ignoreApplicationDifferences: {}",
                problem.expression, problem.message
            )
        });
        Self { rules, problem }
    }

    /// The wanted Application with the live values of all ignored fields.
    pub(super) fn keep(&self, key: &ObjectKey, wanted: &mut Json, live: &Json) -> Result<(), String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let manifest = |value: &Json| {
            let mut value = value.clone();
            value["apiVersion"] = Json::from(Application::API_VERSION);
            value["kind"] = Json::from(Application::KIND);
            Manifest::new(value).map_err(|error| error.to_string())
        };
        let ignored = self.rules.of(key, Some(&manifest(wanted)?), Some(&manifest(live)?));
        let is_protected = |path: &FieldPath| PROTECTED.contains(&path.to_string().as_str());
        let is_in_list = |path: &FieldPath| steps_through_list(path, live);
        for path in ignored.live.iter().filter(|path| !is_protected(path)) {
            let both = ignored.desired.contains(path);
            match path.find(live) {
                // An item of a list is the same item only if both sides ignore this place of it.
                Some(_) if is_in_list(path) && !both => {}
                Some(value) => set(wanted, path.segments(), Some(value)),
                None if is_in_list(path) => {}
                None => set(wanted, path.segments(), None),
            }
        }
        for path in ignored.desired.iter().filter(|path| !is_protected(path)) {
            if !ignored.live.contains(path) && !steps_through_list(path, wanted) && path.find(live).is_none()
            {
                set(wanted, path.segments(), None);
            }
        }
        prune_empty(&mut wanted["metadata"]);
        Ok(())
    }
}

/// Does the place lie inside an item of a list?
fn steps_through_list(path: &FieldPath, value: &Json) -> bool {
    let mut place = FieldPath::root();
    path.segments().iter().any(|segment| {
        let is_list = place.find(value).is_some_and(Json::is_array);
        place.push(segment.clone());
        is_list || matches!(segment, Segment::Index(_))
    })
}

/// Sets or removes the value at a place. Maps on the way to a new value are made, list items are not.
fn set(value: &mut Json, segments: &[Segment], new: Option<&Json>) {
    let Some((first, rest)) = segments.split_first() else { return };
    let inner = match (first, value) {
        (Segment::Field(name), Json::Object(map)) => {
            if rest.is_empty() {
                match new {
                    Some(new) => map.insert(name.to_string(), new.clone()),
                    None => map.remove(name.as_str()),
                };
                return;
            }
            if new.is_some() {
                map.entry(name.to_string()).or_insert_with(|| Json::Object(Map::new()));
            }
            map.get_mut(name.as_str())
        }
        (Segment::Field(name), Json::Array(items)) => {
            name.parse::<usize>().ok().and_then(|index| items.get_mut(index))
        }
        (Segment::Index(index), Json::Array(items)) => items.get_mut(*index),
        _ => None,
    };
    let Some(inner) = inner else { return };
    if rest.is_empty() {
        if let Some(new) = new {
            *inner = new.clone();
        }
        return;
    }
    set(inner, rest, new);
}

fn prune_empty(metadata: &mut Json) {
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|_, value| match value {
            Json::Object(map) => !map.is_empty(),
            Json::Array(items) => !items.is_empty(),
            Json::Null => false,
            _ => true,
        });
    }
}
