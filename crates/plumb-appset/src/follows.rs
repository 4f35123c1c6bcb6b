//! What a set follows outside of the cluster: which reports of Git servers concern it.

use std::collections::BTreeSet;

use plumb_crd::application_set::PullRequestGenerator;
use serde::{Deserialize, Serialize};

/// A provider of pull requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Provider {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
    /// Bitbucket Server.
    BitbucketServer,
    /// Bitbucket Cloud.
    BitbucketCloud,
    /// Azure DevOps.
    AzureDevOps,
}

/// A repository with pull requests: as a generator names it, or as a report names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestsOf {
    /// Its provider.
    pub provider: Provider,
    /// Host of the provider's API; empty if it is not known, or if there is only one.
    pub host: String,
    /// Organisation, workspace or project. Empty for GitLab.
    pub owner: String,
    /// The repository. For GitLab the path of the project, or its number.
    pub repo: String,
    /// The number of a GitLab project, in a report.
    pub number: Option<u64>,
}

impl RequestsOf {
    /// The repository of a generator.
    pub fn of(generator: &PullRequestGenerator) -> Option<Self> {
        let place = |provider, api: &str, owner: &str, repo: &str| Self {
            provider,
            host: host(api),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            number: None,
        };
        let or = |api: &str, usual: &str| if api.is_empty() { usual.to_owned() } else { api.to_owned() };
        if let Some(github) = &generator.github {
            let api = or(&github.api, "https://api.github.com");
            return Some(place(Provider::GitHub, &api, &github.owner, &github.repo));
        }
        if let Some(gitlab) = &generator.gitlab {
            let api = or(&gitlab.api, "https://gitlab.com");
            return Some(place(Provider::GitLab, &api, "", &gitlab.project));
        }
        if let Some(gitea) = &generator.gitea {
            return Some(place(Provider::Gitea, &gitea.api, &gitea.owner, &gitea.repo));
        }
        if let Some(server) = &generator.bitbucket_server {
            return Some(place(Provider::BitbucketServer, "", &server.project, &server.repo));
        }
        if let Some(cloud) = &generator.bitbucket {
            return Some(place(Provider::BitbucketCloud, "", &cloud.owner, &cloud.repo));
        }
        let azure = generator.azuredevops.as_ref()?;
        Some(place(Provider::AzureDevOps, "", &azure.project, &azure.repo))
    }

    /// True if a report is about the pull requests of this repository. GitHub and its like compare names without case,
    /// Azure DevOps with it.
    fn is_told_by(&self, report: &Self) -> bool {
        if self.provider != report.provider || self.host != report.host {
            return false;
        }
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        match self.provider {
            Provider::AzureDevOps => self.owner == report.owner && self.repo == report.repo,
            Provider::GitLab => {
                let is_number = report.number.is_some_and(|number| self.repo == number.to_string());
                is_number || (!report.repo.is_empty() && same(&self.repo, &report.repo))
            }
            Provider::GitHub | Provider::Gitea | Provider::BitbucketServer | Provider::BitbucketCloud => {
                same(&self.owner, &report.owner) && same(&self.repo, &report.repo)
            }
        }
    }
}

/// The host of a URL in lower case, without user and port.
pub fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => host,
        _ => host,
    };
    host.to_lowercase()
}

/// What a set follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Follows {
    /// Repositories with the revision that is read.
    pub git: BTreeSet<(String, String)>,
    /// Repositories whose pull requests are read.
    pub pull_requests: BTreeSet<RequestsOf>,
    /// A plugin that may know more after any report.
    pub plugin: bool,
}

impl Follows {
    /// True if a report about the pull requests of a repository concerns the set.
    pub fn requests_of(&self, report: &RequestsOf) -> bool {
        self.pull_requests.iter().any(|followed| followed.is_told_by(report))
    }
}

#[cfg(test)]
mod tests {
    use plumb_crd::wire::Wire as _;
    use serde_json::{Value, json};

    use super::*;

    fn followed(generator: &Value) -> RequestsOf {
        RequestsOf::of(&PullRequestGenerator::read(generator).unwrap()).unwrap()
    }

    fn report(provider: Provider, host: &str, owner: &str, repo: &str, number: Option<u64>) -> RequestsOf {
        RequestsOf { provider, host: host.to_owned(), owner: owner.to_owned(), repo: repo.to_owned(), number }
    }

    #[test]
    fn a_report_concerns_the_generator_of_the_same_repository() {
        let github = report(Provider::GitHub, "api.github.com", "Org", "repo", None);
        let gitlab = report(Provider::GitLab, "gitlab.com", "", "grp/proj", Some(77));
        let azure = report(Provider::AzureDevOps, "", "proj", "repo", None);
        let cases = [
            (json!({"github": {"owner": "org", "repo": "REPO"}}), &github, true),
            (json!({"github": {"owner": "org", "repo": "other"}}), &github, false),
            (
                json!({"github": {"owner": "org", "repo": "repo", "api": "https://ghe.example"}}),
                &github,
                false,
            ),
            (
                json!({"gitea": {"owner": "org", "repo": "repo", "api": "https://api.github.com"}}),
                &github,
                false,
            ),
            (json!({"gitlab": {"project": "77"}}), &gitlab, true),
            (json!({"gitlab": {"project": "grp/proj"}}), &gitlab, true),
            (json!({"gitlab": {"project": "78"}}), &gitlab, false),
            (json!({"gitlab": {"project": "77", "api": "https://git.example:8443/x"}}), &gitlab, false),
            (json!({"azuredevops": {"organization": "o", "project": "proj", "repo": "repo"}}), &azure, true),
            (json!({"azuredevops": {"organization": "o", "project": "Proj", "repo": "repo"}}), &azure, false),
        ];
        for (generator, report, expected) in cases {
            let follows =
                Follows { pull_requests: BTreeSet::from([followed(&generator)]), ..Follows::default() };
            assert_eq!(follows.requests_of(report), expected, "{generator}");
        }
    }

    #[test]
    fn a_host_has_no_port_and_no_user() {
        for (url, expected) in [
            ("https://GHE.example.com:8443/api/v3/", "ghe.example.com"),
            ("https://user@h/", "h"),
            ("h/x", "h"),
            ("", ""),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
