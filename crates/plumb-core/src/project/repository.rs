//! Where manifests may come from.

use super::ProjectProblem;
use crate::glob::Glob;
use crate::text::{BLANK, is_secret_name};

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

/// The address as messages, metrics and events show it: without user, password and the values of parameters that hold
/// secrets. The user of an ssh address stays, since it is part of where the repository is and no secret; its password
/// does not.
pub fn shown_repo_url(url: &str) -> String {
    let url = without_login(url.trim());
    let Some(start) = url.find(['?', '#']) else { return url };
    let mut shown = url[..start].to_owned();
    for part in url[start..].split_inclusive(['?', '#', '&', ';']) {
        let (value, end) = part.split_at(part.trim_end_matches(['?', '#', '&', ';']).len());
        match value.split_once('=') {
            Some((name, _)) if is_secret_name(name) || name.eq_ignore_ascii_case("key") => {
                shown.extend([name, "=", BLANK, end]);
            }
            Some(_) | None => shown.push_str(part),
        }
    }
    shown
}

/// The normalized address as a label of metrics: without credentials, and of bounded length.
pub fn repo_label(url: &str) -> String {
    normalize_repo_url(&shown_repo_url(url)).chars().take(LONGEST_LABEL).collect()
}

/// Longer addresses are cut in labels.
const LONGEST_LABEL: usize = 256;

fn without_login(url: &str) -> String {
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
            ("https://host/x?ref=v1&access_token=s3cret", "https://host/x?ref=v1&access_token=••••"),
            ("https://bob:s3cret@host/x?sig=s3cret#a", "https://host/x?sig=••••#a"),
            ("https://host/x#private_token=s3cret", "https://host/x#private_token=••••"),
        ] {
            assert_eq!(shown_repo_url(url), expected, "{url}");
        }
        assert_eq!(repo_label("https://Bob:s3cret@Host/X.git"), "https://host/x");
        assert_eq!(repo_label(&format!("https://host/{}", "x".repeat(1000))).len(), LONGEST_LABEL);
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
