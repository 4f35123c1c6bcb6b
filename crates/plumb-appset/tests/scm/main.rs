//! What providers are asked, and with which credentials.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use plumb_appset::Unanswered;
use plumb_appset::scm::{
    GithubApp, HttpCall, ScmAnswer, ScmFacts, ScmRules, SetSecret, pull_requests, repositories,
};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use plumb_crd::wire::Wire as _;
use serde_json::{Value, json};

/// A server that answers some paths, and the requests that it got.
#[derive(Default)]
struct Server {
    answers: BTreeMap<&'static str, Value>,
    app: Option<GithubApp>,
    asked: RefCell<Vec<String>>,
}

impl ScmFacts for Server {
    fn namespace(&self) -> &'static str {
        "team"
    }

    fn set_secret(&self, name: &str) -> Result<SetSecret, Unanswered> {
        Err(Unanswered::Failed(format!("secrets \"{name}\" not found")))
    }

    fn set_config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        match name {
            "authorities" => Ok(BTreeMap::from([("ca.crt".to_owned(), "PEM".to_owned())])),
            other => Err(Unanswered::Failed(format!("configmaps \"{other}\" not found"))),
        }
    }

    fn github_app(&self, name: &str) -> Result<GithubApp, Unanswered> {
        self.app.clone().ok_or_else(|| Unanswered::Failed(format!("secrets \"{name}\" not found")))
    }

    fn http(&self, call: &HttpCall) -> Result<ScmAnswer, Unanswered> {
        let verb = if call.body.is_some() { "POST" } else { "GET" };
        let login = call.headers.iter().find(|(name, _)| name == "Authorization");
        let login = login.map(|(_, value)| format!(" as {value}")).unwrap_or_default();
        let trust = call.authorities.as_ref().map(|pem| format!(" trusting {pem}")).unwrap_or_default();
        self.asked.borrow_mut().push(format!("{verb} {}{login}{trust}", call.url));
        let found = self.answers.iter().find(|(path, _)| call.url.contains(*path));
        Ok(match found {
            Some((_, body)) => ScmAnswer { status: 200, body: body.to_string(), ..ScmAnswer::default() },
            None => ScmAnswer { status: 404, body: "{}".to_owned(), ..ScmAnswer::default() },
        })
    }
}

fn app(installation_id: Option<u64>, enterprise: &str) -> GithubApp {
    let (statement, enterprise_base_url) = ("signed".to_owned(), enterprise.to_owned());
    GithubApp { statement, installation_id, enterprise_base_url }
}

/// What the generators ask, and what comes of it.
fn check(server: &Server, generator: &Value, rules: &ScmRules, expected: &Expect) {
    let answer = if generator.get("scmProvider").is_some() {
        let generator = ScmProviderGenerator::read(&generator["scmProvider"]).expect("a generator");
        repositories(&generator, server, rules).map(|found| found.len())
    } else {
        let generator = PullRequestGenerator::read(&generator["pullRequest"]).expect("a generator");
        pull_requests(&generator, server, rules).map(|found| found.len())
    };
    let mut lines = server.asked.borrow().clone();
    lines.push(format!("{answer:?}"));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_github_app_gets_a_token_for_its_installation() {
    let answers = BTreeMap::from([
        ("/access_tokens", json!({"token": "granted"})),
        ("/orgs/o/installation", json!({"id": 5})),
        ("/pulls?", json!([])),
    ]);
    let pulls = json!({"pullRequest": {"github": {"owner": "o", "repo": "r", "appSecretName": "app"}}});
    let server = Server { answers: answers.clone(), app: Some(app(Some(9), "")), ..Server::default() };
    check(
        &server,
        &pulls,
        &ScmRules::default(),
        &expect![[r"
        POST https://api.github.com/app/installations/9/access_tokens as Bearer signed
        GET https://api.github.com/repos/o/r/pulls?per_page=100 as Bearer granted
        Ok(0)"]],
    );
    let server = Server { answers, app: Some(app(None, "https://ghe.test")), ..Server::default() };
    check(
        &server,
        &pulls,
        &ScmRules::default(),
        &expect![[r"
        GET https://ghe.test/api/v3/orgs/o/installation as Bearer signed
        POST https://ghe.test/api/v3/app/installations/5/access_tokens as Bearer signed
        GET https://ghe.test/api/v3/repos/o/r/pulls?per_page=100 as Bearer granted
        Ok(0)"]],
    );
}

#[test]
fn the_statement_of_an_app_goes_only_to_its_own_server() {
    let server = Server { app: Some(app(Some(9), "")), ..Server::default() };
    let github = json!({"organization": "o", "appSecretName": "app", "api": "https://evil.test"});
    check(
        &server,
        &json!({"scmProvider": {"github": github}}),
        &ScmRules::default(),
        &expect![[r#"
        Err(Failed("scm provider: the GitHub App of the Secret app belongs to https://api.github.com, and not to https://evil.test"))"#]],
    );
}

#[test]
fn authorities_come_from_a_config_map_of_the_set() {
    let generator = |name: &str| {
        let reference = json!({"configMapName": name, "key": "ca.crt"});
        json!({"pullRequest": {"gitlab": {"project": "7", "api": "https://git.test", "caRef": reference}}})
    };
    let answers = BTreeMap::from([("/merge_requests", json!([]))]);
    let server = Server { answers, ..Server::default() };
    check(
        &server,
        &generator("authorities"),
        &ScmRules::default(),
        &expect![[r"
        GET https://git.test/api/v4/projects/7/merge_requests?per_page=100 trusting PEM
        Ok(0)"]],
    );
    check(
        &Server::default(),
        &generator("other"),
        &ScmRules::default(),
        &expect![[r#"
        Err(Failed("error listing repos: failed to select pull request service provider: error fetching CA certificates from ConfigMap: configmaps \"other\" not found"))"#]],
    );
}

#[test]
fn sets_of_other_namespaces_need_a_list_of_providers() {
    let generator = json!({"scmProvider": {"gitea": {"owner": "o", "api": "https://git.test"}}});
    let foreign = ScmRules { needs_list: true, ..ScmRules::default() };
    check(
        &Server::default(),
        &generator,
        &foreign,
        &expect![[r#"
        Err(Failed("an ApplicationSet of another namespace may ask no SCM provider unless applicationsetcontroller.allowed.scm.providers names those that it may ask"))"#]],
    );
    let listed = ScmRules { allowed: vec!["https://git.test".to_owned()], ..foreign };
    let answers = BTreeMap::from([("/orgs/o/repos", json!([]))]);
    let server = Server { answers, ..Server::default() };
    check(
        &server,
        &generator,
        &listed,
        &expect![[r"
        GET https://git.test/api/v1/orgs/o/repos?limit=50
        Ok(0)"]],
    );
}

#[test]
fn code_commit_is_refused_with_what_to_do() {
    let generator = json!({"scmProvider": {"awsCodeCommit": {"region": "eu-west-1"}}});
    check(
        &Server::default(),
        &generator,
        &ScmRules::default(),
        &expect![[r#"
        Err(Failed("plumb cannot ask AWS CodeCommit (awsCodeCommit); name its repositories in a list or git generator"))"#]],
    );
}
