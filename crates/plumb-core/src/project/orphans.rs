//! Objects that belong to no app.

use super::{ProjectProblem, rules::OrphanPatterns};
use crate::glob::{Glob, NotAGlob};
use crate::object::ObjectKey;

/// How orphans are looked for.
#[derive(Clone, Debug)]
pub struct OrphanRules {
    warn: bool,
    ignore: Vec<Pattern>,
}

#[derive(Clone, Debug)]
struct Pattern {
    group: Glob,
    kind: Glob,
    name: Glob,
}

impl OrphanRules {
    pub(super) fn compile(patterns: &OrphanPatterns, problems: &mut Vec<ProjectProblem>) -> Self {
        let or_any = |text: &str| if text.is_empty() { Ok(Glob::everything()) } else { Glob::plain(text) };
        let mut ignore = Vec::new();
        for (index, pattern) in patterns.ignore.iter().enumerate() {
            let compiled = || -> Result<Pattern, NotAGlob> {
                Ok(Pattern {
                    group: Glob::plain(&pattern.group)?,
                    kind: or_any(&pattern.kind)?,
                    name: or_any(&pattern.name)?,
                })
            };
            match compiled() {
                Ok(pattern) => ignore.push(pattern),
                Err(error) => problems.push(ProjectProblem {
                    field: format!("orphanedResources.ignore[{index}]"),
                    reason: error.to_string(),
                }),
            }
        }
        Self { warn: patterns.warn, ignore }
    }

    /// Do apps get a warning?
    pub fn warns(&self) -> bool {
        self.warn
    }

    /// Is this object left alone: made by Kubernetes itself in every namespace, or on the project's list?
    pub fn ignores(&self, key: &ObjectKey) -> bool {
        let is_kubernetes_own = match (key.group.as_str(), key.kind.as_str(), key.name.as_str()) {
            ("", "Service", "kubernetes") => key.namespace.as_deref() == Some("default"),
            ("", "ServiceAccount", "default") | ("", "ConfigMap", "kube-root-ca.crt") => true,
            _ => false,
        };
        is_kubernetes_own
            || self.ignore.iter().any(|pattern| {
                pattern.kind.matches(&key.kind)
                    && pattern.group.matches(&key.group)
                    && pattern.name.matches(&key.name)
            })
    }
}
