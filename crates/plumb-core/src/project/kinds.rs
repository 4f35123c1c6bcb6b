//! Which kinds may exist.

use super::{ProjectProblem, ProjectRules};
use crate::glob::{Glob, NotAGlob};
use crate::object::GroupKind;

/// A kind, and for cluster-scoped ones a name, as globs of Go's `filepath.Match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindPattern {
    /// API group; empty is the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; `None` matches any.
    pub name: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct KindLists {
    cluster_allowed: Vec<Pattern>,
    cluster_denied: Vec<Pattern>,
    /// `None`: all are allowed.
    namespaced_allowed: Option<Vec<Pattern>>,
    namespaced_denied: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    group: Glob,
    kind: Glob,
    name: Option<Glob>,
}

impl Pattern {
    fn compile(pattern: &KindPattern) -> Result<Self, NotAGlob> {
        Ok(Self {
            group: Glob::path(&pattern.group)?,
            kind: Glob::path(&pattern.kind)?,
            name: pattern.name.as_deref().map(Glob::path).transpose()?,
        })
    }

    fn matches(&self, kind: &GroupKind, name: &str) -> bool {
        self.kind.matches(&kind.kind)
            && self.group.matches(&kind.group)
            && self.name.as_ref().is_none_or(|pattern| pattern.matches(name))
    }
}

impl KindLists {
    pub(super) fn compile(rules: &ProjectRules, problems: &mut Vec<ProjectProblem>) -> Self {
        let mut list = |patterns: &[KindPattern], field: &str, denies: bool| {
            let mut compiled = Vec::new();
            for (index, pattern) in patterns.iter().enumerate() {
                match Pattern::compile(pattern) {
                    Ok(pattern) => compiled.push(pattern),
                    Err(error) => {
                        let field = format!("{field}[{index}]");
                        problems.push(ProjectProblem { field, reason: error.to_string() });
                        // What was to be forbidden cannot be known, so everything is.
                        compiled.extend(denies.then_some(Pattern {
                            group: Glob::everything(),
                            kind: Glob::everything(),
                            name: None,
                        }));
                    }
                }
            }
            compiled
        };
        Self {
            cluster_allowed: list(&rules.cluster_kinds_allowed, "clusterResourceWhitelist", false),
            cluster_denied: list(&rules.cluster_kinds_denied, "clusterResourceBlacklist", true),
            namespaced_allowed: rules
                .namespaced_kinds_allowed
                .as_ref()
                .map(|patterns| list(patterns, "namespaceResourceWhitelist", false)),
            namespaced_denied: list(&rules.namespaced_kinds_denied, "namespaceResourceBlacklist", true),
        }
    }

    pub(super) fn permit(&self, kind: &GroupKind, name: &str, namespaced: bool) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(kind, name));
        let other_groups: Vec<GroupKind> =
            other_groups(kind).iter().map(|group| GroupKind::new(*group, kind.kind.as_str())).collect();
        let denies = |patterns: &[Pattern]| {
            any(patterns)
                || other_groups.iter().any(|same| patterns.iter().any(|pattern| pattern.matches(same, name)))
        };
        if namespaced {
            self.namespaced_allowed.as_deref().is_none_or(any) && !denies(&self.namespaced_denied)
        } else {
            any(&self.cluster_allowed) && !denies(&self.cluster_denied)
        }
    }
}

/// Other API groups in which the API server serves the same objects. A kind that is forbidden in one of them is forbidden
/// in all: the object is the same.
fn other_groups(kind: &GroupKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Event") => &["events.k8s.io"],
        ("events.k8s.io", "Event") => &[""],
        ("extensions", "Deployment" | "DaemonSet" | "ReplicaSet") => &["apps"],
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet")
        | ("networking.k8s.io", "Ingress" | "NetworkPolicy")
        | ("policy", "PodSecurityPolicy") => &["extensions"],
        ("extensions", "Ingress" | "NetworkPolicy") => &["networking.k8s.io"],
        ("extensions", "PodSecurityPolicy") => &["policy"],
        _ => &[],
    }
}
