//! Text to manifests.

use plumb_core::desired::{Origin, RenderedManifest};
use plumb_core::secrets::{has_sops_values, is_sops, sops_message};
use plumb_core::source::RepoPath;
use plumb_core::yaml::{self, YamlError, YamlProblem};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::RenderError;
use crate::limits::Limits;

/// The manifests of one file.
#[derive(Default)]
pub(crate) struct ReadManifests {
    pub(crate) manifests: Vec<RenderedManifest>,
    /// The memory that they take, in bytes; an estimate that is not too low.
    pub(crate) memory: usize,
}

impl ReadManifests {
    /// The documents alone.
    pub(crate) fn values(&self) -> Vec<&Value> {
        self.manifests.iter().map(|manifest| &manifest.value).collect()
    }
}

/// The YAML documents of one file, without empty ones.
pub(crate) fn yaml_documents(
    text: &[u8],
    file: &RepoPath,
    source: usize,
    limits: &Limits,
) -> Result<ReadManifests, RenderError> {
    let documents = yaml::parse_documents_bytes(text, &limits.yaml)
        .map_err(|source| yaml_error(file.to_string(), source))?;
    documents.iter().try_for_each(|document| refuse_sops(&document.value, file))?;
    let memory = documents.iter().map(|document| document.memory).sum();
    let manifests = documents
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
        .collect();
    Ok(ReadManifests { manifests, memory })
}

/// An object that SOPS encrypted must not be applied: its values are ciphertext. An object of an operator that decrypts
/// in the cluster (`SopsSecret`) is meant to look so.
fn refuse_sops(document: &Value, file: &RepoPath) -> Result<(), RenderError> {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default();
    let is_encrypted = is_sops(document) || has_sops_values(document);
    if kind.is_empty() || kind.starts_with("Sops") || !is_encrypted {
        return Ok(());
    }
    let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    // Without a rule for what to encrypt, SOPS encrypts kind and name, too.
    let is_readable = !kind.starts_with("ENC[") && !name.starts_with("ENC[");
    let shown = if is_readable { format!("{kind} {name}") } else { "an object".to_owned() };
    Err(RenderError::Refused { file: file.clone(), reason: sops_message(&shown, document) })
}

fn yaml_error(file: String, source: YamlError) -> RenderError {
    match source.what {
        YamlProblem::TooHeavy { limit } => RenderError::Memory { file, limit },
        _ => RenderError::Yaml { file, source },
    }
}

/// The YAML documents that a tool printed. `file_of` maps the first line of a document to the file that it came from.
pub(crate) fn tool_output(
    text: &[u8],
    tool: &str,
    limits: &Limits,
    file_of: impl Fn(usize) -> Option<Origin>,
) -> Result<Vec<RenderedManifest>, RenderError> {
    let documents = yaml::parse_documents_bytes(text, &limits.yaml)
        .map_err(|source| yaml_error(format!("output of {tool}"), source))?;
    let mut manifests = Vec::with_capacity(documents.len());
    for document in documents.into_iter().filter(|document| !document.value.is_null()) {
        let origin = file_of(document.line);
        let file = origin.as_ref().and_then(|origin| RepoPath::parse(&origin.file).ok());
        refuse_sops(&document.value, &file.unwrap_or_else(RepoPath::root))?;
        manifests.push(RenderedManifest { origin, value: document.value });
    }
    Ok(manifests)
}

/// One JSON document. Small numbers and maps take much more memory than text, so the memory is estimated first.
pub(crate) fn json<T: DeserializeOwned>(text: &[u8], file: &str, limits: &Limits) -> Result<T, RenderError> {
    let limit = limits.yaml.max_memory;
    if json_memory(text) > limit {
        return Err(RenderError::Memory { file: file.to_owned(), limit });
    }
    serde_json::from_slice(text).map_err(|source| RenderError::Json { file: file.to_owned(), source })
}

/// The memory that a JSON document takes once it is read, at most.
fn json_memory(text: &[u8]) -> usize {
    const MAP: usize = 700;
    const VALUE: usize = 128;
    let (mut memory, mut in_text, mut is_escaped) = (text.len(), false, false);
    for byte in text {
        match byte {
            b'"' if !is_escaped => in_text = !in_text,
            b'{' if !in_text => memory += MAP,
            b'[' | b',' if !in_text => memory += VALUE,
            _ => {}
        }
        is_escaped = in_text && *byte == b'\\' && !is_escaped;
    }
    memory
}

/// One JSON object.
pub(crate) fn json_document(
    text: &[u8],
    file: &RepoPath,
    source: usize,
    limits: &Limits,
) -> Result<ReadManifests, RenderError> {
    let value: Value = json(text, file.as_str(), limits)?;
    refuse_sops(&value, file)?;
    let origin = Some(Origin { source, file: file.as_str().to_owned(), line: 1, verbatim: true });
    let manifests = vec![RenderedManifest { value, origin }];
    Ok(ReadManifests { manifests, memory: json_memory(text) })
}
