//! Compiled ignore rules.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::effort::Effort;
use super::jq::JqPath;
use super::limits::{Problems, within_limits};
use crate::app::IgnoreRule;
use crate::glob::Glob;
use crate::object::{FieldPath, Manifest, ObjectKey};

/// After so many steps in one run, the rules of an app are costly whatever they are.
const QUICK_STEPS: u64 = 2_000_000;

/// The rules of an app and of the settings, compiled. Cheap to clone; copies share what the rules took so far.
#[derive(Clone, Default)]
pub struct IgnoreRules {
    rules: Arc<[CompiledRule]>,
    effort: Arc<Effort>,
    fingerprint: u64,
}

struct CompiledRule {
    group: Option<Glob>,
    kind: Glob,
    name: Option<String>,
    namespace: Option<String>,
    pointers: Vec<FieldPath>,
    jq: Vec<JqRule>,
    managers: Vec<String>,
}

/// A jq path, and its number among all of the app.
struct JqRule {
    path: JqPath,
    number: usize,
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
    /// Compiles rules.
    pub fn compile(rules: impl IntoIterator<Item = IgnoreRule>) -> (Self, Vec<IgnoreProblem>) {
        Self::compile_all([rules.into_iter().collect()])
    }

    /// Compiles lists of rules: that of the app first, then that of the settings. Each list has limits of its own, so that
    /// the rules of one app cannot displace those of the settings.
    pub fn compile_all(lists: impl IntoIterator<Item = Vec<IgnoreRule>>) -> (Self, Vec<IgnoreProblem>) {
        let mut problems = Problems::default();
        let mut hasher = DefaultHasher::new();
        let mut texts = Vec::new();
        let mut compiled = Vec::new();
        for list in lists {
            for rule in within_limits(list, &mut problems) {
                format!("{rule:?}").hash(&mut hasher);
                compiled.extend(compile_rule(rule, &mut texts, &mut problems));
            }
        }
        let fingerprint = if compiled.is_empty() { 0 } else { hasher.finish() };
        let effort = Arc::new(Effort::new(texts));
        (Self { rules: compiled.into(), effort, fingerprint }, problems.into_vec())
    }

    /// Rules that many apps share: the objects of one switch nothing off for the others.
    #[must_use]
    pub fn for_all_apps(self) -> Self {
        Self { effort: Arc::default(), ..self }
    }

    /// Changes when the rules change, and when one of them is switched off.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint.wrapping_add(self.effort.changes())
    }

    /// From now on steps are counted for a new run.
    pub fn start_run(&self) {
        self.effort.start_run();
    }

    /// Switches on again what was switched off.
    pub fn try_again(&self) {
        self.effort.try_again();
    }

    /// Expressions that are switched off because they took too much, and why. They ignore nothing.
    pub fn switched_off(&self) -> Vec<IgnoreProblem> {
        self.effort.problems()
    }

    /// Does it take long to apply the rules to this object? Then it does not belong on a thread that others need.
    pub fn are_costly_for(&self, key: &ObjectKey) -> bool {
        let is_on = |jq: &&JqRule| !self.effort.is_off(jq.number);
        let mut rules = self.rules.iter().filter(|rule| !rule.jq.is_empty() && rule.matches(key));
        let has_run_long = self.effort.steps() > QUICK_STEPS;
        rules.any(|rule| rule.jq.iter().filter(is_on).any(|jq| has_run_long || jq.path.is_costly()))
    }

    /// The places that do not count for this object.
    pub fn of(&self, key: &ObjectKey, desired: Option<&Manifest>, live: Option<&Manifest>) -> Ignored {
        let mut ignored = Ignored::default();
        for rule in self.rules.iter().filter(|rule| rule.matches(key)) {
            for (manifest, places) in [(desired, &mut ignored.desired), (live, &mut ignored.live)] {
                if manifest.is_some() {
                    places.extend(rule.pointers.iter().cloned());
                }
            }
            for jq in &rule.jq {
                self.evaluate(jq, (desired, live), &mut ignored);
            }
            ignored.managers.extend(rule.managers.iter().cloned());
        }
        ignored
    }

    /// An expression that reaches a limit on one side names no places on either.
    fn evaluate(
        &self,
        jq: &JqRule,
        (desired, live): (Option<&Manifest>, Option<&Manifest>),
        ignored: &mut Ignored,
    ) {
        let before = (ignored.desired.len(), ignored.live.len());
        let mut is_whole = true;
        for (manifest, places) in [(desired, &mut ignored.desired), (live, &mut ignored.live)] {
            let Some(manifest) = manifest.filter(|_| !self.effort.is_off(jq.number)) else { continue };
            let found = jq.path.places(manifest.value(), places.len());
            self.effort.add(jq.number, found.steps, found.places.as_ref().err().copied());
            is_whole &= found.places.is_ok();
            places.extend(found.places.unwrap_or_default());
        }
        if !is_whole || self.effort.is_off(jq.number) {
            ignored.desired.truncate(before.0);
            ignored.live.truncate(before.1);
        }
    }
}

fn compile_rule(rule: IgnoreRule, texts: &mut Vec<String>, problems: &mut Problems) -> Option<CompiledRule> {
    let mut glob = |pattern: &str| match Glob::plain(pattern) {
        Ok(glob) => Some(glob),
        Err(error) => {
            problems.add(pattern, error.reason.to_owned());
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
            problems.add(pointer, "a JSON pointer starts with `/`".to_owned());
        }
    }
    let mut jq = Vec::new();
    for expression in rule.jq_path_expressions {
        match JqPath::compile(&expression) {
            Ok(path) => {
                jq.push(JqRule { path, number: texts.len() });
                texts.push(expression);
            }
            Err(message) => problems.add(&expression, message),
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
}

impl fmt::Debug for IgnoreRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IgnoreRules").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}
