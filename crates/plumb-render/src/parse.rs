//! Text to manifests.

use plumb_core::desired::{Origin, RenderedManifest};
use plumb_core::source::RepoPath;
use plumb_core::yaml;
use serde_json::Value;

use crate::error::RenderError;
use crate::limits::Limits;

/// The YAML documents of one file, without empty ones.
pub(crate) fn yaml_documents(
    text: &[u8],
    file: &RepoPath,
    source: usize,
    limits: &Limits,
) -> Result<Vec<RenderedManifest>, RenderError> {
    let documents = yaml::parse_documents_bytes(text, &limits.yaml)
        .map_err(|source| RenderError::Yaml { file: file.to_string(), source })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.value.is_null())
        .map(|document| RenderedManifest {
            value: document.value,
            origin: Some(Origin {
                source,
                file: file.as_str().to_owned(),
                line: document.line,
                verbatim: true,
            }),
        })
        .collect())
}

/// The YAML documents that a tool printed. `file_of` maps the first line of a document to the file that it came from.
pub(crate) fn tool_output(
    text: &[u8],
    tool: &str,
    limits: &Limits,
    file_of: impl Fn(usize) -> Option<Origin>,
) -> Result<Vec<RenderedManifest>, RenderError> {
    let documents = yaml::parse_documents_bytes(text, &limits.yaml)
        .map_err(|source| RenderError::Yaml { file: format!("output of {tool}"), source })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.value.is_null())
        .map(|document| RenderedManifest { origin: file_of(document.line), value: document.value })
        .collect())
}

/// One JSON object.
pub(crate) fn json_document(
    text: &[u8],
    file: &RepoPath,
    source: usize,
) -> Result<RenderedManifest, RenderError> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|source| RenderError::Json { file: file.to_string(), source })?;
    let origin = Some(Origin { source, file: file.as_str().to_owned(), line: 1, verbatim: true });
    Ok(RenderedManifest { value, origin })
}
