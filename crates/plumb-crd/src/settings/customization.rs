//! `resource.customizations`: settings of single kinds.

use std::collections::BTreeMap;

use plumb_core::app::IgnoreRule;
use plumb_core::glob::Glob;
use plumb_core::object::GroupKind;
use plumb_core::schema::KnownType;

use super::{
    StatusScope,
    value::{Reader, read_nested, read_yaml},
};
use crate::wire::{Raw, wire};

/// The settings of single kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Customizations {
    by_kind: BTreeMap<CustomizationKey, Customization>,
}

/// The kinds of a customization. Either part may be a glob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomizationKey {
    /// API group; empty is the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// The settings of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Customization {
    /// Lua script that judges health.
    pub health_lua: Option<String>,
    /// Whether that script gets all Lua libraries.
    pub use_open_libs: bool,
    /// YAML text of the kind's actions.
    pub actions: Option<String>,
    /// Fields that do not count.
    pub ignore_differences: IgnoredFields,
    /// Fields whose changes do not refresh an app.
    pub ignore_resource_updates: IgnoredFields,
    /// Fields that hold a type of Kubernetes.
    pub known_type_fields: Vec<KnownTypeField>,
}

wire! {
    /// Fields of a kind.
    pub struct IgnoredFields {
        /// RFC 6901 pointers.
        "jsonPointers" json_pointers: Vec<String>,
        /// jq paths.
        "jqPathExpressions" jq_path_expressions: Vec<String>,
        /// Field managers.
        "managedFieldsManagers" managed_fields_managers: Vec<String>,
    }

    /// A field that holds a type of Kubernetes.
    pub struct KnownTypeField {
        /// Dotted path, through lists.
        "field" field: String,
        /// Such as `core/v1/PodSpec` or `core/Quantity`.
        "type" type_name: String,
    }

    /// One entry of the older setting, which contains all settings of a kind.
    struct RawOverride {
        /// Lua script that judges health.
        "health.lua" health_lua: String,
        /// Whether that script gets all Lua libraries.
        "health.lua.useOpenLibs" use_open_libs: bool,
        /// YAML text of the kind's actions.
        "actions" actions: String,
        /// Fields that do not count, as YAML text.
        "ignoreDifferences" ignore_differences: Raw,
        /// Fields whose changes do not refresh an app, as YAML text.
        "ignoreResourceUpdates" ignore_resource_updates: Raw,
        /// Fields that hold a type of Kubernetes.
        "knownTypeFields" known_type_fields: Vec<KnownTypeField>,
    }
}

const LEGACY: &str = "resource.customizations";

impl Customizations {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut customizations = Self::default();
        customizations.read_legacy(reader);
        for (rest, text) in reader.with_prefix("resource.customizations.") {
            if let Err(reason) = customizations.read_split(rest, text) {
                reader.report(&format!("{LEGACY}.{rest}"), reason);
            }
        }
        customizations
    }

    fn read_legacy(&mut self, reader: &mut Reader<'_>) {
        for (name, raw) in reader.yaml::<BTreeMap<String, Raw>>(LEGACY) {
            if let Err(reason) = self.read_legacy_entry(&name, &raw) {
                reader.report(LEGACY, format_args!("{name}: {reason}"));
            }
        }
    }

    fn read_legacy_entry(&mut self, name: &str, raw: &Raw) -> Result<(), String> {
        let raw: RawOverride = read_nested(&raw.0)?;
        let customization = Customization {
            health_lua: non_blank(&raw.health_lua),
            use_open_libs: raw.use_open_libs,
            actions: non_blank(&raw.actions),
            ignore_differences: read_nested(&raw.ignore_differences.0)?,
            ignore_resource_updates: read_nested(&raw.ignore_resource_updates.0)?,
            known_type_fields: raw.known_type_fields,
        };
        self.by_kind.insert(CustomizationKey::parse(name, '/')?, customization);
        Ok(())
    }

    /// `rest` is `<type>.<group_Kind>`.
    fn read_split(&mut self, rest: &str, text: &str) -> Result<(), String> {
        let (what, kind) = rest.split_once('.').ok_or("expected <type>.<group_Kind>")?;
        let key = CustomizationKey::parse(kind, '_')?;
        let mut entry = self.by_kind.get(&key).cloned().unwrap_or_default();
        match what {
            "health" => entry.health_lua = non_blank(text),
            "useOpenLibs" => entry.use_open_libs = parse_bool(text)?,
            "actions" => entry.actions = non_blank(text),
            "ignoreDifferences" => entry.ignore_differences = read_yaml(text)?,
            "ignoreResourceUpdates" => entry.ignore_resource_updates = read_yaml(text)?,
            "knownTypeFields" => entry.known_type_fields = read_yaml(text)?,
            other => return Err(format!("resource customization type {other} not supported")),
        }
        self.by_kind.insert(key, entry);
        Ok(())
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&CustomizationKey, &Customization)> {
        self.by_kind.iter()
    }

    /// The health script for a kind: an exact entry first, then the first glob that matches.
    pub fn health_script(&self, kind: &GroupKind) -> Option<&Customization> {
        let has_script = |customization: &&Customization| customization.health_lua.is_some();
        let exact = CustomizationKey { group: kind.group.clone(), kind: kind.kind.clone() };
        self.by_kind.get(&exact).filter(has_script).or_else(|| {
            let mut matching = self.by_kind.iter().filter(|(key, _)| key.is_glob() && key.matches(kind));
            matching.find_map(|(_, customization)| Some(customization).filter(has_script))
        })
    }

    /// The system-wide ignore rules, with the one on `status` that the compare options ask for.
    pub fn ignore_rules(&self, ignore_status: StatusScope) -> Vec<IgnoreRule> {
        let status = |group: &str, kind: &str| IgnoreRule {
            group: group.to_owned(),
            kind: kind.to_owned(),
            json_pointers: vec!["/status".to_owned()],
            ..IgnoreRule::default()
        };
        let status = match ignore_status {
            StatusScope::All => Some(status("*", "*")),
            StatusScope::Crds => Some(status("apiextensions.k8s.io", "CustomResourceDefinition")),
            StatusScope::None => None,
        };
        let own = self.by_kind.iter().map(|(key, entry)| key.rule(&entry.ignore_differences));
        own.filter(|rule| !says_nothing(rule)).chain(status).collect()
    }

    /// Fields of custom resources that hold a type of Kubernetes: the user's, and the one that Argo CD knows.
    pub fn known_types(&self) -> Vec<KnownType> {
        let own = self.by_kind.iter().flat_map(|(key, entry)| {
            let kind = GroupKind { group: key.group.clone(), kind: key.kind.clone() };
            entry
                .known_type_fields
                .iter()
                .map(move |field| KnownType::new(kind.clone(), &field.field, &field.type_name))
        });
        own.chain([KnownType::built_in()]).collect()
    }

    /// Rules on changes that do not refresh an app.
    pub fn update_rules(&self) -> Vec<IgnoreRule> {
        let own = self.by_kind.iter().map(|(key, entry)| key.rule(&entry.ignore_resource_updates));
        own.filter(|rule| !says_nothing(rule)).collect()
    }
}

impl CustomizationKey {
    /// `group/Kind` or `group_Kind`, `Kind` for the core group, `all` for everything.
    fn parse(text: &str, separator: char) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self { group: "*".to_owned(), kind: "*".to_owned() });
        }
        let parts: Vec<&str> = text.split(separator).collect();
        match parts.as_slice() {
            [kind] if !kind.is_empty() => Ok(Self { group: String::new(), kind: (*kind).to_owned() }),
            [group, kind] if !kind.is_empty() => {
                Ok(Self { group: (*group).to_owned(), kind: (*kind).to_owned() })
            }
            _ => Err(format!("expected group{separator}Kind or Kind, found '{text}'")),
        }
    }

    fn is_glob(&self) -> bool {
        [&self.group, &self.kind].iter().any(|part| part.contains(['*', '?', '[', '{']))
    }

    fn matches(&self, kind: &GroupKind) -> bool {
        let is_match = |pattern: &str, text: &str| Glob::plain(pattern).is_ok_and(|glob| glob.matches(text));
        is_match(&self.group, &kind.group) && is_match(&self.kind, &kind.kind)
    }

    fn rule(&self, fields: &IgnoredFields) -> IgnoreRule {
        IgnoreRule {
            group: self.group.clone(),
            kind: self.kind.clone(),
            name: None,
            namespace: None,
            json_pointers: fields.json_pointers.clone(),
            jq_path_expressions: fields.jq_path_expressions.clone(),
            managed_fields_managers: fields.managed_fields_managers.clone(),
        }
    }
}

fn says_nothing(rule: &IgnoreRule) -> bool {
    rule.json_pointers.is_empty()
        && rule.jq_path_expressions.is_empty()
        && rule.managed_fields_managers.is_empty()
}

fn non_blank(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text.trim() {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}
