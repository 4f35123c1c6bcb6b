//! The gathered facts of a recorded case.

use std::collections::BTreeMap;

use plumb_appset::scm::{self, GithubApp, HttpCall, ScmAnswer, ScmFacts, ScmRules, SetSecret};
use plumb_appset::{
    ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Repository, Unanswered,
};
use plumb_core::version::Constraint;
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use serde_json::Value;

/// The inputs of a case.
pub(crate) struct Recorded<'a> {
    pub(crate) input: &'a Value,
    pub(crate) namespace: String,
    trees: BTreeMap<(String, String), GitTree>,
}

fn text_map(value: &Value) -> BTreeMap<String, String> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

impl<'a> Recorded<'a> {
    pub(crate) fn new(input: &'a Value) -> Self {
        let namespace = input["settings"]["argocdNamespace"].as_str().unwrap_or("argocd").to_owned();
        let mut trees = BTreeMap::new();
        for repository in input["git"].as_array().into_iter().flatten() {
            let url = text(repository, "repoURL").to_owned();
            let tree = |branch: &str| GitTree {
                files: text_map(&repository["branches"][branch]),
                symlinks: text_map(&repository["symlinks"][branch]),
            };
            for branch in repository["branches"].as_object().into_iter().flatten() {
                trees.insert((url.clone(), branch.0.clone()), tree(branch.0));
            }
            let head = text(repository, "head");
            for name in ["", "HEAD"] {
                trees.insert((url.clone(), name.to_owned()), tree(head));
            }
            for (tag, branch) in repository["tags"].as_object().into_iter().flatten() {
                trees.insert((url.clone(), tag.clone()), tree(branch.as_str().unwrap_or_default()));
            }
        }
        Self { input, namespace, trees }
    }

    /// The highest tag that a version constraint allows.
    fn best_tag(&self, repo_url: &str, revision: &str) -> Option<&GitTree> {
        let names = self.trees.keys().filter(|(url, _)| url == repo_url).map(|(_, name)| name.as_str());
        let newest = Constraint::parse(revision)?.newest(names)?;
        self.trees.get(&(repo_url.to_owned(), newest.to_owned()))
    }

    fn named(&self, list: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let all = self.input[list].as_array().into_iter().flatten();
        let here = |object: &&Value| {
            object["namespace"].as_str().is_none_or(|namespace| namespace == self.namespace)
        };
        all.filter(here).find(|object| text(object, "name") == name).map(|object| text_map(&object["data"]))
    }
}

impl Facts for Recorded<'_> {
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered> {
        let mut secrets: Vec<&Value> =
            self.input["clusterSecrets"].as_array().into_iter().flatten().collect();
        secrets.retain(|secret| {
            secret["namespace"].as_str().is_none_or(|namespace| namespace == self.namespace)
        });
        secrets.sort_by_key(|secret| text(secret, "name").to_owned());
        Ok(secrets
            .into_iter()
            .map(|secret| ClusterRecord {
                name: text(&secret["data"], "name").to_owned(),
                server: text(&secret["data"], "server").to_owned(),
                project: text(&secret["data"], "project").to_owned(),
                labels: text_map(&secret["labels"]),
                annotations: text_map(&secret["annotations"]),
            })
            .collect())
    }

    fn project(&self, name: &str) -> Result<(), Unanswered> {
        let exists = match self.input["projects"].as_array() {
            None => name == "default",
            Some(projects) => projects.iter().any(|project| {
                let metadata = if project["metadata"].is_object() { &project["metadata"] } else { project };
                text(metadata, "name") == name
                    && metadata["namespace"].as_str().is_none_or(|namespace| namespace == self.namespace)
            }),
        };
        let failed = || Unanswered::Failed(format!("appprojects.argoproj.io \"{name}\" not found"));
        if exists { Ok(()) } else { Err(failed()) }
    }

    fn git(&self, _: Option<&str>, repo_url: &str, revision: &str) -> Result<&GitTree, Unanswered> {
        let found = self.trees.get(&(repo_url.to_owned(), revision.to_owned()));
        let found = found.or_else(|| self.best_tag(repo_url, revision));
        found.ok_or_else(|| Unanswered::Failed(format!("unable to resolve git revision {revision}")))
    }

    fn config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        self.named("configMaps", name)
            .ok_or_else(|| Unanswered::Failed(format!("configmaps \"{name}\" not found")))
    }

    fn secret(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        self.named("secrets", name).ok_or_else(|| Unanswered::Failed(format!("secrets \"{name}\" not found")))
    }

    fn objects(&self, api_version: &str, resource: &str) -> Result<Vec<Value>, Unanswered> {
        let all = self.input["decisionResources"].as_array().cloned().unwrap_or_default();
        let plural = |object: &Value| format!("{}s", text(object, "kind").to_lowercase());
        if !all.iter().any(|object| text(object, "apiVersion") == api_version && plural(object) == resource) {
            let message = "the server could not find the requested resource".to_owned();
            return if all.is_empty() { Ok(Vec::new()) } else { Err(Unanswered::Failed(message)) };
        }
        let here = |object: &Value| {
            object["metadata"]["namespace"].as_str().is_none_or(|namespace| namespace == self.namespace)
        };
        Ok(all.into_iter().filter(|object| plural(object) == resource && here(object)).collect())
    }

    fn plugin(&self, call: &PluginCall) -> Result<HttpAnswer, Unanswered> {
        let path = call.url.strip_prefix("http://fake.test").unwrap_or(&call.url);
        let all = self.input["http"].as_array().into_iter().flatten();
        let mut found =
            all.filter(|exchange| text(exchange, "method") == "POST" && text(exchange, "path") == path);
        let Some(exchange) = found.next() else {
            return Ok(HttpAnswer { status: 404, body: "{\"message\":\"Not Found\"}".to_owned() });
        };
        let body = match exchange["rawBody"].as_str() {
            Some(raw) => raw.to_owned(),
            None => exchange["body"].to_string(),
        };
        let status = exchange["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
        Ok(HttpAnswer { status, body })
    }

    fn repositories(&self, generator: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        scm::repositories(generator, self, &self.scm_rules())
    }

    fn pull_requests(&self, generator: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        scm::pull_requests(generator, self, &self.scm_rules())
    }
}

impl Recorded<'_> {
    fn scm_rules(&self) -> ScmRules {
        let settings = &self.input["settings"];
        let allowed = settings["allowedScmProviders"].as_array().into_iter().flatten();
        ScmRules {
            enabled: settings["disableScmProviders"] != true,
            allowed: allowed.filter_map(|url| url.as_str().map(str::to_owned)).collect(),
            strict_tokens: settings["tokenRefStrictMode"] == true,
            needs_list: false,
        }
    }
}

/// `%2F` as `/`, and so on.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(code)) = (first, code) {
            bytes.push(code);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl ScmFacts for Recorded<'_> {
    fn namespace(&self) -> &str {
        self.input["applicationSet"]["metadata"]["namespace"].as_str().unwrap_or("argocd")
    }

    fn set_secret(&self, name: &str) -> Result<SetSecret, Unanswered> {
        let mut all = self.input["secrets"].as_array().into_iter().flatten();
        let found = all.find(|secret| text(secret, "name") == name);
        let found = found.ok_or_else(|| Unanswered::Failed(format!("secrets \"{name}\" not found")))?;
        Ok(SetSecret { labels: text_map(&found["labels"]), data: text_map(&found["data"]) })
    }

    fn set_config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        self.named("configMaps", name)
            .ok_or_else(|| Unanswered::Failed(format!("configmaps \"{name}\" not found")))
    }

    fn github_app(&self, _: &str) -> Result<GithubApp, Unanswered> {
        Err(Unanswered::Failed("no case has a GitHub App".to_owned()))
    }

    fn http(&self, call: &HttpCall) -> Result<ScmAnswer, Unanswered> {
        let rest = call.url.strip_prefix("http://fake.test").unwrap_or(&call.url);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let query: BTreeMap<String, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (decoded(key), decoded(value)))
            .collect();
        let mut all = self.input["http"].as_array().into_iter().flatten();
        let found = all.find(|exchange| {
            let has_query =
                text_map(&exchange["query"]).iter().all(|(key, value)| query.get(key) == Some(value));
            let known = text(exchange, "path");
            text(exchange, "method") == "GET" && (known == path || known == decoded(path)) && has_query
        });
        let Some(exchange) = found else {
            let body = "{\"message\":\"Not Found\"}".to_owned();
            return Ok(ScmAnswer { status: 404, body, ..ScmAnswer::default() });
        };
        let body = match exchange["rawBody"].as_str() {
            Some(raw) => raw.to_owned(),
            None => exchange["body"].to_string(),
        };
        let status = exchange["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
        let headers = text_map(&exchange["headers"]);
        let headers = headers.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
        Ok(ScmAnswer { status, headers, body })
    }
}
