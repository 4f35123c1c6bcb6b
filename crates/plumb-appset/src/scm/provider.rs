//! Which provider a generator means.

use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator, SecretRef};

use super::azure::{self, Azure};
use super::bitbucket::{self, Bitbucket};
use super::bitbucket_server::{self, BitbucketServer};
use super::call::{ScmFacts, ScmRules};
use super::client::{Client, ScmError, basic_login, bitbucket_login, secret};
use super::filter::{find, keep};
use super::gitea::{self, Gitea};
use super::github::{self, Github};
use super::gitlab::{self, Gitlab};
use crate::facts::{PullRequest, Repository, Unanswered};

/// The setting that switches providers off, and the list of permitted addresses.
fn permitted(rules: &ScmRules, api: &str) -> Result<(), ScmError> {
    if !rules.enabled {
        return Err(ScmError::Failed("scm providers are disabled".to_owned()));
    }
    if api.is_empty() || rules.allowed.is_empty() || rules.allowed.iter().any(|allowed| allowed == api) {
        return Ok(());
    }
    let allowed = rules.allowed.join(", ");
    Err(ScmError::Failed(format!(
        "scm provider not allowed: scm provider {api:?} not allowed, must use one of the following: {allowed}"
    )))
}

fn token(
    facts: &dyn ScmFacts,
    rules: &ScmRules,
    name: &str,
    reference: Option<&SecretRef>,
) -> Result<Option<String>, ScmError> {
    secret(facts, rules, reference).map_err(|error| error.during(&format!("error fetching {name} token")))
}

fn no_ca(has_ca: bool) -> Result<(), ScmError> {
    if has_ca { Err(ScmError::Failed("plumb does not support caRef yet".to_owned())) } else { Ok(()) }
}

/// The repositories of a provider, filters applied.
pub fn repositories(
    generator: &ScmProviderGenerator,
    facts: &dyn ScmFacts,
    rules: &ScmRules,
) -> Result<Vec<Repository>, Unanswered> {
    found_repositories(generator, facts, rules).map_err(Unanswered::from)
}

/// Long because each provider has its own fields.
fn found_repositories(
    generator: &ScmProviderGenerator,
    facts: &dyn ScmFacts,
    rules: &ScmRules,
) -> Result<Vec<Repository>, ScmError> {
    let (protocol, filters) = (generator.clone_protocol.as_str(), generator.filters.as_slice());
    let listing = |error: ScmError| error.during("error listing repos");
    let asking = |error: ScmError| error.during("scm provider");
    if !rules.enabled {
        permitted(rules, "")?;
    }
    if let Some(generator) = &generator.github {
        permitted(rules, &generator.api)?;
        if !generator.app_secret_name.is_empty() {
            return Err(ScmError::Failed("plumb does not support GitHub Apps yet; use tokenRef".to_owned()));
        }
        let token = token(facts, rules, "Github", generator.token_ref.as_ref()).map_err(asking)?;
        let client = Client::new(facts, &github::base(&generator.api), github::headers(token), false);
        return find(&Github { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.gitlab {
        permitted(rules, &generator.api)?;
        no_ca(generator.ca_ref.is_some())?;
        let token = token(facts, rules, "Gitlab", generator.token_ref.as_ref()).map_err(asking)?;
        let base = gitlab::base(&generator.api);
        let client = Client::new(facts, &base, gitlab::headers(token), generator.insecure);
        return find(&Gitlab { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.gitea {
        permitted(rules, &generator.api)?;
        let token = token(facts, rules, "Gitea", generator.token_ref.as_ref()).map_err(asking)?;
        let base = gitea::base(&generator.api);
        let client = Client::new(facts, &base, gitea::headers(token), generator.insecure);
        return find(&Gitea { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket_server {
        permitted(rules, &generator.api)?;
        no_ca(generator.ca_ref.is_some())?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, basic, bearer).map_err(asking)?;
        let base = bitbucket_server::base(&generator.api);
        let client = Client::new(facts, &base, headers, generator.insecure);
        return find(&BitbucketServer { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.azure_dev_ops {
        permitted(rules, &generator.api)?;
        let token = token(facts, rules, "Azure Devops access", generator.access_token_ref.as_ref())
            .map_err(asking)?;
        let base = azure::base(&generator.api, &generator.organization);
        let client = Client::new(facts, &base, azure::headers(token), false);
        return find(&Azure { client, generator }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket {
        let password =
            token(facts, rules, "Bitbucket cloud appPassword", generator.app_password_ref.as_ref());
        let login = basic_login(&generator.user, &password.map_err(asking)?.unwrap_or_default());
        let base = bitbucket::base("");
        let client = Client::new(facts, &base, vec![("Authorization".to_owned(), login)], false);
        return find(&Bitbucket { client, base, generator, protocol }, filters).map_err(listing);
    }
    let what = if generator.aws_code_commit.is_some() {
        "plumb does not support awsCodeCommit yet"
    } else {
        "no SCM provider implementation configured"
    };
    Err(ScmError::Failed(what.to_owned()))
}

/// The pull requests of a repository, filters applied.
pub fn pull_requests(
    generator: &PullRequestGenerator,
    facts: &dyn ScmFacts,
    rules: &ScmRules,
) -> Result<Vec<PullRequest>, Unanswered> {
    let found = match found_pull_requests(generator, facts, rules) {
        Err(ScmError::NotFound(_)) if generator.continue_on_repo_not_found_error => Ok(Vec::new()),
        Err(error) => Err(error.during("error listing repos")),
        Ok(found) => keep(found, &generator.filters),
    };
    found.map_err(Unanswered::from)
}

fn found_pull_requests(
    generator: &PullRequestGenerator,
    facts: &dyn ScmFacts,
    rules: &ScmRules,
) -> Result<Vec<PullRequest>, ScmError> {
    let selecting = |error: ScmError| error.during("failed to select pull request service provider");
    permitted(rules, "").map_err(selecting)?;
    let permitted = |api: &str| permitted(rules, api).map_err(selecting);
    let token =
        |name: &str, reference: Option<&SecretRef>| token(facts, rules, name, reference).map_err(selecting);
    if let Some(generator) = &generator.github {
        permitted(&generator.api)?;
        if !generator.app_secret_name.is_empty() {
            return Err(ScmError::Failed("plumb does not support GitHub Apps yet; use tokenRef".to_owned()));
        }
        let headers = github::headers(token("Github", generator.token_ref.as_ref())?);
        let client = Client::new(facts, &github::base(&generator.api), headers, false);
        return github::pull_requests(&client, generator);
    }
    if let Some(generator) = &generator.gitlab {
        permitted(&generator.api)?;
        no_ca(generator.ca_ref.is_some())?;
        let headers = gitlab::headers(token("Gitlab", generator.token_ref.as_ref())?);
        let client = Client::new(facts, &gitlab::base(&generator.api), headers, generator.insecure);
        return gitlab::pull_requests(&client, generator);
    }
    if let Some(generator) = &generator.gitea {
        permitted(&generator.api)?;
        let headers = gitea::headers(token("Gitea", generator.token_ref.as_ref())?);
        let client = Client::new(facts, &gitea::base(&generator.api), headers, generator.insecure);
        return gitea::pull_requests(&client, generator);
    }
    if let Some(generator) = &generator.bitbucket_server {
        permitted(&generator.api)?;
        no_ca(generator.ca_ref.is_some())?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, basic, bearer).map_err(selecting)?;
        let client = Client::new(facts, &bitbucket_server::base(&generator.api), headers, generator.insecure);
        return bitbucket_server::pull_requests(&client, generator);
    }
    if let Some(generator) = &generator.bitbucket {
        permitted(&generator.api)?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, basic, bearer).map_err(selecting)?;
        let base = bitbucket::base(&generator.api);
        let client = Client::new(facts, &base, headers, false);
        return bitbucket::pull_requests(&client, &base, generator);
    }
    if let Some(generator) = &generator.azuredevops {
        permitted(&generator.api)?;
        let headers = azure::headers(token("Azure Devops", generator.token_ref.as_ref())?);
        let client =
            Client::new(facts, &azure::base(&generator.api, &generator.organization), headers, false);
        return azure::pull_requests(&client, generator);
    }
    Err(selecting(ScmError::Failed("no Pull Request provider implementation configured".to_owned())))
}
