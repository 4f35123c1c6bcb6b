//! Compiled ignore rules.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::jq::JqPath;
use crate::app::IgnoreRule;
use crate::fields::Owners;
use crate::glob::Glob;
use crate::object::{FieldPath, Manifest, ObjectKey, Segment};

/// The rules of an app and of the settings, compiled. Cheap to clone.
#[derive(Clone, Default)]
pub struct IgnoreRules {
    rules: Arc<[CompiledRule]>,
    fingerprint: u64,
}

struct CompiledRule {
    group: Option<Glob>,
    kind: Glob,
    name: Option<String>,
    namespace: Option<String>,
    pointers: Vec<FieldPath>,
    jq: Vec<JqPath>,
    managers: Vec<String>,
}

/// A rule, or part of one, that could not be compiled; it is left out, and the app says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreProblem {
    /// The expression.
    pub expression: String,
    /// What is wrong with it.
    pub message: String,
}

/// What the rules say about one pair of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Places of Git's object that do not count.
    pub desired: Vec<FieldPath>,
    /// Places of the live object that do not count.
    pub live: Vec<FieldPath>,
    /// Managers whose fields do not count.
    pub managers: Vec<String>,
}

impl IgnoreRules {
    /// Compiles rules: those of the app first, then those of the settings.
    pub fn compile(rules: impl IntoIterator<Item = IgnoreRule>) -> (Self, Vec<IgnoreProblem>) {
        let mut problems = Vec::new();
        let mut hasher = DefaultHasher::new();
        let rules: Vec<CompiledRule> = rules
            .into_iter()
            .filter_map(|rule| {
                format!("{rule:?}").hash(&mut hasher);
                compile_rule(rule, &mut problems)
            })
            .collect();
        let fingerprint = if rules.is_empty() { 0 } else { hasher.finish() };
        (Self { rules: rules.into(), fingerprint }, problems)
    }

    /// Changes when the rules change.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The places that do not count for this object.
    pub fn of(&self, key: &ObjectKey, desired: Option<&Manifest>, live: Option<&Manifest>) -> Ignored {
        let mut ignored = Ignored::default();
        for rule in self.rules.iter().filter(|rule| rule.matches(key)) {
            for (manifest, places) in [(desired, &mut ignored.desired), (live, &mut ignored.live)] {
                let Some(manifest) = manifest else { continue };
                places.extend(rule.pointers.iter().cloned());
                places.extend(rule.jq.iter().flat_map(|jq| jq.places(manifest.value())));
            }
            ignored.managers.extend(rule.managers.iter().cloned());
        }
        ignored
    }
}

fn compile_rule(rule: IgnoreRule, problems: &mut Vec<IgnoreProblem>) -> Option<CompiledRule> {
    let mut problem = |expression: &str, message: String| {
        problems.push(IgnoreProblem { expression: expression.to_owned(), message });
    };
    let mut glob = |pattern: &str| match Glob::plain(pattern) {
        Ok(glob) => Some(glob),
        Err(error) => {
            problem(pattern, error.reason.to_owned());
            None
        }
    };
    let group = if rule.group.is_empty() { None } else { Some(glob(&rule.group)?) };
    let kind = glob(&rule.kind)?;
    let mut pointers = Vec::new();
    for pointer in &rule.json_pointers {
        if pointer.starts_with('/') {
            pointers.push(FieldPath::from_pointer(pointer));
        } else {
            problem(pointer, "a JSON pointer starts with `/`".to_owned());
        }
    }
    let mut jq = Vec::new();
    for expression in &rule.jq_path_expressions {
        match JqPath::compile(expression) {
            Ok(path) => jq.push(path),
            Err(message) => problem(expression, message),
        }
    }
    Some(CompiledRule {
        group,
        kind,
        name: rule.name.filter(|name| !name.is_empty()),
        namespace: rule.namespace.filter(|namespace| !namespace.is_empty()),
        pointers,
        jq,
        managers: rule.managed_fields_managers,
    })
}

impl CompiledRule {
    fn matches(&self, key: &ObjectKey) -> bool {
        let group = match &self.group {
            Some(group) => group.matches(&key.group),
            None => key.group.is_empty(),
        };
        group
            && self.kind.matches(&key.kind)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace_or_empty())
    }
}

impl Ignored {
    /// Does nothing apply?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Do rules cover this place on both sides?
    pub fn covers_both(&self, live: &FieldPath, desired: &FieldPath) -> bool {
        self.covers_live(live) && self.desired.iter().any(|rule| is_inside(desired, rule))
    }

    /// Does a rule for the live side cover this place?
    pub fn covers_live(&self, live: &FieldPath) -> bool {
        self.live.iter().any(|rule| is_inside(live, rule))
    }

    /// Does a rule cover this place? `live` and `desired` are its positions on the two sides.
    pub fn covers(&self, live: &FieldPath, desired: &FieldPath, owners: &Owners<'_>) -> bool {
        self.live.iter().any(|rule| is_inside(live, rule))
            || self.desired.iter().any(|rule| is_inside(desired, rule))
            || (!self.managers.is_empty()
                && owners.of_place(live).any(|entry| self.managers.iter().any(|name| name == entry.manager)))
    }
}

/// Is `place` the `rule`'s place, or inside it? A pointer's digits name a list position or a key.
fn is_inside(place: &FieldPath, rule: &FieldPath) -> bool {
    let (place, rule) = (place.segments(), rule.segments());
    rule.len() <= place.len()
        && rule.iter().zip(place).all(|(rule, place)| match (rule, place) {
            (Segment::Field(digits), Segment::Index(index)) => digits.parse() == Ok(*index),
            (rule, place) => rule == place,
        })
}

impl fmt::Debug for IgnoreRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IgnoreRules").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}
