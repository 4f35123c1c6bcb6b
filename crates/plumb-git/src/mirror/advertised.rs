//! The refs that a server advertises.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::refs::is_branch_or_tag;
use crate::secret::hex;

/// The answer to `ls-remote`.
pub(super) struct Advertised {
    /// The branch that `HEAD` points to. Without it, `HEAD` is a commit.
    pub(super) head: Option<String>,
    pub(super) refs: BTreeMap<String, String>,
}

impl Advertised {
    /// Lines `ref: <target>\t<name>` and `<hash>\t<name>`. A `HEAD` that points to anything but a branch counts as a
    /// commit: what it points to is not mirrored.
    pub(super) fn parse(text: &str) -> Self {
        let mut advertised = Self { head: None, refs: BTreeMap::new() };
        for line in text.lines() {
            let Some((left, name)) = line.split_once('\t') else { continue };
            match left.strip_prefix("ref: ") {
                Some(target) if name == "HEAD" && target.starts_with("refs/heads/") => {
                    advertised.head = Some(target.to_owned());
                }
                Some(_) => {}
                None => {
                    advertised.refs.insert(name.to_owned(), left.to_owned());
                }
            }
        }
        advertised
    }

    /// True if `HEAD` is a commit, which must be fetched by itself.
    pub(super) fn is_detached(&self) -> bool {
        self.head.is_none() && self.refs.contains_key("HEAD")
    }

    /// Of these refs, those that the server has.
    pub(super) fn having(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        names.iter().filter(|name| self.refs.contains_key(*name)).cloned().collect()
    }

    /// Changes when anything that is mirrored changes: `HEAD`, branches, tags and these other refs.
    pub(super) fn digest(&self, others: &BTreeSet<String>) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.head.as_deref().unwrap_or_default());
        for (name, hash) in &self.refs {
            if name == "HEAD" || is_branch_or_tag(name) || others.contains(name) {
                hasher.update(format!("\n{hash} {name}"));
            }
        }
        hex(&hasher.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_points_elsewhere_is_a_commit() {
        let parse =
            |target: &str| Advertised::parse(&format!("ref: {target}\tHEAD\n1\tHEAD\n1\trefs/heads/main\n"));
        assert_eq!(parse("refs/heads/main").head.as_deref(), Some("refs/heads/main"));
        for target in ["refs/env/prod", "refs/replace/1", "refs/tags/v1", "main", "refs/plumb/head"] {
            let advertised = parse(target);
            assert_eq!(advertised.head, None, "{target}");
            assert!(advertised.is_detached(), "{target}");
        }
        assert!(!Advertised::parse("1\trefs/heads/main\n").is_detached());
    }

    #[test]
    fn only_what_is_mirrored_counts() {
        let text = "1\tHEAD\n1\trefs/heads/main\n2\trefs/pull/7/head\n3\trefs/tags/v1\n1\trefs/tags/v1^{}\n";
        let other = text.replace("2\trefs/pull", "4\trefs/pull");
        let (first, second) = (Advertised::parse(text), Advertised::parse(&other));
        assert_eq!(first.digest(&BTreeSet::new()), second.digest(&BTreeSet::new()));
        let asked = BTreeSet::from(["refs/pull/7/head".to_owned(), "refs/pull/8/head".to_owned()]);
        let others = first.having(&asked);
        assert_eq!(others, BTreeSet::from(["refs/pull/7/head".to_owned()]));
        assert_ne!(first.digest(&others), second.digest(&others));
    }
}
