//! Bitbucket Cloud.

use plumb_crd::application_set::{BitbucketPullRequests, BitbucketRepositories};
use serde_json::Value as Json;

use super::client::{Client, ScmError, escape, is_below, text};
use super::filter::Provider;
use crate::facts::{PullRequest, Repository};

/// Most pages of one list.
const MOST_PAGES: usize = 200;

pub(super) fn base(api: &str) -> String {
    if api.is_empty() {
        "https://api.bitbucket.org/2.0".to_owned()
    } else {
        api.trim_end_matches('/').to_owned()
    }
}

pub(super) struct Bitbucket<'a> {
    pub(super) client: Client<'a>,
    pub(super) base: String,
    pub(super) generator: &'a BitbucketRepositories,
    pub(super) protocol: &'a str,
}

/// All values of a list. `next` is a whole URL, and must be on the same server.
fn pages(client: &Client<'_>, base: &str, path: &str) -> Result<Vec<Json>, ScmError> {
    let mut next = path.to_owned();
    let mut items = Vec::new();
    for _ in 0..MOST_PAGES {
        let page = client.get(&next)?;
        let values = page["values"].as_array();
        let values =
            values.ok_or_else(|| ScmError::Failed(format!("GET {base}{next}: the answer has no list")))?;
        items.extend(values.iter().cloned());
        match page["next"].as_str() {
            None => return Ok(items),
            Some(url) => {
                let path = url.strip_prefix(base).filter(|_| is_below(url, base));
                let other =
                    || ScmError::Failed(format!("GET {base}{next}: the next page is on another server"));
                next = path.ok_or_else(other)?.to_owned();
            }
        }
    }
    Err(ScmError::Failed(format!("GET {base}{path}: the list has more than {MOST_PAGES} pages")))
}

impl Bitbucket<'_> {
    fn place(&self, repository: &Repository) -> String {
        format!("/repositories/{}/{}", escape(&self.generator.owner), escape(&repository.repository))
    }
}

impl Provider for Bitbucket<'_> {
    fn repositories(&self) -> Result<Vec<Repository>, ScmError> {
        let owner = &self.generator.owner;
        let path = format!("/repositories/{}?role=member&pagelen=100", escape(owner));
        let found = pages(&self.client, &self.base, &path)?;
        let name = match self.protocol {
            "" | "ssh" => "ssh",
            "https" => "https",
            other => {
                return Err(ScmError::Failed(format!("unknown clone protocol for Bitbucket cloud {other}")));
            }
        };
        Ok(found
            .iter()
            .map(|item| {
                let mut links = item["links"]["clone"].as_array().into_iter().flatten();
                Repository {
                    organization: owner.clone(),
                    repository: text(&item["slug"]),
                    repository_id: item["uuid"].clone(),
                    url: links
                        .find(|link| link["name"] == name)
                        .map(|link| text(&link["href"]))
                        .unwrap_or_default(),
                    branch: text(&item["mainbranch"]["name"]),
                    ..Repository::default()
                }
            })
            .collect())
    }

    fn branches(&self, repository: &Repository) -> Result<Vec<Repository>, ScmError> {
        let place = self.place(repository);
        let of = |branch: &Json| Repository {
            branch: text(&branch["name"]),
            sha: text(&branch["target"]["hash"]),
            ..repository.clone()
        };
        if self.generator.all_branches {
            let found = pages(&self.client, &self.base, &format!("{place}/refs/branches?pagelen=100"))?;
            return Ok(found.iter().map(of).collect());
        }
        match self.client.get(&format!("{place}/refs/branches/{}", escape(&repository.branch))) {
            Ok(branch) => Ok(vec![of(&branch)]),
            Err(ScmError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn has_path(&self, repository: &Repository, path: &str) -> Result<bool, ScmError> {
        let path = path.split('/').map(escape).collect::<Vec<_>>().join("/");
        let place = self.place(repository);
        self.client.exists(&format!("{place}/src/{}/{path}?format=meta", escape(&repository.sha)))
    }
}

pub(super) fn pull_requests(
    client: &Client<'_>,
    base: &str,
    generator: &BitbucketPullRequests,
) -> Result<Vec<PullRequest>, ScmError> {
    let path =
        format!("/repositories/{}/{}/pullrequests/", escape(&generator.owner), escape(&generator.repo));
    let found = pages(client, base, &path)?;
    let pulls = found.iter().map(|pull| PullRequest {
        number: pull["id"].as_i64().unwrap_or_default(),
        title: text(&pull["title"]),
        branch: text(&pull["source"]["branch"]["name"]),
        target_branch: text(&pull["destination"]["branch"]["name"]),
        head_sha: text(&pull["source"]["commit"]["hash"]),
        labels: Vec::new(),
        author: text(&pull["author"]["nickname"]),
    });
    Ok(pulls.collect())
}
