//! Facts that a test writes down.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_appset::{
    ClusterRecord, Facts, GitTree, HttpAnswer, PluginCall, PullRequest, Repository, Unanswered,
};
use plumb_crd::application_set::{PullRequestGenerator, ScmProviderGenerator};
use serde_json::{Value, json};

/// What a test knows.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) clusters: Vec<ClusterRecord>,
    pub(crate) git: GitTree,
    /// What the plugin answers.
    pub(crate) plugin: Option<HttpAnswer>,
    pub(crate) repositories: Vec<Repository>,
    pub(crate) pull_requests: Vec<PullRequest>,
    pub(crate) objects: Vec<Value>,
}

fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

impl Known {
    /// A cluster with labels.
    pub(crate) fn cluster(mut self, name: &str, server: &str, labels: &[(&str, &str)]) -> Self {
        self.clusters.push(ClusterRecord {
            name: name.to_owned(),
            server: server.to_owned(),
            labels: texts(labels),
            ..ClusterRecord::default()
        });
        self
    }

    /// Files of the only repository.
    pub(crate) fn files(mut self, files: &[(&str, &str)]) -> Self {
        self.git.files = texts(files);
        self
    }
}

impl Facts for Known {
    fn clusters(&self) -> Result<Vec<ClusterRecord>, Unanswered> {
        Ok(self.clusters.clone())
    }

    fn project(&self, name: &str) -> Result<(), Unanswered> {
        if name == "default" { Ok(()) } else { Err(Unanswered::Failed(format!("project {name} not found"))) }
    }

    fn git(&self, _: Option<&str>, _: &str, revision: &str) -> Result<&GitTree, Unanswered> {
        match revision {
            "HEAD" => Ok(&self.git),
            "later" => Err(Unanswered::NotYet),
            other => Err(Unanswered::Failed(format!("no revision {other}"))),
        }
    }

    fn config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        match name {
            "plugin" => Ok(texts(&[
                ("baseUrl", "http://plugin.test/"),
                ("token", "$token"),
                ("requestTimeout", "900"),
            ])),
            "placement" => Ok(texts(&[
                ("apiVersion", "example.com/v1"),
                ("kind", "placements"),
                ("statusListKey", "decisions"),
                ("matchKey", "clusterName"),
            ])),
            other => Err(Unanswered::Failed(format!("configmaps \"{other}\" not found"))),
        }
    }

    fn secret(&self, _: &str) -> Result<BTreeMap<String, String>, Unanswered> {
        Ok(texts(&[("token", "s3cret")]))
    }

    fn objects(&self, _: &str, _: &str) -> Result<Vec<Value>, Unanswered> {
        Ok(self.objects.clone())
    }

    fn plugin(&self, call: &PluginCall) -> Result<HttpAnswer, Unanswered> {
        assert_eq!(call.url, "http://plugin.test/api/v1/getparams.execute");
        assert_eq!(call.token, "s3cret");
        assert_eq!(call.timeout, Duration::from_mins(5), "of the 15 minutes that the ConfigMap says");
        assert_eq!(call.body["applicationSetName"], json!("set"));
        self.plugin.clone().ok_or(Unanswered::NotYet)
    }

    fn repositories(&self, _: &ScmProviderGenerator) -> Result<Vec<Repository>, Unanswered> {
        Ok(self.repositories.clone())
    }

    fn pull_requests(&self, _: &PullRequestGenerator) -> Result<Vec<PullRequest>, Unanswered> {
        Ok(self.pull_requests.clone())
    }
}
