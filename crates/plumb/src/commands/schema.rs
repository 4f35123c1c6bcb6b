//! `plumb schema`

use std::path::PathBuf;

use plumb_crd::{json_schema, schema_kinds};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::output::Format;

/// Print the JSON schema of a kind, of plugins or of settings, for editors and for checks in CI.
///
/// Editors with a YAML language server use it by a comment in the first line of a file:
/// `# yaml-language-server: $schema=application.json`. `plumb schema --to DIR` writes a file per kind, named as kubeconform
/// looks for them (`{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json`).
///
/// Examples: `plumb schema application`, `plumb schema settings`, `plumb schema --to schemas`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `application`, `appproject`, `applicationset`, `driftreport`, `plugin` (a text in `plumb-plugins`) or
    /// `settings` (`argocd-cm` and `argocd-cmd-params-cm`).
    #[arg(value_name = "KIND", required_unless_present = "to", conflicts_with = "to")]
    kind: Option<String>,
    /// Write the schemas of all kinds into this directory.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if let Some(folder) = &args.to {
        let cannot = |error| CommandError::because(format!("write to {}", folder.display()), error);
        std::fs::create_dir_all(folder).map_err(cannot)?;
        for (kind, version) in schema_kinds() {
            let schema = json_schema(&kind).unwrap_or_default();
            let text = serde_json::to_string_pretty(&schema)
                .map_err(|error| CommandError::because("write JSON", error))?;
            let file = folder.join(format!("{}_{version}.json", kind.to_lowercase()));
            std::fs::write(&file, text).map_err(cannot)?;
            context.out.note(&format!("{} written", file.display()));
        }
        return Ok(ExitCode::Success);
    }
    let kind = args.kind.as_deref().unwrap_or_default();
    let schema = json_schema(kind).ok_or_else(|| {
        CommandError::usage(format!("there is no schema of `{kind}`"))
            .hint("use one of application, appproject, applicationset, driftreport, plugin, settings")
    })?;
    context.out.object(Format::Json, &schema)?;
    Ok(ExitCode::Success)
}
