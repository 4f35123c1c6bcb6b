//! GitHub.

use plumb_crd::application_set::{GithubPullRequests, GithubRepositories};
use serde_json::Value as Json;

use super::call::ScmFacts;
use super::client::{Client, Paging, ScmError, Trust, escape, names, text};
use super::filter::{Provider, has_labels};
use crate::facts::{PullRequest, Repository};

/// The address of the API: GitHub's own, or an installation's.
pub(super) fn base(api: &str) -> String {
    match api.trim_end_matches('/') {
        "" => "https://api.github.com".to_owned(),
        api if api.ends_with("/api/v3") || api == "https://api.github.com" => api.to_owned(),
        api => format!("{api}/api/v3"),
    }
}

pub(super) fn headers(token: Option<String>) -> Vec<(String, String)> {
    let mut headers = vec![
        ("Accept".to_owned(), "application/vnd.github.v3+json".to_owned()),
        ("X-GitHub-Api-Version".to_owned(), "2022-11-28".to_owned()),
    ];
    headers.extend(token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}"))));
    headers
}

/// The address of the API for a GitHub App, and its token: the app states who it is, and gets a token for the
/// installation.
pub(super) fn app_login(
    facts: &dyn ScmFacts,
    api: &str,
    secret_name: &str,
    owner: &str,
) -> Result<(String, Option<String>), ScmError> {
    let app = facts.github_app(secret_name)?;
    let own = base(&app.enterprise_base_url);
    // The statement goes only where the App belongs: whoever writes a set does not choose who gets it.
    if !api.is_empty() && base(api) != own {
        return Err(no(&format!(
            "the GitHub App of the Secret {secret_name} belongs to {own}, and not to {api}"
        )));
    }
    let base = own;
    let client = Client::new(facts, &base, headers(Some(app.statement)), Trust::default());
    let during = |error: ScmError| error.during(&format!("GitHub App of the Secret {secret_name}"));
    let installation = if let Some(id) = app.installation_id {
        id
    } else {
        let found = client.get(&format!("/orgs/{}/installation", escape(owner))).map_err(during)?;
        found["id"].as_u64().ok_or_else(|| during(no("its installation has no number")))?
    };
    let path = format!("/app/installations/{installation}/access_tokens");
    let granted = client.post(&path, "{}").map_err(during)?;
    let token = granted["token"].as_str().ok_or_else(|| during(no("the answer has no token")))?;
    Ok((base, Some(token.to_owned())))
}

fn no(what: &str) -> ScmError {
    ScmError::Failed(what.to_owned())
}

pub(super) struct Github<'a> {
    pub(super) client: Client<'a>,
    pub(super) generator: &'a GithubRepositories,
    pub(super) protocol: &'a str,
}

impl Github<'_> {
    fn place(repository: &Repository) -> String {
        format!("/repos/{}/{}", escape(&repository.organization), escape(&repository.repository))
    }
}

impl Provider for Github<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let organization = &self.generator.organization;
        let path = format!("/orgs/{}/repos?per_page=100", escape(organization));
        let found = self.client.pages(&path, &Paging::Link);
        let found =
            found.map_err(|error| error.during(&format!("error listing repositories for {organization}")))?;
        let url = match self.protocol {
            "" | "ssh" => "ssh_url",
            "https" => "clone_url",
            other => return Err(ScmError::Failed(format!("unknown clone protocol for GitHub {other}"))),
        };
        let kept = found
            .iter()
            .filter(|repository| !self.generator.exclude_archived_repos || repository["archived"] != true);
        Ok(kept
            .map(|repository| Repository {
                organization: text(&repository["owner"]["login"]),
                repository: text(&repository["name"]),
                repository_id: repository["id"].clone(),
                url: text(&repository[url]),
                branch: text(&repository["default_branch"]),
                sha: String::new(),
                labels: texts(&repository["topics"]),
            })
            .collect())
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let place = Self::place(repository);
        let of = |branch: &Json| Repository {
            branch: text(&branch["name"]),
            sha: text(&branch["commit"]["sha"]),
            ..repository.clone()
        };
        if self.generator.all_branches {
            let found = self.client.pages(&format!("{place}/branches?per_page=100"), &Paging::Link)?;
            return Ok(found.iter().map(of).collect());
        }
        match self.client.get(&format!("{place}/branches/{}", escape(&repository.branch))) {
            Ok(branch) => Ok(vec![of(&branch)]),
            // An empty repository.
            Err(ScmError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let path = path.split('/').map(escape).collect::<Vec<_>>().join("/");
        let place = Self::place(repository);
        self.client.exists(&format!("{place}/contents/{path}?ref={}", escape(&repository.branch)))
    }
}

pub(super) fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(text).collect()
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    generator: &GithubPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let (owner, repo) = (&generator.owner, &generator.repo);
    let path = format!("/repos/{}/{}/pulls?per_page=100", escape(owner), escape(repo));
    let found = client.pages(&path, &Paging::Link);
    let found =
        found.map_err(|error| error.during(&format!("error listing pull requests for {owner}/{repo}")))?;
    let pulls = found.iter().map(|pull| PullRequest {
        number: pull["number"].as_i64().unwrap_or_default(),
        title: text(&pull["title"]),
        branch: text(&pull["head"]["ref"]),
        target_branch: text(&pull["base"]["ref"]),
        head_sha: text(&pull["head"]["sha"]),
        labels: names(&pull["labels"], "name"),
        author: text(&pull["user"]["login"]),
    });
    Ok(pulls.filter(|pull| has_labels(pull, &generator.labels)).collect())
}
