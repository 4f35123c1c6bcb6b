//! The Applications of a command: by name, label or project.

use plumb_core::object::Manifest;
use plumb_kube::{ClusterClient, Selection, Target};
use serde_json::Value;

use super::app;
use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;

/// The named Applications, or else those with labels or in projects.
#[derive(Clone, Copy)]
pub(crate) struct AppSelection<'a> {
    pub(crate) names: &'a [String],
    pub(crate) selector: Option<&'a str>,
    pub(crate) projects: &'a [String],
    pub(crate) namespace: Option<&'a str>,
}

impl AppSelection<'_> {
    /// The targets. An error if there are none.
    pub(crate) async fn targets(
        &self,
        context: &Context,
        client: &ClusterClient,
    ) -> Result<Vec<Target>, CommandError> {
        if !self.names.is_empty() {
            return Ok(self.names.iter().map(|name| app::target(context, name, self.namespace)).collect());
        }
        let selection = Selection {
            namespace: Some(self.namespace.unwrap_or_else(|| context.namespace()).to_owned()),
            labels: self.selector.map(str::to_owned),
            fields: None,
        };
        let found = context.list(client, &kinds::application(), &selection).await?;
        let is_wanted = |app: &&Manifest| {
            let project = app.value().pointer("/spec/project").and_then(Value::as_str).unwrap_or_default();
            let project = if project.is_empty() { "default" } else { project };
            self.projects.is_empty() || self.projects.iter().any(|wanted| wanted == project)
        };
        let targets: Vec<Target> = found.iter().filter(is_wanted).filter_map(Target::of).collect();
        if targets.is_empty() {
            let labels = self.selector.map(|labels| format!("the labels {labels}"));
            let projects =
                (!self.projects.is_empty()).then(|| format!("the project {}", self.projects.join(" or ")));
            let asked: Vec<String> = labels.into_iter().chain(projects).collect();
            return Err(CommandError::new(format!("no application has {}", asked.join(" and "))));
        }
        Ok(targets)
    }
}
