//! Where manifests may come from.

use super::ProjectProblem;
use crate::glob::Glob;
use crate::source::RepoAddress;
use crate::text::{BLANK, is_secret_name};

/// `sourceRepos`: something must permit a repository and nothing may forbid it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    allowed: Vec<SourcePattern>,
    /// Registered for this project alone, without users.
    scoped: Vec<String>,
    denied: Vec<Glob>,
    /// A pattern that forbids could not be read, so everything is forbidden.
    closed: bool,
    /// One pattern permits every repository.
    permits_all: bool,
}

#[derive(Clone, Debug)]
struct SourcePattern {
    glob: Glob,
    /// The pattern speaks about users.
    names_user: bool,
    /// The pattern speaks about encoded slashes.
    names_encoded: bool,
}

impl Sources {
    /// `scoped` are the addresses of repositories that are registered for this project alone. One that cannot be taken apart
    /// permits nothing.
    pub(super) fn compile(
        patterns: &[String],
        scoped: &[String],
        problems: &mut Vec<ProjectProblem>,
    ) -> Self {
        let scoped = scoped.iter().filter_map(|url| Some(RepoAddress::parse(url).ok()?.without_user()));
        let mut sources = Self { scoped: scoped.collect(), ..Self::default() };
        for (index, pattern) in patterns.iter().enumerate() {
            let (denies, text) =
                pattern.strip_prefix('!').map_or((false, pattern.as_str()), |rest| (true, rest));
            sources.permits_all |= matches!(text.trim(), "*" | "**") && !denies;
            let normal = normal_pattern(text);
            // A wider pattern forbids more, a narrower one permits less.
            let normal = if denies { normal } else { within_host(&normal) };
            match Glob::url(&normal) {
                Ok(glob) if denies => sources.denied.push(glob),
                Ok(glob) => {
                    let (names_user, names_encoded) = (normal.contains('@'), normal.contains("%2f"));
                    sources.allowed.push(SourcePattern { glob, names_user, names_encoded });
                }
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

    /// What is judged is the address taken apart, which is what clients connect to. An address that cannot be taken apart
    /// is forbidden.
    pub(super) fn permit(&self, repo_url: &str) -> bool {
        let Ok(address) = RepoAddress::parse(repo_url) else { return false };
        let (normal, without_user) = (address.normal(), address.without_user());
        let place = address.place();
        let with_slashes = address.with_slashes();
        let is_allowed = self.allowed.iter().any(|pattern| {
            // `*` in `https://host*` must not take a host for a user, and in `https://host/*` not two steps for one.
            let both_readings = |url: &String| pattern.names_encoded || pattern.glob.matches(url);
            pattern.glob.matches(&normal)
                && (pattern.names_user || pattern.glob.matches(&without_user))
                && with_slashes.as_ref().is_none_or(both_readings)
        });
        // Another spelling does not make it another repository: a forbidden one stays forbidden.
        let is_denied =
            |glob: &Glob| [&normal, &without_user, &place].into_iter().any(|form| glob.matches(form));
        let is_permitted = is_allowed || self.scoped.contains(&without_user);
        !self.closed && is_permitted && !self.denied.iter().any(is_denied)
    }
}

/// The form in which addresses of repositories are compared: lower case, without `.git`, `git@host:path` as
/// `git@host/path`, without `ssh://` and without the usual port.
pub fn normalize_repo_url(url: &str) -> String {
    RepoAddress::parse(url).map_or_else(|_| normal_pattern(url), |address| address.normal())
}

/// The same for a pattern, which cannot be taken apart.
fn normal_pattern(pattern: &str) -> String {
    let text = pattern.trim().to_lowercase();
    let text = text.strip_suffix(".git").unwrap_or(&text);
    if let Some((scheme, rest)) = text.split_once("://") {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (is_ssh, port) = match scheme {
            "https" | "oci" => (false, ":443"),
            "http" => (false, ":80"),
            "ssh" | "git+ssh" | "ssh+git" => (true, ":22"),
            _ => (false, ""),
        };
        let authority = authority.strip_suffix(port).unwrap_or(authority);
        return if is_ssh { format!("{authority}{path}") } else { format!("{scheme}://{authority}{path}") };
    }
    let is_scp = text.split_once('@').is_some_and(|(user, _)| !user.contains(['/', ':']));
    if is_scp { text.replacen(':', "/", 1) } else { text.to_owned() }
}

/// A `**` before the end of a host stays inside the host: `https://**.example.com/charts` is about hosts below
/// example.com, not about a path of another host that ends in `.example.com`.
fn within_host(pattern: &str) -> String {
    let start = pattern.find("://").map_or(0, |index| index + 3);
    let (scheme, rest) = pattern.split_at(start);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_whole = host.trim_end_matches('*').find("**").is_none();
    if is_whole || host.contains(['{', '[', '\\']) {
        return pattern.to_owned();
    }
    let n_last = host.len() - host.trim_end_matches('*').len();
    let mut inner = host.trim_end_matches('*').to_owned();
    while inner.contains("**") {
        inner = inner.replace("**", "*");
    }
    format!("{scheme}{inner}{}{path}", "*".repeat(n_last))
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
            ("ssh://git@github.com:22/org/repo", "git@github.com/org/repo"),
            ("ssh://git@github.com:2222/org/repo", "git@github.com:2222/org/repo"),
            ("https://user:pass@github.com/org/repo", "https://user:pass@github.com/org/repo"),
            ("oci://registry.example.com/org/charts", "oci://registry.example.com/org/charts"),
            ("registry.example.com:5000/charts", "registry.example.com:5000/charts"),
            ("*", "*"),
        ];
        for (url, expected) in cases {
            assert_eq!(normalize_repo_url(url), expected, "{url}");
        }
    }

    fn permits(patterns: &[&str], url: &str) -> bool {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let mut problems = Vec::new();
        let permitted = Sources::compile(&patterns, &[], &mut problems).permit(url);
        assert_eq!(problems, [], "{patterns:?}");
        permitted
    }

    #[test]
    fn the_address_that_is_judged_is_the_address_that_is_sent() {
        for (pattern, url) in [
            ("http://h/team-a/**", "http://h/team-a/.\t./team-b"),
            ("http://h/team-a/**", "http://h/team-a/%2e%2e/team-b"),
            ("http://h/team-a/**", "http://h/team-a/%252e%252e/team-b"),
            ("http://*.corp.example/charts", "http://evil?.corp.example/charts"),
            ("http://*.corp.example/charts", "http://evil#.corp.example/charts"),
            ("http://*.corp.example/charts", "http://evil\\.corp.example/charts"),
            ("https://**.corp.example/charts", "https://evil.example/x.corp.example/charts"),
            ("https://a.corp.example*/x", "https://a.corp.example:80@evil.example/x"),
            ("https://a.corp.example**", "https://a.corp.example@evil.example/x"),
            ("git@host*/org/*", "git@host@evil.example:org/x"),
            ("https://h/*", "https://h/team-a%2fx"),
            ("https://h/team-a/*/x", "https://h/team-a/b%2fc/x"),
            ("https://h/a%2f*", "https://h/a%2fb/c"),
            ("https://h/a%2fb", "https://h/a/b"),
            ("https://h/a/b", "https://h/a%2fb"),
            ("https://h/a%2f*", "https://h/a%2f..%2fb"),
            ("https://h/a%2f*", "https://h/a%252f..%252fb"),
            ("http://10.0.0.1/**", "http://0xa.0.0.1/x"),
        ] {
            assert!(!permits(&[pattern], url), "{pattern} on {url:?}");
        }
    }

    #[test]
    fn honest_patterns_permit_what_they_did() {
        for (pattern, url) in [
            ("**", "https://h/a/b"),
            ("https://**", "https://h/a/b"),
            ("https://github.com**", "https://github.com/org/repo"),
            ("https://**.corp.example/charts", "https://a.b.corp.example/charts"),
            ("https://**/charts", "https://h/a/charts"),
            ("https://*.corp.example/charts", "https://tok@git.corp.example/charts"),
            ("https://*@host/x", "https://bob@host/x"),
            ("https://host:443/x", "https://host/x"),
            ("https://host/x", "https://host:443/x"),
            ("https://host/x", "https://Host./x"),
            ("git@github.com:org/*", "ssh://git@github.com:22/org/repo.git"),
            ("{https,http}://h/x", "https://h/x"),
            ("registry.example.com:5000/*", "registry.example.com:5000/charts"),
            ("file:///srv/git/*", "file:///srv/git/a"),
            ("*", "https://h/api/v4/projects/group%2Fproject/packages/helm/stable"),
            ("https://h/**", "https://h/api/v4/projects/group%2Fproject/packages/helm/stable"),
            (
                "https://h/api/v4/projects/group%2Fproject/packages/helm/*",
                "https://h/api/v4/projects/group%2fproject/packages/helm/stable",
            ),
            ("https://h/projects/group%2F*/helm", "https://h/projects/group%2Fproject/helm"),
        ] {
            assert!(permits(&[pattern], url), "{pattern} on {url}");
        }
    }

    #[test]
    fn a_repository_that_is_registered_for_the_project_is_permitted() {
        let scoped =
            ["https://h/team/app.git".to_owned(), "git@h:team/*".to_owned(), "not an address".to_owned()];
        for (patterns, url, expected) in [
            (&[][..], "https://h/team/app", true),
            (&[], "https://H/Team/app.git", true),
            (&[], "https://token@h/team/app", true),
            (&[], "https://h/team/app/other", false),
            (&[], "https://h/team", false),
            (&[], "http://h/team/app", false),
            (&[], "https://h:8443/team/app", false),
            (&[], "https://evil/h/team/app", false),
            // An address is not a pattern.
            (&[], "git@h:team/b", false),
            (&[], "not an address", false),
            (&["https://other/*"], "https://h/team/app", true),
            (&["*", "!https://h/team/*"], "https://h/team/app", false),
            (&["!["], "https://h/team/app", false),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let sources = Sources::compile(&patterns, &scoped, &mut Vec::new());
            assert_eq!(sources.permit(url), expected, "{patterns:?} {url}");
            assert!(!sources.permit_everything(), "{patterns:?}");
        }
    }

    #[test]
    fn another_spelling_does_not_get_round_a_veto() {
        for (veto, url) in [
            ("!https://h/secret/*", "https://h/secret/a/"),
            ("!https://h/secret/*", "https://h//secret/a"),
            ("!https://h/secret/*", "https://h/s%65cret/a"),
            ("!https://h/secret/*", "https://h/secret%2Fa"),
            ("!https://h/secret%2F*", "https://h/secret%2fa"),
            ("!https://h/secret/*", "https://u:p@h:443/secret/a"),
            ("!https://h/secret/*", "https://h./secret/a.git/"),
            ("!git@h:secret/*", "git+ssh://git@h/secret/a"),
            ("!http://127.0.0.1/**", "http://2130706433/a"),
        ] {
            assert!(!permits(&["*", veto], url), "{veto} on {url}");
        }
    }
}
