//! Where manifests may come from.

use super::ProjectProblem;
use crate::glob::Glob;

/// `sourceRepos`: something must permit a repository and nothing may forbid it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    allowed: Vec<Glob>,
    denied: Vec<Glob>,
    /// A pattern that forbids could not be read, so everything is forbidden.
    closed: bool,
    /// One pattern permits every repository.
    permits_all: bool,
}

impl Sources {
    pub(super) fn compile(patterns: &[String], problems: &mut Vec<ProjectProblem>) -> Self {
        let mut sources = Self::default();
        for (index, pattern) in patterns.iter().enumerate() {
            let (denies, text) =
                pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
            sources.permits_all |= matches!(text.trim(), "*" | "**") && !denies;
            match Glob::url(&normalize_repo_url(text)) {
                Ok(glob) if denies => sources.denied.push(glob),
                Ok(glob) => sources.allowed.push(glob),
                Err(error) => {
                    sources.closed |= denies;
                    problems.push(ProjectProblem {
                        field: format!("sourceRepos[{index}]"),
                        reason: error.to_string(),
                    });
                }
            }
        }
        sources
    }

    /// True if every repository is permitted: one pattern is `*`, and none forbids.
    pub(super) fn permit_everything(&self) -> bool {
        self.permits_all && self.denied.is_empty() && !self.closed
    }

    pub(super) fn permit(&self, repo_url: &str) -> bool {
        let url = normalize_repo_url(repo_url);
        // A user name in the address does not make it another repository: a forbidden one stays forbidden.
        let without_user = url.split_once("://").and_then(|(scheme, rest)| {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (_, host) = host.rsplit_once('@')?;
            Some(format!("{scheme}://{host}{path}"))
        });
        let any = |globs: &[Glob], url: &str| globs.iter().any(|glob| glob.matches(url));
        let is_denied = any(&self.denied, &url) || without_user.is_some_and(|url| any(&self.denied, &url));
        !self.closed && !has_dot_segments(&url) && any(&self.allowed, &url) && !is_denied
    }
}

/// The form in which addresses of repositories are compared: lower case, without `.git`, `git@host:path` as
/// `git@host/path`, without `ssh://`.
pub fn normalize_repo_url(url: &str) -> String {
    let url = url.trim().to_lowercase();
    let url = url.strip_suffix(".git").unwrap_or(&url);
    if let Some(rest) = url.strip_prefix("ssh://") {
        return rest.to_owned();
    }
    let is_scp =
        !url.contains("://") && url.split_once('@').is_some_and(|(user, _)| !user.contains(['/', ':']));
    if is_scp { url.replacen(':', "/", 1) } else { url.to_owned() }
}

/// Does the address contain `.` or `..` as a step? Clients resolve such steps, so a pattern that matches the
/// text would not speak about the repository that is fetched.
pub fn has_dot_segments(url: &str) -> bool {
    let decoded =
        url.to_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    decoded.split(['/', '?', '#']).any(|step| step == ".." || step == ".")
}

/// The address as messages show it: without user and password. The user of an ssh address stays, since it is part of
/// where the repository is and no secret; its password does not.
pub fn shown_repo_url(url: &str) -> String {
    let url = url.trim();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    // A password may contain unescaped `/` and `@`, so everything that could belong to it is removed.
    let Some((user_info, place)) = rest.rsplit_once('@').filter(|_| !rest.starts_with('/')) else {
        return url.to_owned();
    };
    let first = rest.split(['/', '@']).next().unwrap_or_default();
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let has_password = first.split_once(':').is_some_and(|(_, text)| !is_port(text) || first == user_info);
    let is_in_path = user_info.contains('/') && !rest.split('/').next().unwrap_or_default().contains('@');
    if is_in_path && !has_password {
        return url.to_owned();
    }
    let is_ssh = scheme.is_empty() || scheme.contains("ssh");
    let user = first.split(':').next().unwrap_or_default();
    match (is_ssh, has_password) {
        (true, false) => url.to_owned(),
        (true, true) if scheme.is_empty() => place.to_owned(),
        (true, true) => format!("{scheme}://{user}@{place}"),
        (false, _) => format!("{scheme}://{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_not_shown() {
        for (url, expected) in [
            ("https://github.com/org/repo.git", "https://github.com/org/repo.git"),
            ("https://host:8443/org/repo@v2", "https://host:8443/org/repo@v2"),
            ("https://bob:s3cret@host/x", "https://host/x"),
            ("https://t0ken@host:8443/x", "https://host:8443/x"),
            ("https://bob:pa/ss@host/x", "https://host/x"),
            ("https://bob:pa/s@s@host/x", "https://host/x"),
            ("https://bob:p@ss/w@host/x", "https://host/x"),
            ("https://bob:12345@host/x", "https://host/x"),
            ("oci://u:p@registry/charts", "oci://registry/charts"),
            ("u:p@registry/charts", "registry/charts"),
            ("registry:5000/charts", "registry:5000/charts"),
            ("git@github.com:org/repo.git", "git@github.com:org/repo.git"),
            ("ssh://git@host:22/org/repo", "ssh://git@host:22/org/repo"),
            ("ssh://git:s3cret@host/org/repo", "ssh://git@host/org/repo"),
            ("/srv/git/a:b@c", "/srv/git/a:b@c"),
        ] {
            assert_eq!(shown_repo_url(url), expected, "{url}");
        }
    }

    #[test]
    fn spellings_of_one_repository() {
        let cases = [
            ("https://GitHub.com/Org/Repo.git", "https://github.com/org/repo"),
            (" https://github.com/org/repo ", "https://github.com/org/repo"),
            ("git@github.com:org/repo.git", "git@github.com/org/repo"),
            ("ssh://git@github.com/org/repo", "git@github.com/org/repo"),
            ("ssh://git@github.com:22/org/repo", "git@github.com:22/org/repo"),
            ("https://user:pass@github.com/org/repo", "https://user:pass@github.com/org/repo"),
            ("oci://ghcr.io/org/charts", "oci://ghcr.io/org/charts"),
            ("registry.example.com:5000/charts", "registry.example.com:5000/charts"),
            ("*", "*"),
        ];
        for (url, expected) in cases {
            assert_eq!(normalize_repo_url(url), expected, "{url}");
        }
    }

    #[test]
    fn dot_segments() {
        for url in [
            "https://h/a/../b",
            "https://h/a/%2e%2E/b",
            "https://h/a/..",
            "https://h/./a",
            r"https://h/a\..\b",
            "https://h/a%2f..%2fb",
        ] {
            assert!(has_dot_segments(url), "{url}");
        }
        for url in ["https://h/a..b", "https://h/...", "https://h.example.com/a.b/.github"] {
            assert!(!has_dot_segments(url), "{url}");
        }
    }
}
