//! `plumb install`

use plumb_core::object::ObjectKey;
use plumb_crd::install::{self, InstallOptions};

use crate::bootstrap::{apply_all, make_default_project};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print (or apply) what plumb needs in a cluster.
///
/// CRDs, namespace, permissions, the Deployment and the project `default`, as YAML. `plumb install --apply` sends it in the
/// order that the cluster needs, and leaves a project that is there as it is.
///
/// kubectl knows a kind only once its definition is there, so the first time leave the project out: plumb makes it when it
/// starts. `plumb install --without-project | kubectl apply --server-side -f -`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Apply instead of print.
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
        // One that is there may permit less, and is not written over.
        project: !args.apply && !args.without_project,
        ..InstallOptions::default()
    };
    let objects = install::install(&options);
    if !args.apply {
        context.out.print(plumb_crd::yaml::to_yaml_documents(&objects).trim_end());
        return Ok(ExitCode::Success);
    }
    let client = context.client_of_all_kinds().await?;
    let tell = |key: &ObjectKey| context.out.note(&format!("{key} applied"));
    apply_all(&client, &objects, tell).await?;
    make_default_project(&client, context.namespace(), tell).await?;
    Ok(ExitCode::Success)
}
