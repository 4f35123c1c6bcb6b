//! `plumb install`

use plumb_core::object::ObjectKey;
use plumb_crd::install::{self, InstallOptions};

use crate::bootstrap::{apply_all, make_default_project};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print (or apply) the objects that plumb needs in a cluster.
///
/// CRDs, namespace, permissions, the Deployment and the project `default`, as YAML. `plumb install --apply` applies them
/// in the right order and does not change an existing project.
///
/// kubectl cannot apply a CRD and an object of its kind in one call, so leave the project out the first time: plumb
/// creates it when it starts. `plumb install --without-project | kubectl apply --server-side -f -`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Apply the objects instead of printing them.
    #[arg(long)]
    apply: bool,
    /// Leave the project `default` out.
    #[arg(long, conflicts_with = "apply")]
    without_project: bool,
    /// Image of the Deployment.
    #[arg(long, default_value = concat!("plumb:", env!("CARGO_PKG_VERSION")))]
    image: String,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let options = InstallOptions {
        namespace: context.namespace().to_owned(),
        image: args.image.clone(),
        // With --apply an existing project must not be overwritten: it may permit less.
        project: !args.apply && !args.without_project,
        ..InstallOptions::default()
    };
    let objects = install::install(&options);
    if !args.apply {
        context.out.print(plumb_crd::yaml::to_yaml_documents(&objects).trim_end());
        return Ok(ExitCode::Success);
    }
    let client = context.client_of_all_kinds().await?;
    let report = |key: &ObjectKey| context.out.note(&format!("{key} applied"));
    apply_all(&client, &objects, report).await?;
    make_default_project(&client, context.namespace(), report).await?;
    Ok(ExitCode::Success)
}
