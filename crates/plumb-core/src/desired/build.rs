//! Rendered manifests become the desired set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    DesiredHook, DesiredObject, DesiredProblem, DesiredSet, HookPhase, KindFilter, ObjectOptions, Origin,
    Scope, Scopes,
};
use crate::object::{FieldPath, GroupKind, Manifest, ObjectKey};
use crate::tracking::{self, TrackingSettings};

/// One document that rendering gave, as parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedManifest {
    /// The document.
    pub value: Value,
    /// Its place in the source, if the tool reports it.
    pub origin: Option<Origin>,
}

impl RenderedManifest {
    /// Stands for a file that was passed over because it is no manifest: nothing, at no line of the file.
    pub fn passed_over(source: usize, file: String) -> Self {
        Self { value: Value::Null, origin: Some(Origin { source, file, line: 0, verbatim: false }) }
    }

    /// True if it stands for a file that was passed over.
    pub fn is_passed_over(&self) -> bool {
        self.value.is_null() && self.origin.as_ref().is_some_and(|origin| origin.line == 0)
    }
}

/// What the desired set depends on besides the manifests.
#[derive(Clone, Copy, Debug)]
pub struct DesiredContext<'context> {
    /// Instance name of the app, as tracking marks carry it.
    pub app: &'context str,
    /// Namespace of namespaced objects that name none.
    pub destination_namespace: Option<&'context str>,
    /// Address of the destination cluster, for rules that name clusters.
    pub destination_server: &'context str,
    /// What the destination cluster knows about kinds. For kinds that it does not know, a CRD in the same set
    /// decides; an unknown kind counts as namespaced, as in Argo CD.
    pub scopes: &'context Scopes,
    /// How objects are marked.
    pub tracking: &'context TrackingSettings,
    /// Kinds that the settings leave out.
    pub filter: &'context KindFilter,
}

/// Turns rendered manifests into the desired set. The manifests stay as Git has them, apart from namespace
/// and tracking mark: every rewrite that makes two spellings comparable belongs to the comparison.
pub fn build(rendered: Vec<RenderedManifest>, context: &DesiredContext<'_>) -> DesiredSet {
    let mut set = DesiredSet::default();
    let manifests = manifests(rendered, &mut set.problems);
    let announced = Scopes::of_crds(manifests.iter().map(|(manifest, _)| manifest));
    let mut entries = Vec::with_capacity(manifests.len());
    for (manifest, origin) in manifests {
        let entry = settle(manifest, origin, &announced, context);
        if context.filter.excludes(&entry.kind, context.destination_server) {
            if let Some(key) = entry.key {
                set.problems.push(DesiredProblem::Excluded { key });
            }
        } else {
            report(&entry, &mut set.problems);
            entries.push(entry);
        }
    }
    set.problems.extend(repeated(&entries));
    for entry in last_of_each(entries) {
        insert(entry, &mut set);
    }
    set
}

/// The objects among the documents: lists are taken apart, empty documents dropped.
fn manifests(
    rendered: Vec<RenderedManifest>,
    problems: &mut Vec<DesiredProblem>,
) -> Vec<(Manifest, Option<Origin>)> {
    let mut found = Vec::with_capacity(rendered.len());
    for rendered in rendered {
        let is_passed_over = rendered.is_passed_over();
        let RenderedManifest { value, mut origin } = rendered;
        if let Some(origin) = origin.take_if(|_| is_passed_over) {
            problems.push(DesiredProblem::PassedOver { file: origin.file });
            continue;
        }
        // A stack, not recursion: lists may be nested as deep as the input likes.
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            match list_items(value) {
                Ok(items) => {
                    origin = origin.map(|origin| Origin { verbatim: false, ..origin });
                    waiting.extend(items.into_iter().rev());
                }
                Err(Value::Null) => {}
                Err(value) => match Manifest::new(value) {
                    Ok(manifest) => found.push((manifest, origin.clone())),
                    Err(reason) => {
                        problems.push(DesiredProblem::NotAnObject { reason, origin: origin.clone() });
                    }
                },
            }
        }
    }
    found
}

/// The items of a list, or the value itself. Any object with a list under `items` is a list to Kubernetes,
/// whatever its kind; `items: null` is an empty one if nothing else makes it look like an object.
fn list_items(value: Value) -> Result<Vec<Value>, Value> {
    let Value::Object(mut map) = value else { return Err(value) };
    match map.get("items") {
        Some(Value::Array(_)) => {}
        Some(Value::Null) if !map.contains_key("spec") && !map.contains_key("status") => {
            return Ok(Vec::new());
        }
        _ => return Err(Value::Object(map)),
    }
    let Some(Value::Array(mut items)) = map.remove("items") else { return Err(Value::Object(map)) };
    // The items of a typed list (`ConfigMapList`) may leave out what its kind already says.
    let item_kind = map.get("kind").and_then(Value::as_str).and_then(|kind| kind.strip_suffix("List"));
    if let Some(kind) = item_kind.filter(|kind| !kind.is_empty()) {
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            if item.get("kind").and_then(Value::as_str).is_none_or(str::is_empty) {
                item.insert("kind".to_owned(), Value::String(kind.to_owned()));
                item.insert("apiVersion".to_owned(), map.get("apiVersion").cloned().unwrap_or_default());
            }
        }
    }
    Ok(items)
}

/// A manifest whose namespace is settled.
struct Candidate {
    kind: GroupKind,
    /// `None` for an object that leaves its name to the server.
    key: Option<ObjectKey>,
    scope: Scope,
    manifest: Manifest,
    options: ObjectOptions,
    origin: Option<Origin>,
}

fn settle(
    manifest: Manifest,
    origin: Option<Origin>,
    announced: &Scopes,
    context: &DesiredContext<'_>,
) -> Candidate {
    let kind = manifest.gvk().group_kind();
    let scope = context.scopes.get(&kind).or_else(|| announced.get(&kind)).unwrap_or(Scope::Namespaced);
    let placed = match (scope, manifest.namespace(), context.destination_namespace) {
        (Scope::Cluster, _, _) if has_namespace_field(&manifest) => manifest.with_namespace(None),
        (Scope::Namespaced, None, Some(namespace)) => manifest.with_namespace(Some(namespace)),
        (Scope::Cluster | Scope::Namespaced, _, _) => manifest,
    };
    let options = ObjectOptions::parse(&placed);
    let manifest = tracking::mark(placed, context.app, context.destination_namespace, context.tracking);
    Candidate { kind, key: manifest.key(), scope, manifest, options, origin }
}

fn has_namespace_field(manifest: &Manifest) -> bool {
    manifest.value().pointer("/metadata/namespace").is_some()
}

/// What is wrong with one object that stays in the set, or that cannot.
fn report(entry: &Candidate, problems: &mut Vec<DesiredProblem>) {
    for map in ["labels", "annotations"] {
        let place = FieldPath::root().field("metadata").field(map);
        let fields = place.find(entry.manifest.value()).and_then(Value::as_object);
        for (name, _) in fields.into_iter().flatten().filter(|(_, text)| !text.is_string() && !text.is_null())
        {
            problems.push(DesiredProblem::NotText {
                key: entry.key.clone(),
                field: place.field(name),
                origin: entry.origin.clone(),
            });
        }
    }
    let Some(key) = &entry.key else {
        // A sync names its hooks.
        if !entry.options.is_hook {
            problems.push(DesiredProblem::NameMissing {
                kind: entry.kind.kind.clone(),
                origin: entry.origin.clone(),
            });
        }
        return;
    };
    if entry.scope == Scope::Namespaced && key.namespace.is_none() {
        problems.push(DesiredProblem::NamespaceMissing { key: key.clone() });
    }
}

/// Which keys came more than once.
fn repeated(entries: &[Candidate]) -> Vec<DesiredProblem> {
    let mut by_key: BTreeMap<&ObjectKey, Vec<&Candidate>> = BTreeMap::new();
    for entry in entries {
        if let Some(key) = &entry.key {
            by_key.entry(key).or_default().push(entry);
        }
    }
    by_key
        .into_iter()
        .filter(|(_, same)| same.len() > 1)
        .map(|(key, same)| DesiredProblem::Repeated {
            key: key.clone(),
            count: same.len(),
            origins: same.iter().filter_map(|entry| entry.origin.clone()).collect(),
        })
        .collect()
}

/// The last entry of each key, and every entry without one, in the order of the source.
fn last_of_each(entries: Vec<Candidate>) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let mut last: Vec<Candidate> = entries
        .into_iter()
        .rev()
        .filter(|entry| entry.key.as_ref().is_none_or(|key| seen.insert(key.clone())))
        .collect();
    last.reverse();
    last
}

fn insert(entry: Candidate, set: &mut DesiredSet) {
    let Candidate { key, manifest, options, origin, .. } = entry;
    if options.is_hook {
        let namespace = manifest.namespace().map(str::to_owned);
        let phases = HookPhase::of(&manifest);
        let hook = DesiredHook { manifest, namespace, phases, options, origin };
        let hook = if key.is_some() { hook } else { with_own_prefix(hook, &set.hooks) };
        set.hooks.push(hook);
    } else if let Some(key) = key {
        set.objects.insert(key.clone(), DesiredObject { key, manifest, options, origin });
    }
}

/// A sync makes the name of a hook from its `generateName` and its phase. Two that have both in common would be one object:
/// the later one is numbered.
fn with_own_prefix(hook: DesiredHook, others: &[DesiredHook]) -> DesiredHook {
    let prefix = hook.manifest.generate_name().unwrap_or_default().to_owned();
    let is_taken = |prefix: &str| {
        others.iter().any(|other| {
            other.manifest.name().is_none()
                && other.manifest.gvk().group_kind() == hook.manifest.gvk().group_kind()
                && other.namespace == hook.namespace
                && other.manifest.generate_name().unwrap_or_default() == prefix
                && other.phases.iter().any(|phase| hook.phases.contains(phase))
        })
    };
    let numbered = (2..).map(|number: usize| format!("{prefix}{number}-"));
    let Some(own) = std::iter::once(prefix.clone()).chain(numbered).find(|prefix| !is_taken(prefix)) else {
        return hook;
    };
    if own == prefix {
        return hook;
    }
    let manifest = hook.manifest.clone().edit_metadata(|metadata| {
        metadata.insert("generateName".to_owned(), Value::String(own));
    });
    DesiredHook { manifest, ..hook }
}
