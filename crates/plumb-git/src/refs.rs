//! Resolves what users write (`main`, `v1.*`, `3f2c1a9`) to a commit.

use std::collections::BTreeMap;

use plumb_core::app::{CommitId, Source};
use plumb_core::version::{Constraint, Version};

use crate::retry::Retry;

/// The revision that a source asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RevisionSpec {
    /// Branch, tag, hash, `refs/…`, constraint; empty is `HEAD`.
    pub revision: String,
    /// Only tags with this prefix count, and the rest of their name is the version.
    pub tag_prefix: Option<String>,
}

impl RevisionSpec {
    /// The revision of an Application's source.
    pub fn of(source: &Source) -> Self {
        Self {
            revision: source.target_revision.clone().unwrap_or_default(),
            tag_prefix: source.tag_prefix.clone().filter(|prefix| !prefix.is_empty()),
        }
    }

    /// A revision without tag prefix.
    pub fn new(revision: impl Into<String>) -> Self {
        Self { revision: revision.into(), tag_prefix: None }
    }
}

/// Why a revision cannot be resolved to a commit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// It could be read as an option, or has characters that a ref cannot have.
    #[error("revision {revision:?} is not a valid name of a branch, tag or commit")]
    Invalid {
        /// What was asked for.
        revision: String,
    },
    /// No branch, tag or commit of this name.
    #[error("revision `{revision}` is not a branch, tag or commit of {repository}{hint}")]
    NotFound {
        /// What was asked for.
        revision: String,
        /// Where.
        repository: String,
        /// Similar names.
        hint: String,
    },
    /// No tag satisfies the constraint.
    #[error("none of the {n_tags} version tags of {repository} satisfies `{revision}`{hint}")]
    NoVersion {
        /// What was asked for.
        revision: String,
        /// Where.
        repository: String,
        /// How many tags are versions.
        n_tags: usize,
        /// The newest one.
        hint: String,
    },
    /// A tag prefix needs a version or a constraint.
    #[error("revision `{revision}`: with tag prefix `{prefix}` it must be a version or a constraint")]
    PrefixWithoutVersion {
        /// What was asked for.
        revision: String,
        /// The prefix.
        prefix: String,
    },
    /// It is the prefix of more than one commit.
    #[error("revision `{revision}` is the prefix of more than one commit of {repository}; use more digits")]
    Ambiguous {
        /// What was asked for.
        revision: String,
        /// Where.
        repository: String,
    },
    /// It names a tree or a blob.
    #[error("revision `{revision}` of {repository} is not a commit")]
    NotACommit {
        /// What was asked for.
        revision: String,
        /// Where.
        repository: String,
    },
}

impl ResolveError {
    /// Never transient: the revision or the repository has to change.
    pub fn retry(&self) -> Retry {
        Retry::Permanent
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        "revision"
    }
}

/// The refs of a repository at one moment: full name to commit, tags peeled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefTable {
    pub(crate) refs: BTreeMap<String, String>,
    /// Full name of the branch that `HEAD` points to.
    pub(crate) head: Option<String>,
}

/// The result of looking up a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A commit, by a ref or its full hash.
    Commit(CommitId),
    /// The prefix of a hash, to be looked up in the object database.
    Prefix(String),
}

impl RefTable {
    /// The rules of Argo CD: a full hash as it is; then versions and constraints over tags; then names, short
    /// or full; then the prefix of a hash.
    pub(crate) fn resolve(&self, spec: &RevisionSpec, repository: &str) -> Result<Found, ResolveError> {
        let revision = spec.revision.trim();
        let revision = if revision.is_empty() { "HEAD" } else { revision };
        if !is_sane(revision) {
            return Err(ResolveError::Invalid { revision: revision.to_owned() });
        }
        if let Ok(commit) = revision.parse::<CommitId>() {
            return Ok(Found::Commit(commit));
        }
        let name = self.version_tag(spec, revision, repository)?.unwrap_or_else(|| revision.to_owned());
        if let Some(commit) = self.by_name(&name) {
            return Ok(Found::Commit(commit));
        }
        if revision.len() >= 7 && revision.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Found::Prefix(revision.to_ascii_lowercase()));
        }
        Err(ResolveError::NotFound {
            revision: revision.to_owned(),
            repository: repository.to_owned(),
            hint: self.similar(revision),
        })
    }

    /// Full name of the tag that a revision names, if it names a tag.
    pub(crate) fn tag_of(&self, spec: &RevisionSpec, repository: &str) -> Option<String> {
        let revision = spec.revision.trim();
        if revision.is_empty() || !is_sane(revision) || revision.parse::<CommitId>().is_ok() {
            return None;
        }
        let name = self.version_tag(spec, revision, repository).ok()?.unwrap_or_else(|| revision.to_owned());
        let (full, _) = self.entry(&name)?;
        full.starts_with("refs/tags/").then(|| full.clone())
    }

    /// The tag that a version or constraint means; `None` if the revision is neither.
    fn version_tag(
        &self,
        spec: &RevisionSpec,
        revision: &str,
        repository: &str,
    ) -> Result<Option<String>, ResolveError> {
        let prefix = spec.tag_prefix.as_deref().unwrap_or_default();
        if Version::parse(revision).is_some() {
            return Ok(Some(format!("{prefix}{revision}")));
        }
        let Some(constraint) = Constraint::parse(revision) else {
            return match &spec.tag_prefix {
                None => Ok(None),
                Some(prefix) => Err(ResolveError::PrefixWithoutVersion {
                    revision: revision.to_owned(),
                    prefix: prefix.clone(),
                }),
            };
        };
        let tags = || self.tags().filter_map(|tag| tag.strip_prefix(prefix));
        if let Some(tag) = constraint.newest(tags()) {
            return Ok(Some(format!("refs/tags/{prefix}{tag}")));
        }
        // A branch can also have the name `1.x`. As in Argo CD, a tag that satisfies the constraint comes
        // first.
        if self.by_name(revision).is_some() && spec.tag_prefix.is_none() {
            return Ok(None);
        }
        let versions: Vec<&str> = tags().filter(|tag| Version::parse(tag).is_some()).collect();
        let newest = Constraint::parse(">=0-0").and_then(|any| any.newest(versions.iter().copied()));
        Err(ResolveError::NoVersion {
            revision: revision.to_owned(),
            repository: repository.to_owned(),
            n_tags: versions.len(),
            hint: newest.map_or_else(String::new, |tag| format!("; the newest is `{prefix}{tag}`")),
        })
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.refs.keys().filter_map(|name| name.strip_prefix("refs/tags/"))
    }

    fn by_name(&self, name: &str) -> Option<CommitId> {
        self.entry(name).and_then(|(_, hash)| hash.parse().ok())
    }

    fn entry(&self, name: &str) -> Option<(&String, &String)> {
        let full = if name == "HEAD" { self.head.as_deref().unwrap_or("HEAD") } else { name };
        [full.to_owned(), format!("refs/{full}"), format!("refs/heads/{full}"), format!("refs/tags/{full}")]
            .iter()
            .find_map(|candidate| self.refs.get_key_value(candidate))
    }

    fn similar(&self, revision: &str) -> String {
        let wanted = revision.to_ascii_lowercase();
        let names: Vec<&str> = self
            .refs
            .keys()
            .filter_map(|name| name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")))
            .filter(|name| {
                let name = name.to_ascii_lowercase();
                name.contains(&wanted) || wanted.contains(&name) || (wanted == "master" && name == "main")
            })
            .take(3)
            .collect();
        if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) }
    }
}

/// True for characters that git allows in ref names or constraints need, and not for an option.
fn is_sane(revision: &str) -> bool {
    revision.len() <= 1024
        && !revision.starts_with('-')
        && !revision.contains("..")
        && !revision.contains("@{")
        && revision
            .bytes()
            .all(|byte| byte >= b' ' && byte != 0x7f && !matches!(byte, b':' | b'?' | b'[' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RefTable {
        let hash = |digit: char| digit.to_string().repeat(40);
        RefTable {
            refs: [
                ("refs/heads/main", '1'),
                ("refs/heads/release-1.x", '2'),
                ("refs/tags/v1.0.0", '3'),
                ("refs/tags/v1.10.0", '4'),
                ("refs/tags/v2.0.0-rc.1", '5'),
                ("refs/tags/web-1.0.0", '6'),
                ("refs/tags/web-1.2.0", '7'),
                ("refs/tags/nightly", '8'),
                ("refs/pull/7/head", '9'),
                ("refs/heads/1.x", 'b'),
                ("refs/heads/4.x", 'c'),
            ]
            .into_iter()
            .map(|(name, digit)| (name.to_owned(), hash(digit)))
            .collect(),
            head: Some("refs/heads/main".to_owned()),
        }
    }

    fn resolve(revision: &str, prefix: Option<&str>) -> String {
        let spec = RevisionSpec { revision: revision.to_owned(), tag_prefix: prefix.map(str::to_owned) };
        match table().resolve(&spec, "repo") {
            Ok(Found::Commit(commit)) => commit.as_str()[..1].to_owned(),
            Ok(Found::Prefix(prefix)) => format!("prefix {prefix}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn revisions_resolve_by_the_contract() {
        for (revision, expected) in [
            ("", "1"),
            ("HEAD", "1"),
            ("main", "1"),
            ("heads/main", "1"),
            ("refs/heads/main", "1"),
            ("release-1.x", "2"),
            ("v1.0.0", "3"),
            ("nightly", "8"),
            ("refs/pull/7/head", "9"),
            ("v1.*", "4"),
            ("^1.0", "4"),
            ("*", "4"),
            (">=2.0.0-0", "5"),
            ("abcdef1", "prefix abcdef1"),
            ("ABCDEF1", "prefix abcdef1"),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a"),
            ("1.x", "4"),
            ("4.x", "c"),
            ("3.x", "none of the 3 version tags of repo satisfies `3.x`; the newest is `v2.0.0-rc.1`"),
            ("v9.9.9", "revision `v9.9.9` is not a branch, tag or commit of repo"),
            ("master", "revision `master` is not a branch, tag or commit of repo; did you mean main?"),
        ] {
            assert_eq!(resolve(revision, None), expected, "{revision}");
        }
    }

    #[test]
    fn tag_prefixes_are_cut_off_before_comparing() {
        assert_eq!(resolve("1.x", Some("web-")), "7");
        assert_eq!(resolve("1.0.0", Some("web-")), "6");
        assert!(resolve("main", Some("web-")).contains("must be a version or a constraint"));
    }

    #[test]
    fn options_and_ranges_are_no_revisions() {
        for revision in ["--upload-pack=x", "-x", "a..b", "main@{1}", "a\nb", "a:b", "main\0"] {
            assert!(resolve(revision, None).contains("is not a valid name"), "{revision}");
        }
    }
}
