//! One project: its argument and reading it.

use plumb_core::object::Manifest;
use plumb_crd::AppProject;
use plumb_kube::{ClusterClient, Target};

use crate::context::Context;
use crate::error::CommandError;
use crate::kinds;

/// The project of a command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProjectArg {
    /// Name of the project.
    #[arg(value_name = "PROJECT", add = crate::complete::projects())]
    project: String,
}

impl ProjectArg {
    pub(crate) fn target(&self, context: &Context) -> Target {
        target(context, &self.project)
    }

    pub(crate) async fn read(
        &self,
        context: &Context,
        client: &ClusterClient,
    ) -> Result<Manifest, CommandError> {
        let target = self.target(context);
        client
            .get_at(&target.gvk, target.namespace.as_deref(), &target.name)
            .await
            .map_err(|error| CommandError::api(format!("read project {}", target.name), error))?
            .ok_or_else(|| {
                CommandError::new(format!(
                    "project {} not found in namespace {}",
                    target.name,
                    context.namespace()
                ))
                .hint("`plumb proj list` lists the projects")
            })
    }
}

pub(crate) fn target(context: &Context, name: &str) -> Target {
    Target { gvk: kinds::project(), namespace: Some(context.namespace().to_owned()), name: name.to_owned() }
}

pub(crate) fn parse(object: &Manifest) -> Result<AppProject, CommandError> {
    let name = object.name().unwrap_or_default();
    AppProject::from_json(object.value())
        .map_err(|error| CommandError::because(format!("parse project {name}"), error))
}
