//! Which clusters and namespaces a project permits.

use super::{ProjectProblem, ProjectRules};
use crate::glob::Glob;

/// One entry of `destinations`, as globs. A part that begins with `!` makes it an entry that forbids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DestinationPattern {
    /// Address of the API server; empty: the cluster is named.
    pub server: String,
    /// Name of the cluster; empty: the cluster is given by its address.
    pub name: String,
    /// Namespace.
    pub namespace: String,
}

/// A cluster that an app goes to, as it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetCluster<'cluster> {
    /// Address of its API server.
    pub server: &'cluster str,
    /// Its name.
    pub name: &'cluster str,
    /// The project it is registered for, if it is for one only.
    pub project: Option<&'cluster str>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Destinations {
    entries: Vec<PlaceRule>,
    only_scoped_clusters: bool,
    /// An entry that forbids could not be read, so everything is forbidden.
    closed: bool,
}

#[derive(Clone, Debug)]
struct PlaceRule {
    server: Option<Part>,
    name: Option<Part>,
    namespace: Part,
}

#[derive(Clone, Debug)]
enum Part {
    Allow(Glob),
    Deny(Glob),
}

/// What one part of an entry says about a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// It matches a pattern that permits.
    Match,
    /// It matches a pattern that forbids.
    Forbidden,
    /// It is outside a pattern that forbids.
    Spared,
    /// It does not match a pattern that permits.
    NoMatch,
}

impl Part {
    fn compile(text: &str) -> Result<Self, crate::glob::NotAGlob> {
        match text.strip_prefix('!') {
            Some(text) => Glob::plain(text).map(Self::Deny),
            None => Glob::plain(text).map(Self::Allow),
        }
    }

    fn judge(&self, value: &str) -> Word {
        match self {
            Self::Allow(glob) if glob.matches(value) => Word::Match,
            Self::Allow(_) => Word::NoMatch,
            Self::Deny(glob) if glob.matches(value) => Word::Forbidden,
            Self::Deny(_) => Word::Spared,
        }
    }
}

impl Destinations {
    pub(super) fn compile(rules: &ProjectRules, problems: &mut Vec<ProjectProblem>) -> Self {
        let mut destinations = Self { only_scoped_clusters: rules.only_scoped_clusters, ..Self::default() };
        for (index, pattern) in rules.destinations.iter().enumerate() {
            match PlaceRule::compile(pattern) {
                Ok(entry) => destinations.entries.push(entry),
                Err(error) => {
                    let denies = [&pattern.server, &pattern.name, &pattern.namespace];
                    destinations.closed |= denies.iter().any(|text| text.starts_with('!'));
                    problems.push(ProjectProblem {
                        field: format!("destinations[{index}]"),
                        reason: error.to_string(),
                    });
                }
            }
        }
        destinations
    }

    /// Something must permit the place and nothing may forbid it. A cluster that is registered for the
    /// project is permitted as a whole.
    pub(super) fn permit(&self, project: &str, cluster: &TargetCluster<'_>, namespace: &str) -> bool {
        let is_scoped = cluster.project == Some(project);
        if self.closed || (self.only_scoped_clusters && !is_scoped) {
            return false;
        }
        let permitted = is_scoped || self.entries.iter().any(|entry| entry.permits(cluster, namespace));
        permitted && !self.entries.iter().any(|entry| entry.forbids(cluster, namespace))
    }
}

impl PlaceRule {
    fn compile(pattern: &DestinationPattern) -> Result<Self, crate::glob::NotAGlob> {
        let optional = |text: &str| if text.is_empty() { Ok(None) } else { Part::compile(text).map(Some) };
        Ok(Self {
            server: optional(&pattern.server)?,
            name: optional(&pattern.name)?,
            namespace: Part::compile(&pattern.namespace)?,
        })
    }

    fn judge(&self, cluster: &TargetCluster<'_>, namespace: &str) -> (Option<Word>, Option<Word>, Word) {
        (
            self.server.as_ref().map(|part| part.judge(cluster.server)),
            self.name.as_ref().map(|part| part.judge(cluster.name)),
            self.namespace.judge(namespace),
        )
    }

    /// Only an entry without any `!` permits: that is what Argo CD's documentation says. Its code also lets
    /// an entry permit whatever its `!` part spares.
    fn permits(&self, cluster: &TargetCluster<'_>, namespace: &str) -> bool {
        let (server, name, namespace) = self.judge(cluster, namespace);
        let spared = |word: Option<Word>| matches!(word, Some(Word::Forbidden | Word::Spared));
        let matches = server == Some(Word::Match) || name == Some(Word::Match);
        matches && !spared(server) && !spared(name) && namespace == Word::Match
    }

    /// Forbids at least what Argo CD forbids. A forbidden name forbids whatever the namespace: Argo CD reads
    /// it so, and a rule about a boundary is not read more loosely here.
    fn forbids(&self, cluster: &TargetCluster<'_>, namespace: &str) -> bool {
        let (server, name, namespace) = self.judge(cluster, namespace);
        let is_ours = |word: Option<Word>| matches!(word, Some(Word::Match | Word::Spared | Word::Forbidden));
        name == Some(Word::Forbidden)
            || (server == Some(Word::Forbidden) && namespace != Word::NoMatch)
            || (namespace == Word::Forbidden && (is_ours(server) || is_ours(name)))
    }
}
