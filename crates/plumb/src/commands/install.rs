//! `plumb install`

use plumb_core::object::ObjectKey;
use plumb_crd::install::{self, ImageReference, InstallOptions, Profile, PullPolicy};

use crate::bootstrap::{apply_all, make_default_project};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// Print (or apply) the objects that plumb needs in a cluster.
///
/// CRDs, namespace, permissions, the Deployment and the project `default`, as YAML. `plumb install --apply` applies them
/// in the right order, does not change an existing project, and does not recreate one that was deleted.
///
/// kubectl cannot apply a CRD and an object of its kind in one call, so leave the project out the first time: plumb
/// creates it when it starts.
/// `plumb install --image REGISTRY/plumb:TAG --without-project | kubectl apply --server-side -f -`
///
/// With `--profile strict` plumb itself can read everything and write only its own objects. Syncs act as the service
/// accounts that the projects name (`destinationServiceAccounts`), in the namespaces of `--impersonate-in`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Apply the objects instead of printing them.
    #[arg(long)]
    apply: bool,
    /// Leave the project `default` out.
    #[arg(long, conflicts_with = "apply")]
    without_project: bool,
    /// Image of the Deployment: `REGISTRY/NAME:TAG`, best with its digest (`@sha256:…`).
    #[arg(long)]
    image: Option<String>,
    /// When a node pulls the image.
    #[arg(long, value_enum, default_value_t = PullPolicyArg::IfNotPresent)]
    image_pull_policy: PullPolicyArg,
    /// What plumb's own service account may do.
    #[arg(long, value_enum, default_value_t = ProfileArg::Standard)]
    profile: ProfileArg,
    /// Namespace whose service accounts plumb may impersonate, with `--profile strict`. Can be repeated.
    #[arg(long, value_name = "NAMESPACE")]
    impersonate_in: Vec<String>,
    /// Namespace whose pods may send webhooks, usually that of the ingress controller. Can be repeated. Default: all
    /// pods of the cluster.
    #[arg(long, value_name = "NAMESPACE")]
    web_from: Vec<String>,
    /// Namespace whose pods may read metrics. Can be repeated. Namespaces with the label `plumb.dev/metrics=enabled` may
    /// as well.
    #[arg(long, value_name = "NAMESPACE", default_value = "monitoring")]
    metrics_from: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ProfileArg {
    /// Everything.
    Standard,
    /// Reads, plumb's own objects, and impersonation.
    Strict,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum PullPolicyArg {
    /// Before each start.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// The image is loaded onto the nodes.
    Never,
}

pub(crate) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let options = options(context, args)?;
    let objects = install::install(&options);
    if options.image.is_unpublished() {
        context.out.note(
            "note: no image is published yet: the pods start once you give yours with --image REGISTRY/plumb:TAG",
        );
    }
    if options.profile == Profile::Strict && options.impersonate_in.is_empty() {
        context.out.note(
            "note: plumb may impersonate no service account yet: give the namespaces of the apps with --impersonate-in",
        );
    }
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

fn options(context: &Context, args: &Args) -> Result<InstallOptions, CommandError> {
    let image = match &args.image {
        Some(text) => text.parse().map_err(|why| {
            CommandError::because(format!("use the image `{text}`"), why).exit(ExitCode::Usage)
        })?,
        None => ImageReference::unpublished(),
    };
    Ok(InstallOptions {
        namespace: context.namespace().to_owned(),
        image,
        pull_policy: match args.image_pull_policy {
            PullPolicyArg::Always => PullPolicy::Always,
            PullPolicyArg::IfNotPresent => PullPolicy::IfNotPresent,
            PullPolicyArg::Never => PullPolicy::Never,
        },
        // With --apply an existing project must not be overwritten: it may permit less.
        project: !args.apply && !args.without_project,
        profile: match args.profile {
            ProfileArg::Standard => Profile::Standard,
            ProfileArg::Strict => Profile::Strict,
        },
        impersonate_in: args.impersonate_in.clone(),
        web_from: args.web_from.clone(),
        metrics_from: args.metrics_from.clone(),
        ..InstallOptions::default()
    })
}
