//! The refs that a server advertises.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::secret::hex;

/// The local ref for the commit of a detached `HEAD`.
const DETACHED: &str = "refs/plumb/HEAD";

/// The answer to `ls-remote`.
pub(super) struct Advertised {
    pub(super) head: Option<String>,
    pub(super) refs: BTreeMap<String, String>,
}

impl Advertised {
    /// Lines `ref: <target>\t<name>` and `<hash>\t<name>`.
    pub(super) fn parse(text: &str) -> Self {
        let mut advertised = Self { head: None, refs: BTreeMap::new() };
        for line in text.lines() {
            let Some((left, name)) = line.split_once('\t') else { continue };
            match left.strip_prefix("ref: ") {
                Some(target) if name == "HEAD" => advertised.head = Some(target.to_owned()),
                Some(_) => {}
                None => {
                    advertised.refs.insert(name.to_owned(), left.to_owned());
                }
            }
        }
        // A detached `HEAD`, or a server too old to name its branch: any branch at the same commit will do,
        // else the commit alone.
        if advertised.head.is_none() {
            advertised.head = advertised.refs.get("HEAD").map(|commit| {
                let mut branches = advertised.refs.iter().filter(|(name, _)| name.starts_with("refs/heads/"));
                let branch = branches.find(|(_, hash)| *hash == commit);
                branch.map_or_else(|| DETACHED.to_owned(), |(name, _)| name.clone())
            });
        }
        advertised
    }
}

/// What to fetch besides branches and tags, and a hash of everything that is mirrored.
pub(super) struct Wanted {
    pub(super) refs: Vec<String>,
    pub(super) digest: String,
}

impl Wanted {
    /// `known` are the extra refs that every fetch includes, `extra` is the ref or commit of this request.
    pub(super) fn new(advertised: &Advertised, known: &[String], extra: Option<&str>) -> Self {
        let mut refs = wanted_refs(advertised, known);
        let digest = digest(advertised, &refs);
        refs.extend(extra.filter(|extra| !extra.starts_with("refs/")).map(str::to_owned));
        if advertised.head.as_deref() == Some(DETACHED) {
            refs.push("HEAD".to_owned());
        }
        Self { refs, digest }
    }
}

/// The extra refs that exist, and the extra commits.
fn wanted_refs(advertised: &Advertised, extra: &[String]) -> Vec<String> {
    extra
        .iter()
        .filter(|name| !name.starts_with("refs/") || advertised.refs.contains_key(*name))
        .filter(|name| !name.starts_with("refs/heads/") && !name.starts_with("refs/tags/"))
        .cloned()
        .collect()
}

/// Changes when anything that is mirrored changes.
fn digest(advertised: &Advertised, wanted: &[String]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(advertised.head.as_deref().unwrap_or_default());
    for (name, hash) in &advertised.refs {
        let counts = name == "HEAD"
            || name.starts_with("refs/heads/")
            || name.starts_with("refs/tags/")
            || wanted.contains(name);
        if counts {
            hasher.update(format!("\n{hash} {name}"));
        }
    }
    hex(&hasher.finalize())
}
