//! Reads what each sender reports about pull requests. Only sets follow these.

use plumb_engine::{Provider, RequestsOf};
use serde::Deserialize;

use super::lenient::{Maybe, Number, Text, parse};
use super::sender::Sender;

/// What a body says about pull requests.
pub(super) enum Report {
    /// The event is about something else.
    NotAboutRequests,
    /// Nothing changed that a generator reads.
    Nothing,
    Changed(RequestsOf),
}

/// The repository whose pull requests changed.
pub(super) fn read(sender: Sender, event: &str, body: &[u8]) -> Result<Report, String> {
    match sender {
        Sender::GitHub if event == "pull_request" => Ok(parse::<GitHubBody>(body)?.github()),
        // Gitea names each kind of change: `pull_request_sync`, `pull_request_label`.
        Sender::Gogs if event.starts_with("pull_request") => Ok(parse::<GitHubBody>(body)?.gitea()),
        Sender::GitLab if matches!(event, "Merge Request Hook" | "System Hook") => {
            Ok(parse::<GitLabBody>(body)?.report(event))
        }
        Sender::BitbucketCloud if event.starts_with("pullrequest:") => {
            Ok(parse::<BitbucketCloudBody>(body)?.report())
        }
        Sender::BitbucketServer if event.starts_with("pr:") => {
            Ok(parse::<BitbucketServerBody>(body)?.report())
        }
        Sender::AzureDevOps => Ok(parse::<AzureBody>(body)?.report()),
        Sender::GitHub
        | Sender::Gogs
        | Sender::GitLab
        | Sender::BitbucketCloud
        | Sender::BitbucketServer
        | Sender::Generic => Ok(Report::NotAboutRequests),
    }
}

fn text(text: &Text) -> String {
    text.to_owned_text().unwrap_or_default()
}

fn changed(provider: Provider, api: &Text, owner: &Text, repo: &Text) -> Report {
    let (owner, repo) = (text(owner), text(repo));
    if repo.is_empty() {
        return Report::Nothing;
    }
    Report::Changed(RequestsOf { provider, host: host(api), owner, repo, number: None })
}

fn host(url: &Text) -> String {
    url.get().map(plumb_engine::host).unwrap_or_default()
}

/// GitHub and Gitea.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GitHubBody {
    action: Text,
    repository: Maybe<GitHubRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitHubRepository {
    name: Text,
    owner: Maybe<GitHubOwner>,
    /// The repository in the API.
    url: Text,
    html_url: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitHubOwner {
    login: Text,
}

impl GitHubBody {
    fn github(&self) -> Report {
        let counts = matches!(
            self.action.get(),
            Some("opened" | "closed" | "synchronize" | "labeled" | "unlabeled" | "reopened")
        );
        let GitHubRepository { name, owner, url, .. } = &self.repository.0;
        if counts { changed(Provider::GitHub, url, &owner.0.login, name) } else { Report::Nothing }
    }

    fn gitea(&self) -> Report {
        let GitHubRepository { name, owner, html_url, .. } = &self.repository.0;
        changed(Provider::Gitea, html_url, &owner.0.login, name)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitLabBody {
    object_kind: Text,
    object_attributes: Maybe<GitLabAttributes>,
    project: Maybe<GitLabProject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitLabAttributes {
    action: Text,
    target_project_id: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitLabProject {
    web_url: Text,
    path_with_namespace: Text,
}

impl GitLabBody {
    fn report(&self, event: &str) -> Report {
        if event == "System Hook" && self.object_kind.get() != Some("merge_request") {
            return Report::NotAboutRequests;
        }
        let GitLabAttributes { action, target_project_id } = &self.object_attributes.0;
        let counts = matches!(action.get(), Some("open" | "close" | "reopen" | "update" | "merge"));
        let GitLabProject { web_url, path_with_namespace } = &self.project.0;
        let (repo, number) = (text(path_with_namespace), target_project_id.0);
        if !counts || (repo.is_empty() && number.is_none()) {
            return Report::Nothing;
        }
        let owner = String::new();
        Report::Changed(RequestsOf { provider: Provider::GitLab, host: host(web_url), owner, repo, number })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketCloudBody {
    repository: Maybe<FullName>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FullName {
    full_name: Text,
}

impl BitbucketCloudBody {
    fn report(&self) -> Report {
        let Some((owner, repo)) = self.repository.0.full_name.get().and_then(|name| name.split_once('/'))
        else {
            return Report::Nothing;
        };
        Report::Changed(RequestsOf {
            provider: Provider::BitbucketCloud,
            host: String::new(),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            number: None,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BitbucketServerBody {
    pull_request: Maybe<BitbucketServerRequest>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BitbucketServerRequest {
    to_ref: Maybe<BitbucketServerRef>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketServerRef {
    repository: Maybe<BitbucketServerRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketServerRepository {
    slug: Text,
    project: Maybe<BitbucketServerProject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BitbucketServerProject {
    key: Text,
}

impl BitbucketServerBody {
    fn report(&self) -> Report {
        let BitbucketServerRepository { slug, project } = &self.pull_request.0.to_ref.0.repository.0;
        changed(Provider::BitbucketServer, &Text::default(), &project.0.key, slug)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AzureBody {
    event_type: Text,
    resource: Maybe<AzureResource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AzureResource {
    repository: Maybe<AzureRepository>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AzureRepository {
    name: Text,
    project: Maybe<AzureProject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AzureProject {
    name: Text,
}

impl AzureBody {
    fn report(&self) -> Report {
        if !self.event_type.get().is_some_and(|event| event.starts_with("git.pullrequest.")) {
            return Report::NotAboutRequests;
        }
        let AzureRepository { name, project } = &self.resource.0.repository.0;
        changed(Provider::AzureDevOps, &Text::default(), &project.0.name, name)
    }
}
