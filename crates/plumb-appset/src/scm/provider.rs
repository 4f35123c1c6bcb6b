//! Which provider a generator means.

use plumb_crd::application_set::{ConfigMapKeyRef, PullRequestGenerator, ScmProviderGenerator, SecretRef};

use super::azure::{self, Azure};
use super::bitbucket::{self, Bitbucket};
use super::bitbucket_server::{self, BitbucketServer};
use super::call::{ScmFacts, ScmRules};
use super::client::{Client, ScmError, Trust, authorities, basic_login, bitbucket_login, secret};
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
    if rules.needs_list && rules.allowed.is_empty() {
        return Err(ScmError::Failed(
            "an ApplicationSet of another namespace may ask no SCM provider unless \
             applicationsetcontroller.allowed.scm.providers names those that it may ask"
                .to_owned(),
        ));
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
    api: &str,
    name: &str,
    reference: Option<&SecretRef>,
) -> Result<Option<String>, ScmError> {
    secret(facts, rules, api, reference).map_err(|error| error.during(&format!("error fetching {name}")))
}

/// Which certificates of a provider are accepted.
fn trust(facts: &dyn ScmFacts, insecure: bool, ca_ref: Option<&ConfigMapKeyRef>) -> Result<Trust, ScmError> {
    let authorities = authorities(facts, ca_ref);
    let authorities =
        authorities.map_err(|error| error.during("error fetching CA certificates from ConfigMap"))?;
    Ok(Trust { insecure, authorities })
}

fn insecure(insecure: bool) -> Trust {
    Trust { insecure, authorities: None }
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
    let asking = |error: ScmError| error.during("scm provider");
    if !rules.enabled {
        permitted(rules, "")?;
    }
    if let Some(generator) = &generator.github {
        permitted(rules, &generator.api)?;
        let (base, token) = if generator.app_secret_name.is_empty() {
            let token = token(facts, rules, &generator.api, "Github token", generator.token_ref.as_ref())
                .map_err(asking)?;
            (github::base(&generator.api), token)
        } else {
            let (name, owner) = (&generator.app_secret_name, &generator.organization);
            github::app_login(facts, &generator.api, name, owner).map_err(asking)?
        };
        let client = Client::new(facts, &base, github::headers(token), Trust::default());
        return find(&Github { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.gitlab {
        permitted(rules, &generator.api)?;
        let trust = trust(facts, generator.insecure, generator.ca_ref.as_ref())?;
        let token = token(facts, rules, &generator.api, "Gitlab token", generator.token_ref.as_ref())?;
        let base = gitlab::base(&generator.api);
        let client = Client::new(facts, &base, gitlab::headers(token), trust);
        return find(&Gitlab { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.gitea {
        permitted(rules, &generator.api)?;
        let token = token(facts, rules, &generator.api, "Gitea token", generator.token_ref.as_ref())?;
        let base = gitea::base(&generator.api);
        let client = Client::new(facts, &base, gitea::headers(token), insecure(generator.insecure));
        return find(&Gitea { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket_server {
        permitted(rules, &generator.api)?;
        let trust = trust(facts, generator.insecure, generator.ca_ref.as_ref())?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, &generator.api, basic, bearer)?;
        let base = bitbucket_server::base(&generator.api);
        let client = Client::new(facts, &base, headers, trust);
        return find(&BitbucketServer { client, generator, protocol }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.azure_dev_ops {
        permitted(rules, &generator.api)?;
        let token = token(
            facts,
            rules,
            &generator.api,
            "Azure Devops access token",
            generator.access_token_ref.as_ref(),
        )?;
        let base = azure::base(&generator.api, &generator.organization);
        let client = Client::new(facts, &base, azure::headers(token), Trust::default());
        return find(&Azure { client, generator }, filters).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket {
        permitted(rules, "")?;
        let password =
            token(facts, rules, "", "Bitbucket cloud appPassword", generator.app_password_ref.as_ref());
        let login = basic_login(&generator.user, &password?.unwrap_or_default());
        let base = bitbucket::base("");
        let client = Client::new(facts, &base, vec![("Authorization".to_owned(), login)], Trust::default());
        return find(&Bitbucket { client, base, generator, protocol }, filters).map_err(listing);
    }
    let what = if generator.aws_code_commit.is_some() {
        "plumb cannot ask AWS CodeCommit (awsCodeCommit); name its repositories in a list or git generator"
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
        Err(error) => Err(error),
        Ok(found) => keep(found, &generator.filters).map_err(listing),
    };
    found.map_err(Unanswered::from)
}

fn listing(error: ScmError) -> ScmError {
    error.during("error listing repos")
}

/// The provider cannot be asked at all. Also a 404 is no answer about the repository then.
fn selecting(error: ScmError) -> ScmError {
    match error.during("failed to select pull request service provider") {
        ScmError::NotFound(reason) => ScmError::Failed(reason),
        error => error,
    }
}

/// Long because each provider has its own fields.
fn found_pull_requests(
    generator: &PullRequestGenerator,
    facts: &dyn ScmFacts,
    rules: &ScmRules,
) -> Result<Vec<PullRequest>, ScmError> {
    permitted(rules, "").map_err(selecting)?;
    let permitted = |api: &str| permitted(rules, api).map_err(selecting);
    let token = |api: &str, reference: Option<&SecretRef>| {
        token(facts, rules, api, "Secret token", reference).map_err(selecting)
    };
    if let Some(generator) = &generator.github {
        permitted(&generator.api)?;
        let (base, token) = if generator.app_secret_name.is_empty() {
            (github::base(&generator.api), token(&generator.api, generator.token_ref.as_ref())?)
        } else {
            let (name, owner) = (&generator.app_secret_name, &generator.owner);
            github::app_login(facts, &generator.api, name, owner).map_err(selecting)?
        };
        let client = Client::new(facts, &base, github::headers(token), Trust::default());
        return github::pull_requests(&client, generator).map_err(listing);
    }
    if let Some(generator) = &generator.gitlab {
        permitted(&generator.api)?;
        let trust = trust(facts, generator.insecure, generator.ca_ref.as_ref()).map_err(selecting)?;
        let headers = gitlab::headers(token(&generator.api, generator.token_ref.as_ref())?);
        let client = Client::new(facts, &gitlab::base(&generator.api), headers, trust);
        return gitlab::pull_requests(&client, generator).map_err(listing);
    }
    if let Some(generator) = &generator.gitea {
        permitted(&generator.api)?;
        let headers = gitea::headers(token(&generator.api, generator.token_ref.as_ref())?);
        let client = Client::new(facts, &gitea::base(&generator.api), headers, insecure(generator.insecure));
        return gitea::pull_requests(&client, generator).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket_server {
        permitted(&generator.api)?;
        let trust = trust(facts, generator.insecure, generator.ca_ref.as_ref()).map_err(selecting)?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, &generator.api, basic, bearer).map_err(selecting)?;
        let client = Client::new(facts, &bitbucket_server::base(&generator.api), headers, trust);
        return bitbucket_server::pull_requests(&client, generator).map_err(listing);
    }
    if let Some(generator) = &generator.bitbucket {
        permitted(&generator.api)?;
        let (basic, bearer) = (generator.basic_auth.as_ref(), generator.bearer_token.as_ref());
        let headers = bitbucket_login(facts, rules, &generator.api, basic, bearer).map_err(selecting)?;
        let base = bitbucket::base(&generator.api);
        let client = Client::new(facts, &base, headers, Trust::default());
        return bitbucket::pull_requests(&client, &base, generator).map_err(listing);
    }
    if let Some(generator) = &generator.azuredevops {
        permitted(&generator.api)?;
        let headers = azure::headers(token(&generator.api, generator.token_ref.as_ref())?);
        let client = Client::new(
            facts,
            &azure::base(&generator.api, &generator.organization),
            headers,
            Trust::default(),
        );
        return azure::pull_requests(&client, generator).map_err(listing);
    }
    Err(selecting(ScmError::Failed("no Pull Request provider implementation configured".to_owned())))
}
