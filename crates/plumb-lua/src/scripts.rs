//! The scripts of the settings, by kind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use globset::{Glob, GlobMatcher};
use jiff::Timestamp;
use plumb_core::health::{Custom, Health};
use plumb_core::object::Manifest;
use plumb_core::yaml;
use serde_json::Value;

use crate::action::{Action, Impact};
use crate::builtin;
use crate::error::Error;
use crate::limits::{Libraries, Limits};
use crate::sandbox::Sandbox;

/// The scripts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Customization {
    /// The health script.
    pub health: Option<String>,
    /// Whether the health script gets the open libraries.
    pub open_libraries: bool,
    /// The actions.
    pub actions: Option<Actions>,
}

/// What the answer of a health script depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Only the object: the answer is valid until the object changes.
    Object,
    /// The object and the time.
    ObjectAndClock,
}

/// The actions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// The script that lists the actions.
    pub discovery: String,
    /// The scripts of the actions, by name.
    pub definitions: BTreeMap<String, String>,
    /// Whether the built-in actions of the kind are available too.
    pub merge_builtin: bool,
}

/// A key of the settings that could not be read. The others are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub key: String,
    /// Why it is invalid.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.what)
    }
}

/// All scripts of the settings, as text. A script is compiled on the thread that runs it.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    exact: BTreeMap<String, Customization>,
    /// Longest pattern first: if several match, Argo CD uses any of them, plumb the most specific.
    patterns: Vec<(String, GlobMatcher, Customization)>,
    limits: Limits,
}

const PREFIX: &str = "resource.customizations";

impl Scripts {
    /// Reads the data of `argocd-cm`. Other keys are ignored.
    pub fn parse(data: &BTreeMap<String, String>, limits: Limits) -> (Self, Vec<Problem>) {
        let mut found: BTreeMap<String, Customization> = BTreeMap::new();
        let mut problems = Vec::new();
        for (key, text) in data {
            let Some(rest) = key.strip_prefix(PREFIX) else { continue };
            let read = match rest.strip_prefix('.').and_then(|rest| rest.split_once('.')) {
                Some((what, kind)) => read_split(what, &kind.replacen('_', "/", 1), text, &mut found),
                None if rest.is_empty() => read_joined(text, &mut found),
                None => Err("no kind is named".to_owned()),
            };
            if let Err(what) = read {
                problems.push(Problem { key: key.clone(), what });
            }
        }
        let mut scripts = Self { limits, ..Self::default() };
        for (kind, customization) in found {
            let kind = kind.strip_prefix('/').unwrap_or(&kind).to_owned();
            if !kind.contains(['*', '?', '[', '{']) {
                scripts.exact.insert(kind, customization);
                continue;
            }
            match Glob::new(&kind) {
                Ok(glob) => scripts.patterns.push((kind, glob.compile_matcher(), customization)),
                Err(error) => problems.push(Problem { key: kind, what: error.to_string() }),
            }
        }
        scripts
            .patterns
            .sort_by(|(left, ..), (right, ..)| right.len().cmp(&left.len()).then(left.cmp(right)));
        (scripts, problems)
    }

    /// True if there are no scripts.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.patterns.is_empty()
    }

    /// The first customisation of this kind that has the requested part: the exact key, then patterns.
    fn find<'scripts, T>(
        &'scripts self,
        object: &Manifest,
        part: impl Fn(&'scripts Customization) -> Option<T>,
    ) -> Option<T> {
        let kind = match object.group() {
            "" => object.kind().to_owned(),
            group => format!("{group}/{}", object.kind()),
        };
        if let Some(found) = self.exact.get(&kind).and_then(&part) {
            return Some(found);
        }
        self.patterns.iter().filter(|(_, glob, _)| glob.is_match(&kind)).find_map(|(_, _, found)| part(found))
    }

    fn health_script(&self, object: &Manifest) -> Option<(&str, bool)> {
        self.find(object, |found| Some((found.health.as_deref()?, found.open_libraries)))
    }

    /// What the answer of the health script for an object depends on; `None` if there is no script for its kind.
    pub fn health_asks(&self, object: &Manifest) -> Option<Asks> {
        let (source, _) = self.health_script(object)?;
        // A script that never names `os` cannot read the time.
        let is_word = |at: usize| {
            let letter =
                |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            let bytes = source.as_bytes();
            !letter(at.checked_sub(1).and_then(|before| bytes.get(before))) && !letter(bytes.get(at + 2))
        };
        let has_clock = source.match_indices("os").any(|(at, _)| is_word(at))
            || source.contains("_G")
            || source.contains("package");
        Some(if has_clock { Asks::ObjectAndClock } else { Asks::Object })
    }

    /// The health of an object by the user's script; `None` if there is no script for its kind.
    pub fn judge(&self, object: &Manifest) -> Option<Result<Option<Health>, Error>> {
        let (source, is_open) = self.health_script(object)?;
        let libraries = if is_open { Libraries::Open } else { Libraries::Plain };
        Some(with_sandbox(libraries, self.limits, |sandbox| sandbox.health(source, object.value())))
    }

    /// [`judge`](Self::judge) for `plumb_core::health::assess_with`. A script that fails makes the object
    /// `Unknown`, with the reason.
    pub fn health(&self, object: &Manifest) -> Custom {
        match self.judge(object) {
            None => Custom::Absent,
            Some(answer) => {
                Custom::Judged(answer.unwrap_or_else(|error| Some(Health::unknown(error.to_string()))))
            }
        }
    }

    /// The user's actions for an object; `None` if none are defined for its kind.
    pub fn actions(&self, object: &Manifest) -> Option<&Actions> {
        self.find(object, |found| found.actions.as_ref())
    }

    /// The user's actions that are available for an object, by name.
    pub fn discover(&self, object: &Manifest) -> Result<Vec<Action>, Error> {
        match self.actions(object) {
            None => Ok(Vec::new()),
            Some(actions) if actions.discovery.trim().is_empty() => Ok(Vec::new()),
            Some(actions) => with_sandbox(Libraries::Plain, self.limits, |sandbox| {
                sandbox.discover(&actions.discovery, object.value())
            }),
        }
    }

    /// The actions that are available for an object: the users', and the built-in ones of its kind unless the users'
    /// replace them (`mergeBuiltinActions` keeps both). Of two with the same name, the users' is used.
    pub fn list_actions(&self, object: &Manifest) -> Result<Vec<Action>, Error> {
        let own = self.discover(object)?;
        let keeps_builtin = self.actions(object).is_none_or(|actions| actions.merge_builtin);
        let builtin = if keeps_builtin { builtin::list(object) } else { Vec::new() };
        let by_name = |action: Action| (action.name.clone(), action);
        // Later entries win.
        let all: BTreeMap<String, Action> = builtin.into_iter().chain(own).map(by_name).collect();
        Ok(all.into_values().collect())
    }

    /// What an action would change: the users' action of this name, else the built-in one. Nothing is changed here;
    /// [`Impact::write`] returns what to send.
    pub fn run_action(
        &self,
        object: &Manifest,
        action: &str,
        params: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Result<Vec<Impact>, Error> {
        let is_own = self.actions(object).is_some_and(|actions| actions.definitions.contains_key(action));
        match builtin::act(object, action, params, now) {
            Some(outcome) if !is_own => outcome,
            Some(_) | None => self.act(object, action, params),
        }
    }

    /// What one of the users' actions would change.
    pub fn act(
        &self,
        object: &Manifest,
        action: &str,
        params: &BTreeMap<String, String>,
    ) -> Result<Vec<Impact>, Error> {
        let source = self.actions(object).and_then(|actions| actions.definitions.get(action));
        let Some(source) = source else {
            return Err(Error::NoAction {
                name: action.to_owned(),
                kind: object.gvk().group_kind().to_string(),
            });
        };
        with_sandbox(Libraries::Plain, self.limits, |sandbox| sandbox.act(source, object.value(), params))
    }
}

thread_local! {
    /// The Lua states of this thread, created on first use.
    static SANDBOXES: RefCell<Vec<(Libraries, Limits, Sandbox)>> = const { RefCell::new(Vec::new()) };
}

fn with_sandbox<T>(
    libraries: Libraries,
    limits: Limits,
    run: impl FnOnce(&Sandbox) -> Result<T, Error>,
) -> Result<T, Error> {
    SANDBOXES.with_borrow_mut(|sandboxes| {
        let is_this =
            |(known, with, _): &(Libraries, Limits, Sandbox)| *known == libraries && *with == limits;
        if !sandboxes.iter().any(is_this) {
            // Limits change with the settings: states with old limits are dropped.
            sandboxes.retain(|(_, with, _)| *with == limits);
            sandboxes.push((libraries, limits, Sandbox::new(libraries, limits)?));
        }
        match sandboxes.iter().find(|entry| is_this(entry)) {
            Some((_, _, sandbox)) => run(sandbox),
            None => Err(Error::Setup { message: "no Lua state".to_owned() }),
        }
    })
}

/// One key per part and kind: `resource.customizations.health.group_Kind`.
fn read_split(
    what: &str,
    kind: &str,
    text: &str,
    found: &mut BTreeMap<String, Customization>,
) -> Result<(), String> {
    let entry = found.entry(kind.to_owned()).or_default();
    match what {
        "health" => entry.health = Some(text.to_owned()).filter(|text| !text.trim().is_empty()),
        "useOpenLibs" => {
            entry.open_libraries = match text.trim() {
                "true" => true,
                "false" => false,
                other => return Err(format!("`{other}` is neither true nor false")),
            }
        }
        "actions" => entry.actions = Some(read_actions(&read_yaml(text)?)?),
        // Read elsewhere.
        "ignoreDifferences" | "ignoreResourceUpdates" | "knownTypeFields" => {}
        other => return Err(format!("unknown customisation `{other}`")),
    }
    Ok(())
}

/// All in one key, as before Argo CD 2.0.
fn read_joined(text: &str, found: &mut BTreeMap<String, Customization>) -> Result<(), String> {
    let kinds = match read_yaml(text)? {
        Value::Null => return Ok(()),
        Value::Object(kinds) => kinds,
        _ => return Err("it is not a map of kinds".to_owned()),
    };
    for (kind, parts) in &kinds {
        let entry = found.entry(kind.clone()).or_default();
        if let Some(script) = parts.get("health.lua").and_then(Value::as_str)
            && !script.trim().is_empty()
        {
            entry.health = Some(script.to_owned());
        }
        if let Some(Value::Bool(flag)) = parts.get("health.lua.useOpenLibs") {
            entry.open_libraries = *flag;
        }
        if let Some(actions) = parts.get("actions") {
            // A text with YAML in it, or the map itself.
            let actions = match actions {
                Value::String(text) => read_yaml(text)?,
                other => other.clone(),
            };
            entry.actions = Some(read_actions(&actions).map_err(|what| format!("{kind}: {what}"))?);
        }
    }
    Ok(())
}

fn read_yaml(text: &str) -> Result<Value, String> {
    let documents =
        yaml::parse_documents(text, &yaml::Limits::default()).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().next().map_or(Value::Null, |document| document.value))
}

fn read_actions(value: &Value) -> Result<Actions, String> {
    let mut definitions = BTreeMap::new();
    for definition in value.get("definitions").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| definition.get(field).and_then(Value::as_str);
        let (Some(name), Some(script)) = (text("name"), text("action.lua")) else {
            return Err("a definition needs `name` and `action.lua`".to_owned());
        };
        definitions.insert(name.to_owned(), script.to_owned());
    }
    Ok(Actions {
        discovery: value.get("discovery.lua").and_then(Value::as_str).unwrap_or_default().to_owned(),
        definitions,
        merge_builtin: value.get("mergeBuiltinActions").and_then(Value::as_bool).unwrap_or_default(),
    })
}
