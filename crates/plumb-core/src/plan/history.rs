//! Repositories whose history was replaced since the last sync.
//!
//! Someone who pushes another history into a repository (a restored backup, the wrong remote) changes everything that apps
//! render from it. What such a commit lacks was not removed from Git by an author, so a user is asked before it is deleted.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::app::CommitId;
use crate::project::normalize_repo_url;

/// A source at one sync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceAtSync {
    /// Its address.
    pub repo_url: String,
    /// Branch, tag or constraint, as the Application has it.
    pub target_revision: String,
    /// True for a chart of a repository or registry, which has no history.
    pub is_chart: bool,
    /// The commit that was synced.
    pub revision: String,
}

/// The last full sync that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSync {
    /// What it synced. Empty if there was none.
    pub sources: Vec<SourceAtSync>,
    /// When it ended, if there was one.
    pub ended_at: Option<Timestamp>,
}

/// Two commits of one repository that a sync moves between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPair {
    /// The address of the repository, as the Application has it now.
    pub repo_url: String,
    /// The commit that was synced last.
    pub last: CommitId,
    /// The commit that is to be synced.
    pub present: CommitId,
}

/// The commits whose histories have to be compared. A source that a user changed (another repository, branch or tag) is
/// another history on purpose. So is a commit that the user names.
pub fn commit_pairs(last: &[SourceAtSync], present: &[SourceAtSync]) -> Vec<CommitPair> {
    let pair = |present: &SourceAtSync| {
        let is_same = |last: &&SourceAtSync| {
            !last.is_chart
                && normalize_repo_url(&last.repo_url) == normalize_repo_url(&present.repo_url)
                && last.target_revision.trim() == present.target_revision.trim()
        };
        let last = last.iter().find(is_same)?;
        let is_named = present.target_revision.trim().parse::<CommitId>().is_ok();
        if present.is_chart || is_named || last.revision == present.revision {
            return None;
        }
        Some(CommitPair {
            repo_url: present.repo_url.clone(),
            last: last.revision.parse().ok()?,
            present: present.revision.parse().ok()?,
        })
    };
    let mut pairs: Vec<CommitPair> = Vec::new();
    for pair in present.iter().filter_map(pair) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

/// A repository in which the commit of the last sync is not part of the history of the present one, and shares none with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacedHistory {
    /// The address of the repository, without credentials.
    pub repository: String,
    /// The commit that was synced last.
    pub last: String,
    /// The commit that is to be synced.
    pub present: String,
    /// True if the repository no longer has the commit that was synced last.
    pub is_gone: bool,
}

impl fmt::Display for ReplacedHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repository, last, present, is_gone } = self;
        let short = |commit: &str| commit.get(..7).unwrap_or(commit).to_owned();
        let (last, present) = (short(last), short(present));
        if *is_gone {
            write!(f, "commit {last}, which was synced last, is gone from {repository}")
        } else {
            write!(
                f,
                "commit {present} of {repository} has no ancestor in common with {last}, which was synced last"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    /// `address target commit`, and `chart` after it for a chart.
    fn sources(text: &str) -> Vec<SourceAtSync> {
        let source = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            SourceAtSync {
                repo_url: words[0].to_owned(),
                target_revision: words[1].to_owned(),
                revision: words[2].chars().next().map(commit).unwrap_or_default(),
                is_chart: words.len() > 3,
            }
        };
        text.split(',').filter(|line| !line.trim().is_empty()).map(source).collect()
    }

    #[test]
    fn only_the_same_source_has_a_history_to_compare() {
        for (last, present, expected) in [
            ("https://h/a main 1", "https://h/a main 2", "1-2"),
            ("https://h/a main 1", "https://h/A.git main 2", "1-2"),
            ("git@h:a main 1", "ssh://git@h/a main 2", "1-2"),
            ("https://h/a main 1", "https://h/a main 1", ""),
            ("", "https://h/a main 2", ""),
            ("https://h/a main 1", "https://h/b main 2", ""),
            ("https://h/a main 1", "https://h/a release 2", ""),
            ("https://h/a main 1", &format!("https://h/a {} 2", commit('2')), ""),
            (&format!("https://h/a {} 1", commit('2')), &format!("https://h/a {} 2", commit('2')), ""),
            ("https://h/a v1.* 1", "https://h/a v1.* 2", "1-2"),
            ("https://h/a 1.0 1 chart", "https://h/a 1.0 2 chart", ""),
            ("https://h/a main 1 chart", "https://h/a main 2", ""),
            ("https://h/a main 1,https://h/b main 2", "https://h/b main 3,https://h/a main 4", "2-3 1-4"),
            ("https://h/a main 1", "https://h/a main 2,https://h/a main 2", "1-2"),
        ] {
            let pairs = commit_pairs(&sources(last), &sources(present));
            let shown: Vec<String> = pairs
                .iter()
                .map(|pair| format!("{}-{}", &pair.last.as_str()[..1], &pair.present.as_str()[..1]))
                .collect();
            assert_eq!(shown.join(" "), expected, "{last} to {present}");
        }
    }

    #[test]
    fn a_version_of_a_chart_is_no_commit() {
        let source = |revision: &str| SourceAtSync {
            repo_url: "https://h/a".to_owned(),
            revision: revision.to_owned(),
            ..SourceAtSync::default()
        };
        assert_eq!(commit_pairs(&[source("1.0.0")], &[source("1.1.0")]), []);
    }
}
