//! The gathered facts of a recorded case.

use std::collections::BTreeMap;

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

    fn repositories(&self, _: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        Err(Unanswered::NotYet)
    }

    fn pull_requests(&self, _: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        Err(Unanswered::NotYet)
    }
}
