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
    /// What must contain a commit that is given by its hash.
    pub hashes: HashRule,
}

/// What must contain a commit that is given by its hash. A server may also serve commits that are on none of its
/// branches: GitHub serves those of all forks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashRule {
    /// A branch, a tag, or one of these refs, which the same requester names in full.
    OnRefs(Vec<String>),
    /// Nothing: a commit of another repository, whose authors could also have added the files, contains the hash.
    OfSubmodule,
}

impl Default for HashRule {
    fn default() -> Self {
        Self::OnRefs(Vec::new())
    }
}

impl RevisionSpec {
    /// The revision of an Application's source.
    pub fn of(source: &Source) -> Self {
        Self {
            revision: source.target_revision.clone().unwrap_or_default(),
            tag_prefix: source.tag_prefix.clone().filter(|prefix| !prefix.is_empty()),
            ..Self::default()
        }
    }

    /// A revision without tag prefix.
    pub fn new(revision: impl Into<String>) -> Self {
        Self { revision: revision.into(), ..Self::default() }
    }

    /// The same, where a commit given by its hash may also be on one of these revisions, if they are full names of
    /// refs.
    #[must_use]
    pub fn or_on<'a>(self, revisions: impl IntoIterator<Item = &'a str>) -> Self {
        let revisions = revisions.into_iter().map(str::trim);
        let named = revisions.filter(|revision| is_other_ref(revision)).map(str::to_owned).collect();
        Self { hashes: HashRule::OnRefs(named), ..self }
    }

    /// The commit of a submodule.
    pub(crate) fn of_submodule(commit: impl Into<String>) -> Self {
        Self { revision: commit.into(), hashes: HashRule::OfSubmodule, ..Self::default() }
    }

    /// The refs besides branches and tags that this revision needs.
    pub(crate) fn other_refs(&self) -> Vec<&str> {
        let revision = self.revision.trim();
        let named = match &self.hashes {
            HashRule::OnRefs(named) => named.as_slice(),
            HashRule::OfSubmodule => &[],
        };
        let is_hash = revision.parse::<CommitId>().is_ok();
        let named = named.iter().map(String::as_str).filter(|_| is_hash);
        std::iter::once(revision).chain(named).filter(|name| is_other_ref(name)).collect()
    }
}

/// Refs that git or plumb uses for itself. They never name what a user wants to deploy, and some change what git
/// reads: `refs/replace/<hash>` is the content that git shows in place of that object.
const INTERNAL: [&str; 8] = [
    "refs/replace/",
    "refs/plumb/",
    "refs/bisect/",
    "refs/worktree/",
    "refs/rewritten/",
    "refs/prefetch/",
    "refs/bundles/",
    "refs/original/",
];

/// True for the full name of a ref that is neither a branch nor a tag, and that may be fetched.
fn is_other_ref(name: &str) -> bool {
    name.starts_with("refs/")
        && !is_branch_or_tag(name)
        && is_sane(name)
        && !is_internal(name)
        && gix::validate::reference::name(name.into()).is_ok()
}

/// True for the full name of a branch or tag.
pub(crate) fn is_branch_or_tag(name: &str) -> bool {
    name.starts_with("refs/heads/") || name.starts_with("refs/tags/")
}

fn is_internal(name: &str) -> bool {
    let name = format!("{}/", name.to_ascii_lowercase());
    INTERNAL.iter().any(|prefix| name.starts_with(prefix))
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
    /// A ref that git or plumb uses for itself.
    #[error(
        "revision `{revision}` is a ref that git or plumb uses for itself; name a branch, a tag or a commit"
    )]
    Internal {
        /// What was asked for.
        revision: String,
    },
    /// A commit that no branch or tag contains.
    #[error(
        "commit `{revision}` is on no branch or tag of {repository}; a server may also serve commits of forks, so \
         push it to a branch, or name the ref that contains it in full (such as refs/pull/7/head)"
    )]
    NotOnRefs {
        /// What was asked for.
        revision: String,
        /// Where.
        repository: String,
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
    /// Branches and tags.
    pub(crate) refs: BTreeMap<String, String>,
    /// The objects of annotated tags, by the full name of the tag.
    pub(crate) tag_objects: BTreeMap<String, String>,
    /// Other refs that a requester named in full. No other name leads to them.
    pub(crate) others: BTreeMap<String, String>,
    pub(crate) head: Head,
}

/// What `HEAD` of the server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Head {
    /// The server has none.
    #[default]
    Missing,
    /// A branch, by its full name.
    Branch(String),
    /// A commit.
    Detached(String),
}

/// The result of looking up a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The commit of a branch, of a tag or of `HEAD`.
    OnRefs(CommitId),
    /// The commit of another ref, which was named in full.
    OnOther(CommitId),
    /// A full hash.
    Hash(CommitId),
    /// The prefix of a hash, to be looked up in the object database.
    Prefix(String),
}

impl RefTable {
    /// The rules of Argo CD: a full hash as it is; then versions and constraints over tags; then branches, then tags,
    /// or a full name; then the prefix of a hash.
    pub(crate) fn resolve(&self, spec: &RevisionSpec, repository: &str) -> Result<Found, ResolveError> {
        let revision = spec.revision.trim();
        let revision = if revision.is_empty() { "HEAD" } else { revision };
        if !is_sane(revision) {
            return Err(ResolveError::Invalid { revision: revision.to_owned() });
        }
        if is_internal(revision) {
            return Err(ResolveError::Internal { revision: revision.to_owned() });
        }
        if let Ok(commit) = revision.parse::<CommitId>() {
            return Ok(Found::Hash(commit));
        }
        let name = self.version_tag(spec, revision, repository)?.unwrap_or_else(|| revision.to_owned());
        if let Some(commit) = self.by_name(&name) {
            return Ok(if is_other_ref(&name) { Found::OnOther(commit) } else { Found::OnRefs(commit) });
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
            // Tags are protected more often than branches: a branch must not take the place of a released version.
            let tag = format!("refs/tags/{prefix}{revision}");
            let is_tag = spec.tag_prefix.is_some() || self.refs.contains_key(&tag);
            return Ok(is_tag.then_some(tag));
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
        if let ("HEAD", Head::Detached(commit)) = (name, &self.head) {
            return commit.parse().ok();
        }
        self.entry(name).and_then(|(_, hash)| hash.parse().ok())
    }

    /// A full name means itself only, and a short name a branch or else a tag: the name of another ref must not be
    /// able to change what they mean.
    fn entry(&self, name: &str) -> Option<(&String, &String)> {
        if name == "HEAD" {
            let Head::Branch(branch) = &self.head else { return None };
            return self.refs.get_key_value(branch);
        }
        if name.starts_with("refs/") {
            return self.refs.get_key_value(name).or_else(|| self.others.get_key_value(name));
        }
        let branch = self.refs.get_key_value(&format!("refs/heads/{name}"));
        branch.or_else(|| self.refs.get_key_value(&format!("refs/tags/{name}")))
    }

    fn similar(&self, revision: &str) -> String {
        let wanted = revision.to_ascii_lowercase();
        let names: Vec<&str> = self
            .refs
            .keys()
            .filter_map(|name| name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")))
            .filter(|name| name.chars().all(is_plain))
            .filter(|name| {
                let name = name.to_ascii_lowercase();
                name.contains(&wanted) || wanted.contains(&name) || (wanted == "master" && name == "main")
            })
            .take(3)
            .collect();
        if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(", ")) }
    }
}

/// True for characters that a terminal shows as they are: not those that turn the direction of the text.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || character.is_ascii_graphic()
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
                ("refs/heads/1.x", 'b'),
                ("refs/heads/4.x", 'c'),
            ]
            .into_iter()
            .map(|(name, digit)| (name.to_owned(), hash(digit)))
            .collect(),
            tag_objects: BTreeMap::new(),
            others: [("refs/pull/7/head".to_owned(), hash('9'))].into(),
            head: Head::Branch("refs/heads/main".to_owned()),
        }
    }

    fn resolve(revision: &str, prefix: Option<&str>) -> String {
        resolve_in(&table(), revision, prefix)
    }

    fn resolve_in(table: &RefTable, revision: &str, prefix: Option<&str>) -> String {
        let tag_prefix = prefix.map(str::to_owned);
        let spec = RevisionSpec { tag_prefix, ..RevisionSpec::new(revision) };
        match table.resolve(&spec, "repo") {
            Ok(Found::OnRefs(commit) | Found::OnOther(commit)) => commit.as_str()[..1].to_owned(),
            Ok(Found::Hash(commit)) => format!("hash {}", &commit.as_str()[..1]),
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
            (
                "heads/main",
                "revision `heads/main` is not a branch, tag or commit of repo; did you mean main?",
            ),
            ("pull/7/head", "revision `pull/7/head` is not a branch, tag or commit of repo"),
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
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "hash a"),
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

    /// A server can have any of these refs, and every user who may push can make most of them.
    #[test]
    fn no_ref_changes_what_another_name_means() {
        let hash = |digit: char| digit.to_string().repeat(40);
        let honest = [("refs/heads/env/prod", '1'), ("refs/tags/v1.0.0", '2'), ("refs/heads/main", '3')];
        let hostile = [
            "refs/heads/refs/heads/env/prod",
            "refs/heads/heads/env/prod",
            "refs/heads/HEAD",
            "refs/tags/HEAD",
            "refs/tags/env/prod",
            "refs/tags/refs/tags/v1.0.0",
            "refs/heads/v1.0.0",
            "refs/heads/web-v1.0.0",
            "refs/heads/refs/heads/main",
            "refs/tags/main",
        ];
        let other = ["refs/env/prod", "refs/main", "refs/v1.0.0", "refs/HEAD", "refs/plumb/env/prod"];
        let honest = honest.into_iter().map(|(name, digit)| (name.to_owned(), hash(digit)));
        let table = RefTable {
            refs: honest.chain(hostile.map(|name| (name.to_owned(), hash('e')))).collect(),
            tag_objects: BTreeMap::new(),
            others: other.map(|name| (name.to_owned(), hash('e'))).into(),
            head: Head::Branch("refs/heads/main".to_owned()),
        };
        for (revision, expected) in [
            ("env/prod", "1"),
            ("refs/heads/env/prod", "1"),
            ("v1.0.0", "2"),
            ("v1.*", "2"),
            ("refs/tags/v1.0.0", "2"),
            ("main", "3"),
            ("HEAD", "3"),
            ("", "3"),
            ("refs/env/prod", "e"),
        ] {
            assert_eq!(resolve_in(&table, revision, None), expected, "{revision}");
        }
        assert_eq!(table.tag_of(&RevisionSpec::new("v1.0.0"), "repo").as_deref(), Some("refs/tags/v1.0.0"));
        assert!(resolve_in(&table, "v1.0.0", Some("web-")).contains("is not a branch, tag or commit"));
        let detached = RefTable { head: Head::Detached(hash('4')), ..table.clone() };
        assert_eq!(resolve_in(&detached, "HEAD", None), "4");
        let missing = RefTable { head: Head::Missing, ..table };
        assert!(resolve_in(&missing, "HEAD", None).contains("is not a branch, tag or commit"));
    }

    #[test]
    fn refs_of_git_and_plumb_are_no_revisions() {
        for revision in
            ["refs/replace/abc", "refs/replace", "refs/plumb/ref/1", "refs/Replace/abc", "refs/worktree/x"]
        {
            let said = resolve(revision, None);
            assert!(said.contains("uses for itself"), "{revision}: {said}");
            assert!(RevisionSpec::new(revision).other_refs().is_empty(), "{revision}");
        }
        for revision in [
            "refs/pull/7/head^{}",
            "refs/x/*",
            "refs/x/../y",
            "refs/x.lock",
            "refs/x//y",
            "refs/x/.y",
            "refs/",
        ] {
            assert!(RevisionSpec::new(revision).other_refs().is_empty(), "{revision}");
        }
        assert_eq!(RevisionSpec::new("refs/pull/7/head").other_refs(), ["refs/pull/7/head"]);
        let pinned = RevisionSpec::new("1".repeat(40)).or_on([
            "main",
            "refs/heads/x",
            "refs/replace/x",
            "refs/pull/8/head",
        ]);
        assert_eq!(pinned.other_refs(), ["refs/pull/8/head"]);
    }
}
