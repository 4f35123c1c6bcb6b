//! Which apps a push to a repository affects.
//!
//! As in Argo CD, a push affects a source if its address means the same repository, whatever the transport, and if it
//! follows the branch or tag that was pushed. An app that names the paths it is rendered from
//! (`manifest-generate-paths`) is affected only if one of them changed.

use std::collections::BTreeSet;
use std::fmt;

use plumb_appset::{Follows, RequestsOf};
use plumb_core::app::{App, Source};
use plumb_core::glob::Glob;
use plumb_core::version::{Constraint, Version};
use serde::{Deserialize, Serialize};

/// Annotation with the paths of the repository that an app is rendered from.
const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// What a Git server reports about a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// Addresses of the repository, one per transport.
    pub repositories: Vec<String>,
    /// The branches and tags that moved, without `refs/heads/` or `refs/tags/`.
    pub revisions: Vec<String>,
    /// True if the default branch moved, or if the server does not say.
    pub touches_default: bool,
    /// Files that changed; empty if the server does not list them.
    pub changed_files: Vec<String>,
    /// The repository whose pull requests changed; then this is no push.
    pub pull_requests: Option<RequestsOf>,
}

/// What moved in one repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepositoryPush {
    pub(crate) repository: RepositoryAddress,
    pub(crate) revisions: BTreeSet<String>,
    pub(super) touches_default: bool,
    /// Files that changed; `None` if any file may have changed.
    pub(crate) changed_files: Option<BTreeSet<String>>,
    /// Repositories whose pull requests changed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) pull_requests: BTreeSet<RequestsOf>,
    /// True if the sender is verified.
    pub(crate) verified: bool,
}

/// Most branches, tags and files that pushes to one repository are kept with.
const MOST_REVISIONS: usize = 1000;
const MOST_FILES: usize = 1000;
/// Longest name of a branch, a tag or a repository.
const LONGEST_NAME: usize = 512;
/// Most repositories with pull requests that reports are kept with. Few have the same address.
const MOST_REQUESTS: usize = 10;

fn is_short(report: &RequestsOf) -> bool {
    [&report.host, &report.owner, &report.repo].into_iter().all(|text| text.len() <= LONGEST_NAME)
}

impl Push {
    /// True if a set that follows this must generate again.
    pub fn concerns_set(&self, follows: &Follows) -> bool {
        self.clone().by_repository(false).iter().any(|push| push.concerns_set(follows))
    }
}

impl Push {
    /// The push by repository: one entry for all addresses that mean the same one.
    pub(crate) fn by_repository(self, verified: bool) -> Vec<RepositoryPush> {
        let mut addresses: BTreeSet<RepositoryAddress> =
            self.repositories.iter().filter_map(|url| RepositoryAddress::of(url)).collect();
        let pull_requests: BTreeSet<RequestsOf> = self.pull_requests.into_iter().filter(is_short).collect();
        // Sets find their repository by itself; the address only says which reports are merged.
        addresses.extend(pull_requests.iter().map(RepositoryAddress::of_requests));
        let files = &self.changed_files;
        let are_listed = !files.is_empty() && files.len() <= MOST_FILES;
        let changed_files: Option<BTreeSet<String>> = are_listed.then(|| files.iter().cloned().collect());
        let short = |name: &&String| name.len() <= LONGEST_NAME;
        let revisions: BTreeSet<String> =
            self.revisions.iter().filter(short).take(MOST_REVISIONS).cloned().collect();
        addresses
            .into_iter()
            .map(|repository| RepositoryPush {
                repository,
                revisions: revisions.clone(),
                touches_default: self.touches_default,
                changed_files: changed_files.clone(),
                pull_requests: pull_requests.clone(),
                verified,
            })
            .collect()
    }
}

impl RepositoryPush {
    /// True if the push affects an app.
    pub(crate) fn affects(&self, app: &App) -> bool {
        app.sources.iter().any(|source| {
            self.moves_revision_of(source)
                && RepositoryAddress::of(&source.repo_url).as_ref() == Some(&self.repository)
                && self.touches(app, source)
        })
    }

    /// The push, unless it exceeds the limits of what [`Push::by_repository`] makes.
    pub(super) fn within_limits(self) -> Option<Self> {
        let files_fit = self.changed_files.as_ref().is_none_or(|files| files.len() <= MOST_FILES);
        let requests_fit =
            self.pull_requests.len() <= MOST_REQUESTS && self.pull_requests.iter().all(is_short);
        (files_fit && requests_fit && self.revisions.len() <= MOST_REVISIONS).then_some(self)
    }

    /// Adds another push to the same repository.
    pub(super) fn merge(&mut self, other: Self) {
        self.touches_default |= other.touches_default;
        self.verified |= other.verified;
        let room = MOST_REVISIONS.saturating_sub(self.revisions.len());
        self.revisions.extend(other.revisions.into_iter().take(room));
        let room = MOST_REQUESTS.saturating_sub(self.pull_requests.len());
        self.pull_requests.extend(other.pull_requests.into_iter().take(room));
        self.changed_files = match (self.changed_files.take(), other.changed_files) {
            (Some(mut files), Some(more)) if files.len() + more.len() <= MOST_FILES => {
                files.extend(more);
                Some(files)
            }
            _ => None,
        };
    }

    /// True if a set that follows this must generate again.
    pub(crate) fn concerns_set(&self, follows: &Follows) -> bool {
        follows.plugin
            || follows.git.iter().any(|(url, revision)| self.moves(url, revision))
            || self.pull_requests.iter().any(|report| follows.requests_of(report))
    }

    /// True if the push moves this revision of this repository.
    fn moves(&self, repo_url: &str, revision: &str) -> bool {
        self.moves_revision(revision, "")
            && RepositoryAddress::of(repo_url).as_ref() == Some(&self.repository)
    }

    fn moves_revision_of(&self, source: &Source) -> bool {
        let wanted = source.target_revision.as_deref().unwrap_or_default();
        self.moves_revision(wanted, source.tag_prefix.as_deref().unwrap_or_default())
    }

    fn moves_revision(&self, wanted: &str, prefix: &str) -> bool {
        if matches!(wanted, "" | "HEAD") {
            return self.touches_default;
        }
        let short = short_name(wanted);
        if self.revisions.contains(short) {
            return true;
        }
        let Some(constraint) = Constraint::parse(wanted) else { return false };
        let versions = self.revisions.iter().filter_map(|revision| revision.strip_prefix(prefix));
        versions.filter_map(Version::parse).any(|version| constraint.matches(&version))
    }

    fn touches(&self, app: &App, source: &Source) -> bool {
        let Some(paths) = app.annotations.get(GENERATE_PATHS).filter(|paths| !paths.trim().is_empty()) else {
            return true;
        };
        let Some(changed_files) = &self.changed_files else { return true };
        let folder = source.path.as_deref().unwrap_or_default();
        paths.split(';').map(str::trim).filter(|path| !path.is_empty()).any(|path| {
            let whole = match path.strip_prefix('/') {
                Some(absolute) => clean(absolute),
                None => clean(&format!("{folder}/{path}")),
            };
            let glob = Glob::path(&whole).ok();
            changed_files.iter().map(|file| clean(file)).any(|file| {
                whole.is_empty()
                    || file == whole
                    || file.strip_prefix(&whole).is_some_and(|rest| rest.starts_with('/'))
                    || glob.as_ref().is_some_and(|glob| glob.matches(&file))
            })
        })
    }
}

/// `main` of `refs/heads/main`; a name with slashes keeps them.
pub fn short_name(reference: &str) -> &str {
    ["refs/heads/", "refs/tags/"]
        .iter()
        .find_map(|prefix| reference.strip_prefix(prefix))
        .unwrap_or(reference)
}

/// A path without `.`, `..` and empty segments.
fn clean(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// Host and path of a repository, whatever the transport, user and port. Some hosts have a separate name for ssh
/// (`ssh.github.com`, `altssh.bitbucket.org`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct RepositoryAddress {
    host: String,
    path: String,
}

/// Longer addresses do not name a repository.
const LONGEST_ADDRESS: usize = 2048;
/// How much of an address a log line shows.
const SHOWN: usize = 120;

/// For log lines: short, and without control characters, because any client may have written it.
impl fmt::Display for RepositoryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}/{}", self.host, self.path);
        let shown: String = text.chars().take(SHOWN).flat_map(char::escape_default).collect();
        f.write_str(&shown)
    }
}

impl RepositoryAddress {
    /// No real address has an empty segment, so this is never one of a push.
    fn of_requests(report: &RequestsOf) -> Self {
        let number = report.number.map(|number| number.to_string()).unwrap_or_default();
        let path = format!("//{:?}/{}/{}/{number}", report.provider, report.owner, report.repo);
        Self { host: report.host.clone(), path: path.to_lowercase() }
    }

    fn of(url: &str) -> Option<Self> {
        if url.len() > LONGEST_ADDRESS {
            return None;
        }
        let url = url.trim().to_lowercase();
        let (authority, path) = match url.split_once("://") {
            Some((_, rest)) => rest.split_once('/')?,
            None if url.starts_with('/') => ("", url.as_str()),
            // `git@host:path` and `host/path`
            None => url.split_once([':', '/'])?,
        };
        let host = authority.rsplit('@').next().unwrap_or(authority);
        let host = host.rsplit_once(':').map_or(host, |(host, port)| {
            if port.chars().all(|digit| digit.is_ascii_digit()) { host } else { authority }
        });
        let host = ["altssh.", "ssh."].iter().find_map(|prefix| host.strip_prefix(prefix)).unwrap_or(host);
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        (!path.is_empty()).then(|| Self { host: host.to_owned(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_crd::{Application, to_app};
    use serde_json::{Value, json};

    fn app(change: impl FnOnce(&mut Value)) -> App {
        let mut value = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd", "uid": "u"},
            "spec": {"project": "default",
                     "source": {"repoURL": "https://git.example.com/team/repo.git", "path": "apps/web"},
                     "destination": {"server": "https://kubernetes.default.svc", "namespace": "web"}},
        });
        change(&mut value);
        to_app(&Application::from_json(&value).unwrap()).unwrap()
    }

    fn push(revisions: &[&str], touches_default: bool, files: &[&str]) -> RepositoryPush {
        let push = Push {
            repositories: vec!["https://git.example.com/team/repo".to_owned()],
            revisions: revisions.iter().map(|&revision| revision.to_owned()).collect(),
            touches_default,
            changed_files: files.iter().map(|&file| file.to_owned()).collect(),
            pull_requests: None,
        };
        push.by_repository(true).remove(0)
    }

    #[test]
    fn pushes_to_one_repository_are_merged_and_bounded() {
        let urls =
            ["https://git.example.com/team/repo.git", "git@git.example.com:team/repo", "https://h/other"];
        let both = Push { repositories: urls.map(str::to_owned).to_vec(), ..Push::default() };
        assert_eq!(both.by_repository(false).len(), 2, "two addresses mean the same repository");
        let mut merged = push(&["a"], false, &["x"]);
        merged.merge(push(&["b"], true, &["y"]));
        assert_eq!((merged.revisions.len(), merged.touches_default), (2, true));
        assert_eq!(merged.changed_files.as_ref().map(BTreeSet::len), Some(2));
        merged.merge(push(&["b"], false, &[]));
        assert_eq!(merged.changed_files, None, "any file may have changed");
        for n in 0..3000 {
            merged.merge(push(&[&format!("r{n}")], false, &[]));
        }
        assert_eq!(merged.revisions.len(), 1000);
        let long = Push { repositories: vec![format!("https://h/{}", "x".repeat(5000))], ..Push::default() };
        assert!(long.by_repository(false).is_empty());
    }

    #[test]
    fn an_address_in_the_log_is_short_and_has_no_control_characters() {
        let address =
            RepositoryAddress::of(&format!("https://h/a\n\u{1b}[2K\u{202e}{}", "x".repeat(900))).unwrap();
        let shown = address.to_string();
        assert!(shown.starts_with("h/a\\n\\u{1b}[2k\\u{202e}xx") && shown.len() < 200, "{shown}");
    }

    #[test]
    fn one_repository_has_many_addresses() {
        let push = push(&["main"], true, &[]);
        for url in [
            "https://git.example.com/team/repo.git",
            "https://git.example.com/team/repo",
            "https://someone@git.example.com:8443/Team/Repo.git",
            "ssh://git@git.example.com:2222/team/repo.git",
            "ssh://git@ssh.git.example.com/team/repo",
            "git@git.example.com:team/repo.git",
            "git.example.com/team/repo",
        ] {
            assert!(push.affects(&app(|app| app["spec"]["source"]["repoURL"] = json!(url))), "{url}");
        }
        for url in [
            "https://git.example.com/team/other.git",
            "https://git.example.com/team/repo-two",
            "https://example.com/git.example.com/team/repo",
            "https://other.example.com/team/repo",
            "file:///srv/team/repo",
        ] {
            assert!(!push.affects(&app(|app| app["spec"]["source"]["repoURL"] = json!(url))), "{url}");
        }
    }

    #[test]
    fn a_push_affects_sources_that_follow_its_revision() {
        let at = |revision: &str| {
            let revision = revision.to_owned();
            app(move |app| app["spec"]["source"]["targetRevision"] = json!(revision))
        };
        let default = push(&["main"], true, &[]);
        let branch = push(&["feature/x"], false, &[]);
        let tag = push(&["v1.4.2"], false, &[]);
        assert!(default.affects(&at("HEAD")) && default.affects(&at("")) && default.affects(&at("main")));
        assert!(!default.affects(&at("v1.*")) && !branch.affects(&at("HEAD")));
        assert!(branch.affects(&at("feature/x")) && branch.affects(&at("refs/heads/feature/x")));
        assert!(!branch.affects(&at("x")), "the full name must match");
        assert!(tag.affects(&at("v1.4.2")) && tag.affects(&at("1.4.*")) && tag.affects(&at(">=1.0.0")));
        assert!(!tag.affects(&at("2.*")));
        let prefixed = app(|app| {
            app["spec"]["source"]["targetRevision"] = json!("1.*");
            app["spec"]["source"]["tagPrefix"] = json!("web-");
        });
        assert!(push(&["web-1.3.0"], false, &[]).affects(&prefixed));
        assert!(!push(&["db-1.3.0"], false, &[]).affects(&prefixed));
    }

    #[test]
    fn only_changes_in_the_annotated_paths_affect_an_app() {
        let with = |paths: &str| {
            let paths = paths.to_owned();
            app(move |app| app["metadata"]["annotations"] = json!({GENERATE_PATHS: paths}))
        };
        let changed = push(&["main"], true, &["apps/web/deployment.yaml"]);
        assert!(changed.affects(&with(".")) && changed.affects(&with("/apps")));
        assert!(changed.affects(&with("../web")) && changed.affects(&with("/apps/*/*.yaml")));
        assert!(changed.affects(&with("/")) && changed.affects(&with("/other;.")));
        assert!(!changed.affects(&with("/other")) && !changed.affects(&with("../we")));
        assert!(changed.affects(&with("")), "an empty annotation is ignored");
        assert!(
            push(&["main"], true, &[]).affects(&with("/other")),
            "without a list, any file may have changed"
        );
    }
}
