//! Which apps a push to a repository affects.
//!
//! As in Argo CD, a push affects a source if its address means the same repository, whatever the transport, and if it
//! follows the branch or tag that was pushed. An app that names the paths it is rendered from
//! (`manifest-generate-paths`) is affected only if one of them changed.

use plumb_core::app::{App, Source};
use plumb_core::glob::Glob;
use plumb_core::version::{Constraint, Version};

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
}

impl Push {
    /// True if the push affects an app.
    pub(crate) fn affects(&self, app: &App) -> bool {
        app.sources.iter().any(|source| {
            self.moves_revision_of(source) && self.is_from(&source.repo_url) && self.touches(app, source)
        })
    }

    fn is_from(&self, repo_url: &str) -> bool {
        let Some(wanted) = RepositoryAddress::of(repo_url) else { return false };
        self.repositories.iter().filter_map(|url| RepositoryAddress::of(url)).any(|address| address == wanted)
    }

    fn moves_revision_of(&self, source: &Source) -> bool {
        let wanted = source.target_revision.as_deref().unwrap_or_default();
        if matches!(wanted, "" | "HEAD") {
            return self.touches_default;
        }
        let short = short_name(wanted);
        if self.revisions.iter().any(|revision| revision == short) {
            return true;
        }
        let Some(constraint) = Constraint::parse(wanted) else { return false };
        let prefix = source.tag_prefix.as_deref().unwrap_or_default();
        let versions = self.revisions.iter().filter_map(|revision| revision.strip_prefix(prefix));
        versions.filter_map(Version::parse).any(|version| constraint.matches(&version))
    }

    fn touches(&self, app: &App, source: &Source) -> bool {
        let Some(paths) = app.annotations.get(GENERATE_PATHS).filter(|paths| !paths.trim().is_empty()) else {
            return true;
        };
        if self.changed_files.is_empty() {
            return true;
        }
        let folder = source.path.as_deref().unwrap_or_default();
        paths.split(';').map(str::trim).filter(|path| !path.is_empty()).any(|path| {
            let whole = match path.strip_prefix('/') {
                Some(absolute) => clean(absolute),
                None => clean(&format!("{folder}/{path}")),
            };
            let glob = Glob::path(&whole).ok();
            self.changed_files.iter().map(|file| clean(file)).any(|file| {
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
#[derive(Debug, PartialEq, Eq)]
struct RepositoryAddress {
    host: String,
    path: String,
}

impl RepositoryAddress {
    fn of(url: &str) -> Option<Self> {
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

    fn push(revisions: &[&str], touches_default: bool, files: &[&str]) -> Push {
        Push {
            repositories: vec!["https://git.example.com/team/repo".to_owned()],
            revisions: revisions.iter().map(|&revision| revision.to_owned()).collect(),
            touches_default,
            changed_files: files.iter().map(|&file| file.to_owned()).collect(),
        }
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
