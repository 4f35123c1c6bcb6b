//! Reading dumps and schemas.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use plumb_core::desired::DesiredSet;
use plumb_core::dump::{LiveDump, read_dump};
use plumb_core::schema::SchemaSet;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;

/// The objects of all dumps. `-` is stdin.
pub(super) fn live(files: &[PathBuf]) -> Result<LiveDump, CommandError> {
    let mut live = LiveDump::new();
    for file in files {
        read_dump(&bytes(file)?, &mut live).map_err(|error| {
            CommandError::because(format!("read the dump {}", file.display()), error)
                .hint("make it with `kubectl get KINDS --all-namespaces --show-managed-fields -o yaml`")
                .exit(ExitCode::Usage)
        })?;
    }
    Ok(live)
}

/// The schemas of the given documents, and of the CRDs of the cluster and of Git. Those of the cluster win.
pub(super) fn schemas(
    files: &[PathBuf],
    live: &LiveDump,
    desired: &DesiredSet,
) -> Result<SchemaSet, CommandError> {
    let schemas = openapi(files)?;
    let of_git = desired.objects.values().map(|object| &object.manifest);
    Ok(schemas.with_crds(of_git).with_crds(live.values()))
}

/// The schemas of the given documents.
pub(crate) fn openapi(files: &[PathBuf]) -> Result<SchemaSet, CommandError> {
    let mut schemas = SchemaSet::default();
    for file in files {
        let document = serde_json::from_slice(&bytes(file)?).map_err(|error| {
            CommandError::because(format!("read the schemas in {}", file.display()), error)
        })?;
        schemas = schemas.with_openapi_file(document).ok_or_else(|| {
            CommandError::usage(format!("{} is not an OpenAPI document", file.display()))
                .hint("`kubectl get --raw /openapi/v2` prints one for all kinds")
        })?;
    }
    Ok(schemas)
}

/// The kinds that are compared without a schema: their defaults are not known.
pub(super) fn without_schema(schemas: &SchemaSet, live: &LiveDump, desired: &DesiredSet) -> BTreeSet<String> {
    let compared = desired.objects.values().filter(|object| live.contains_key(&object.key));
    let kinds = compared.map(|object| object.manifest.gvk()).filter(|gvk| schemas.kind(gvk).is_none());
    kinds.map(|gvk| format!("{} {}", gvk.api_version(), gvk.kind)).collect()
}

/// Says which kinds these are.
pub(super) fn note_without_schema(context: &Context, kinds: BTreeSet<String>) {
    if !kinds.is_empty() {
        let kinds: Vec<String> = kinds.into_iter().collect();
        context.out.note(&format!(
            "note: no schema of {}: their defaults are not known\n\
             hint: `kubectl get --raw /openapi/v2 > openapi.json`, then --schemas openapi.json",
            kinds.join(", ")
        ));
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(file).map(|read| bytes = read)
    };
    read.map_err(|error| CommandError::because(format!("read {}", file.display()), error))?;
    Ok(bytes)
}
