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
}

impl Sources {
    pub(super) fn compile(patterns: &[String], problems: &mut Vec<ProjectProblem>) -> Self {
        let mut sources = Self::default();
        for (index, pattern) in patterns.iter().enumerate() {
            let (denies, text) =
                pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
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

    pub(super) fn permit(&self, repo_url: &str) -> bool {
        let url = normalize_repo_url(repo_url);
        let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(&url));
        !self.closed && !has_dot_segments(&url) && any(&self.allowed) && !any(&self.denied)
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

#[cfg(test)]
mod tests {
    use super::*;

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
