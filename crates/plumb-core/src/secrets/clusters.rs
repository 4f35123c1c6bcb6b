//! What `plumb doctor --secrets` says about several clusters.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::report::SecretsReport;
use crate::text::one_line;

/// The Secrets of the home cluster, and of the others that apps deploy to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretsOfClusters {
    /// The home cluster.
    pub here: SecretsReport,
    /// The others.
    pub others: Vec<SecretsOfCluster>,
}

/// The Secrets of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretsOfCluster {
    /// The name under which it is registered, or the text by which an app names it.
    pub name: String,
    /// Its address, if it is registered.
    pub server: Option<String>,
    /// What is wrong there, or why nobody knows.
    pub report: Result<SecretsReport, String>,
}

impl SecretsOfClusters {
    /// Does a user have to act? A cluster that could not be read counts.
    pub fn is_bad(&self) -> bool {
        self.here.is_bad()
            || self.others.iter().any(|one| one.report.as_ref().map_or(true, SecretsReport::is_bad))
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        if self.others.is_empty() {
            return self.here.text();
        }
        let mut text = String::new();
        if self.here.n_apps > 0 {
            let _ = writeln!(text, "{}\n", self.here.text());
        }
        for one in &self.others {
            let server = one.server.as_ref().map(|server| format!(" ({})", one_line(server)));
            let _ = writeln!(text, "CLUSTER {}{}", one_line(&one.name), server.unwrap_or_default());
            match &one.report {
                Ok(report) => {
                    for line in report.text().lines() {
                        let _ = writeln!(text, "{}", format!("  {line}").trim_end());
                    }
                }
                Err(why) => {
                    let _ = writeln!(text, "  not looked at: {}", one_line(why));
                }
            }
            text.push('\n');
        }
        text.trim_end().to_owned()
    }

    /// For programs: the home cluster, and the others under `clusters`.
    pub fn data(&self) -> Value {
        let mut data = self.here.data();
        let others = self.others.iter().map(|one| {
            let mut data = match &one.report {
                Ok(report) => report.data(),
                Err(why) => json!({"error": why}),
            };
            data["name"] = json!(one.name);
            data["server"] = json!(one.server);
            data
        });
        data["clusters"] = others.collect();
        data
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_cluster_has_its_part() {
        let well = |n_apps| SecretsReport { n_apps, ..SecretsReport::default() };
        let other = |name: &str, report| SecretsOfCluster {
            name: name.to_owned(),
            server: Some(format!("https://{name}")),
            report,
        };
        let mut all = SecretsOfClusters { here: well(2), others: Vec::new() };
        assert_eq!(all.text(), all.here.text());
        all.others = vec![other("east", Ok(well(1)))];
        assert!(!all.is_bad());
        all.others.push(SecretsOfCluster { server: None, ..other("west", Err("no answer".to_owned())) });
        assert!(all.is_bad());
        expect![[r"
            nothing to do about the Secrets of 2 apps

            CLUSTER east (https://east)
              nothing to do about the Secrets of 1 app

            CLUSTER west
              not looked at: no answer"]]
        .assert_eq(&all.text());
        let data = all.data();
        assert_eq!(data["clusters"][0]["apps"], 1);
        assert_eq!(data["clusters"][1]["error"], "no answer");
        all.here.n_apps = 0;
        assert!(all.text().starts_with("CLUSTER east"));
    }
}
