//! Kinds that the settings leave out.

use crate::glob::Glob;
use crate::object::GroupKind;

/// One entry of `resource.exclusions` or `resource.inclusions`. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindRule {
    /// Globs on API groups.
    pub api_groups: Vec<String>,
    /// Exact kinds; `*` is any.
    pub kinds: Vec<String>,
    /// Globs on API server URLs.
    pub clusters: Vec<String>,
}

/// The kinds that the settings exclude.
#[derive(Clone, Debug)]
pub struct KindFilter {
    exclusions: Vec<Matcher>,
    inclusions: Vec<Matcher>,
}

impl KindFilter {
    /// Compiles the rules. Events, metrics and leases are always excluded: they come and go by the thousand and
    /// they do not belong in Git. In a cluster that any inclusion names, only what an inclusion matches is looked
    /// at; an exclusion wins over an inclusion.
    pub fn new(exclusions: &[KindRule], inclusions: &[KindRule]) -> Self {
        let rule = |groups: &[&str], kinds: &[&str]| KindRule {
            api_groups: groups.iter().map(|&group| group.to_owned()).collect(),
            kinds: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            clusters: Vec::new(),
        };
        let always = [
            rule(&["events.k8s.io", "metrics.k8s.io"], &[]),
            rule(&[""], &["Event"]),
            rule(&["coordination.k8s.io"], &["Lease"]),
        ];
        Self {
            exclusions: always.iter().chain(exclusions).map(Matcher::new).collect(),
            inclusions: inclusions.iter().map(Matcher::new).collect(),
        }
    }

    /// Is this kind left out in the cluster at this address?
    pub fn excludes(&self, kind: &GroupKind, server: &str) -> bool {
        let any = |rules: &[Matcher]| rules.iter().any(|rule| rule.matches(kind, server));
        let is_narrowed = self.inclusions.iter().any(|rule| rule.clusters.matches(server));
        any(&self.exclusions) || (is_narrowed && !any(&self.inclusions))
    }
}

/// No settings: only what is always excluded.
impl Default for KindFilter {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

#[derive(Clone, Debug)]
struct Matcher {
    api_groups: Patterns,
    /// Empty: any.
    kinds: Vec<String>,
    clusters: Patterns,
}

impl Matcher {
    fn new(rule: &KindRule) -> Self {
        Self {
            api_groups: Patterns::new(&rule.api_groups),
            kinds: rule.kinds.clone(),
            clusters: Patterns::new(&rule.clusters),
        }
    }

    fn matches(&self, kind: &GroupKind, server: &str) -> bool {
        let is_kind = |wanted: &String| wanted == "*" || *wanted == kind.kind;
        self.api_groups.matches(&kind.group)
            && (self.kinds.is_empty() || self.kinds.iter().any(is_kind))
            && self.clusters.matches(server)
    }
}

#[derive(Clone, Debug)]
enum Patterns {
    Anything,
    /// A glob that cannot be read matches nothing, as in Argo CD.
    OneOf(Vec<Glob>),
}

impl Patterns {
    fn new(globs: &[String]) -> Self {
        if globs.is_empty() {
            return Self::Anything;
        }
        Self::OneOf(globs.iter().filter_map(|glob| Glob::plain(glob).ok()).collect())
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::OneOf(globs) => globs.iter().any(|glob| glob.matches(text)),
        }
    }
}
