//! Plays a recorded reconcile against what plumb decides.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use plumb_appset::reconcile::{
    Before, Destinations, Policy, RemovalStep, Rules, Situation, Write, conclude, decide, is_owned_by, remove,
};
use plumb_appset::{Facts as _, generate};
use plumb_crd::ApplicationSet;
use plumb_crd::wire::Wire as _;
use serde_json::{Map, Value, json};

use crate::facts::Recorded;
use crate::judge::{Difference, settings};

const ONE_OPERATION: &str = "plumb requests no second sync of an Application that left Pending";
const LIVE_VALUES: &str =
    "a field that belongs to others keeps its live value, also in lists and last annotations";
const WAITS: &str = "many deletions, and those after an empty answer, wait for a user";

const FUTURE: &str = "2100-01-01T00:00:00Z";
const PAST: &str = "2000-01-01T00:00:00Z";

/// The cluster of a case.
struct Stage {
    input: Value,
    set: Option<Value>,
    applications: BTreeMap<String, Value>,
    /// The same before the last reconcile.
    before: BTreeMap<String, Value>,
    /// Applications that got a second operation in the recording.
    synced_twice: BTreeSet<String>,
    now: Timestamp,
}

/// Compares all steps of a case.
pub(crate) fn judge(case: &Value) -> Result<(), Difference> {
    let input = &case["input"];
    let named = |application: &Value| {
        (application["metadata"]["name"].as_str().unwrap_or_default().to_owned(), timed(application))
    };
    let existing = input["applications"].as_array().into_iter().flatten();
    let mut stage = Stage {
        input: input.clone(),
        set: Some(timed(&input["applicationSet"])),
        applications: existing.map(named).collect(),
        before: BTreeMap::new(),
        synced_twice: BTreeSet::new(),
        now: "2026-01-01T00:00:00Z".parse().expect("a time"),
    };
    let steps = input["steps"].as_array().cloned().unwrap_or_else(|| vec![json!({})]);
    let mut pending = BTreeSet::new();
    for (index, step) in steps.iter().enumerate() {
        let mut expected = case["output"]["steps"][index].clone();
        if expected.get("writes").is_none() && expected.get("applications").is_none() {
            continue;
        }
        stage.now = stage.now.checked_add(SignedDuration::from_secs(10)).expect("a time");
        stage.change(step);
        stage.before.clone_from(&stage.applications);
        let requeue = stage.run();
        stage.drop_second_operations(&mut expected, &pending);
        pending = pending_in(&expected);
        match stage.compare(&expected, requeue) {
            Ok(()) => {}
            // What follows starts from another state.
            Err(_) if stage.waits() => return Err(Difference::OnPurpose(WAITS)),
            Err(_) if stage.keeps_live_values(&expected) => return Err(Difference::OnPurpose(LIVE_VALUES)),
            Err(difference) => return Err(Difference::Other(format!("step {index}: {difference}"))),
        }
    }
    if stage.synced_twice.is_empty() { Ok(()) } else { Err(Difference::OnPurpose(ONE_OPERATION)) }
}

/// The Applications that are Pending after a step.
fn pending_in(expected: &Value) -> BTreeSet<String> {
    let statuses = expected["applicationSet"]["status"]["applicationStatus"].as_array().into_iter().flatten();
    let pending = statuses.filter(|status| status["status"] == "Pending");
    pending.filter_map(|status| status["application"].as_str().map(str::to_owned)).collect()
}

/// The places in which two values differ, with a list as one step of the way.
fn places(wanted: &Value, found: &Value, at: &str, places: &mut Vec<(String, Value)>) {
    match (wanted, found) {
        _ if wanted == found => {}
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let step = key.replace('~', "~0").replace('/', "~1");
                self::places(&wanted[key], &found[key], &format!("{at}/{step}"), places);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (wanted, found)) in a.iter().zip(b).enumerate() {
                self::places(wanted, found, &format!("{at}/{index}"), places);
            }
        }
        // A map that one side does not have at all.
        (Value::Null, Value::Object(map)) => {
            for (key, item) in map {
                let step = key.replace('~', "~0").replace('/', "~1");
                places.push((format!("{at}/{step}"), item.clone()));
            }
        }
        _ => places.push((at.to_owned(), found.clone())),
    }
}

/// The recorded words for times, as times.
fn timed(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "@future" => Value::from(FUTURE),
        Value::String(text) if text == "@past" => Value::from(PAST),
        Value::Array(items) => items.iter().map(timed).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), timed(value))).collect(),
        other => other.clone(),
    }
}

fn merge(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    let Value::Object(base) = base else { return };
    for (key, value) in patch {
        if value.is_null() {
            base.remove(key);
        } else {
            merge(base.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

impl Stage {
    fn change(&mut self, step: &Value) {
        if let (Some(set), patch @ Value::Object(_)) = (&mut self.set, &step["setPatch"]) {
            merge(set, patch);
        }
        for (name, patch) in step["appPatches"].as_object().into_iter().flatten() {
            merge(self.applications.entry(name.clone()).or_default(), &timed(patch));
        }
        for name in step["deleteApps"].as_array().into_iter().flatten() {
            self.applications.remove(name.as_str().unwrap_or_default());
        }
        if let (Some(set), true) = (&mut self.set, step["deleteSet"] == true) {
            set["metadata"]["deletionTimestamp"] = self.now.write();
            // The recorder gives a set that it deletes a finalizer, as a real one would have.
            if set["metadata"].get("finalizers").is_none() {
                set["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
            }
        }
        let gone = step["removeClusterSecrets"].as_array().cloned().unwrap_or_default();
        if let Some(secrets) = self.input["clusterSecrets"].as_array_mut() {
            secrets.retain(|secret| !gone.contains(&secret["name"]));
        }
    }

    /// Leaves out the operations that are written again for Applications that leave Pending in this step. The recording
    /// keeps them until a step takes them away.
    fn drop_second_operations(&mut self, expected: &mut Value, pending: &BTreeSet<String>) {
        let still = pending_in(expected);
        for application in expected["applications"].as_array_mut().into_iter().flatten() {
            let name = application["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let is_extra = application.get("operation").is_some()
                && self.applications.get(&name).is_some_and(|ours| ours.get("operation").is_none());
            let left_pending = pending.contains(&name) && !still.contains(&name);
            if is_extra
                && (left_pending || self.synced_twice.contains(&name))
                && let Some(application) = application.as_object_mut()
            {
                application.remove("operation");
                self.synced_twice.insert(name);
            }
        }
    }

    /// Do deletions wait for a user?
    fn waits(&self) -> bool {
        let conditions = self.set.as_ref().and_then(|set| set["status"]["conditions"].as_array());
        conditions.into_iter().flatten().any(|condition| condition["type"] == "DeletionsWaiting")
    }

    /// Is each difference a field in a list, or an annotation or label, that has the value that it had before this step,
    /// in a set that ignores fields?
    fn keeps_live_values(&self, expected: &Value) -> bool {
        let ignored = &self.input["applicationSet"]["spec"]["ignoreApplicationDifferences"];
        let mut found = Vec::new();
        for wanted in expected["applications"].as_array().into_iter().flatten() {
            let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
            let (Some(ours), Some(before)) = (self.applications.get(name), self.before.get(name)) else {
                return false;
            };
            let mut differences = Vec::new();
            places(&plain(wanted), &plain(ours), "", &mut differences);
            let before = plain(before);
            found.extend(differences.into_iter().map(|(at, ours)| {
                let is_in_list = at.split('/').any(|step| step.parse::<usize>().is_ok());
                let is_note = at.starts_with("/metadata/annotations/") || at.starts_with("/metadata/labels/");
                (is_in_list || is_note) && !ours.is_null() && before.pointer(&at) == Some(&ours)
            }));
        }
        ignored.is_array() && !found.is_empty() && found.into_iter().all(|is_live| is_live)
    }

    fn rules(&self) -> Rules {
        let settings = &self.input["settings"];
        let texts = |key: &str| -> Vec<String> {
            let items = settings[key].as_array().into_iter().flatten();
            items.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let policy = settings["policy"].as_str().and_then(Policy::from_name);
        Rules {
            policy,
            policy_override: settings["enablePolicyOverride"].as_bool().unwrap_or(policy.is_none()),
            progressive_syncs: settings["progressiveSyncs"] == true,
            preserved_annotations: texts("globalPreservedAnnotations"),
            preserved_labels: texts("globalPreservedLabels"),
            max_resources: settings["maxResourcesStatusCount"]
                .as_u64()
                .and_then(|most| usize::try_from(most).ok())
                .unwrap_or(5000),
            ..Rules::default()
        }
    }

    /// One reconcile. Returns when to look again.
    fn run(&mut self) -> Option<Duration> {
        let set = ApplicationSet::from_json(self.set.as_ref()?).expect("a set");
        let rules = self.rules();
        let existing: Vec<Value> = self.applications.values().cloned().collect();
        if set.metadata.deletion_timestamp.is_some() {
            return self.remove(&set, &existing, &rules);
        }
        let facts = Recorded::new(&self.input);
        let generated = generate(&set, &facts, &settings(&self.input));
        let clusters = facts.clusters().unwrap_or_default();
        let destinations = Destinations::new(&clusters, true);
        let project_exists = |name: &str| facts.project(name).is_ok();
        let here = |live: &&Value| live["metadata"]["namespace"] == set.metadata.namespace.as_str();
        let existing: Vec<Value> = existing.iter().filter(here).cloned().collect();
        let decision = decide(&Situation {
            set: &set,
            generated: generated.as_ref(),
            existing: &existing,
            unreadable: &BTreeSet::new(),
            destinations: &destinations,
            project_exists: &project_exists,
            also_generated_by: &BTreeMap::new(),
            rules: &rules,
            before: &Before::default(),
            git_every: Duration::from_mins(3),
            now: self.now,
        });
        drop(facts);
        for write in &decision.writes {
            match write {
                Write::Create { name, object } => {
                    self.applications.insert(name.clone(), object.clone());
                }
                Write::Patch { name, patch } => {
                    merge(self.applications.get_mut(name).expect("it exists"), patch);
                }
                Write::Delete { name, release, .. } => {
                    if let Some(release) = release {
                        merge(self.applications.get_mut(name).expect("it exists"), release);
                    }
                    self.delete(name);
                }
            }
        }
        let owned: Vec<&Value> = self.applications.values().filter(|live| is_owned_by(live, &set)).collect();
        let status = conclude(&set, &decision, None, &owned, rules.max_resources, self.now);
        let object = self.set.as_mut()?;
        object["status"] = status.write();
        if decision.adds_finalizer {
            object["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
        }
        decision.requeue_after
    }

    /// One look at a set that is being deleted.
    fn remove(&mut self, set: &ApplicationSet, existing: &[Value], rules: &Rules) -> Option<Duration> {
        let removal = remove(set, existing, rules, self.now);
        for step in removal.steps {
            match step {
                RemovalStep::Release { name, patch } => {
                    merge(self.applications.get_mut(&name).expect("it exists"), &patch);
                }
                RemovalStep::Delete { name, .. } => self.delete(&name),
                RemovalStep::RemoveFinalizer { finalizers } => {
                    if finalizers.is_empty() {
                        self.set = None;
                    }
                }
            }
        }
        removal.waits.then_some(Duration::from_secs(10))
    }

    fn delete(&mut self, name: &str) {
        let Some(application) = self.applications.get_mut(name) else { return };
        if application["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()) {
            application["metadata"]["deletionTimestamp"] = Value::from("@now");
        } else {
            self.applications.remove(name);
        }
    }

    fn compare(&self, expected: &Value, requeue: Option<Duration>) -> Result<(), String> {
        let namespace = &self.input["applicationSet"]["metadata"]["namespace"];
        let here = |live: &&Value| live["metadata"]["namespace"] == *namespace;
        let found: Vec<Value> = self.applications.values().filter(here).map(plain).collect();
        let wanted: Vec<Value> =
            expected["applications"].as_array().into_iter().flatten().map(plain).collect();
        differs("applications", &Value::Array(wanted), &Value::Array(found))?;
        let status = self.set.as_ref().map(|set| plain(&set["status"])).unwrap_or_default();
        let status = if status.is_null() { json!({}) } else { status };
        let wanted = plain(&expected["applicationSet"]["status"]);
        let wanted = if wanted.is_null() { json!({}) } else { wanted };
        for part in ["conditions", "applicationStatus", "health", "resources", "resourcesCount"] {
            differs(part, &empty_is_null(&wanted[part]), &empty_is_null(&status[part]))?;
        }
        differs("set", &Value::Bool(expected["applicationSet"].is_null()), &Value::Bool(self.set.is_none()))?;
        let wanted = expected["requeueAfterSeconds"].as_u64().unwrap_or_default();
        if expected.get("error").is_none() && wanted != requeue.map_or(0, |time| time.as_secs()) {
            return Err(format!("requeue after {requeue:?} instead of {wanted} s"));
        }
        Ok(())
    }
}

fn empty_is_null(value: &Value) -> Value {
    let is_empty = value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(Map::is_empty)
        || *value == 0;
    if is_empty { Value::Null } else { value.clone() }
}

fn differs(what: &str, wanted: &Value, found: &Value) -> Result<(), String> {
    if wanted == found {
        return Ok(());
    }
    Err(format!("{what}\n    found    {found}\n    expected {wanted}"))
}

/// Without kinds, and with one word for all times.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut plain = Map::new();
            for (key, value) in map {
                let is_time = matches!(
                    key.as_str(),
                    "lastTransitionTime" | "deletionTimestamp" | "startedAt" | "reconciledAt"
                );
                let is_kind = map.contains_key("spec") && matches!(key.as_str(), "apiVersion" | "kind");
                // Go writes these even if they are empty.
                let is_zero = matches!(key.as_str(), "initiatedBy" | "retry" | "valueFiles")
                    && (*value == json!({}) || *value == json!([]));
                if is_time {
                    plain.insert(key.clone(), Value::from("@now"));
                } else if !is_kind && !is_zero {
                    plain.insert(key.clone(), self::plain(value));
                }
            }
            Value::Object(plain)
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Number(number) => Value::from(number.as_f64()),
        other => other.clone(),
    }
}
