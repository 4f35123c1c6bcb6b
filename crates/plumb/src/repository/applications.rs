//! The Applications and sets in the files of a repository.

use plumb_core::yaml::{Limits, parse_documents_bytes};
use plumb_crd::Application;
use serde_json::Value;

use super::RepositoryState;

/// An Application and where it is.
#[derive(Clone)]
pub(super) struct FoundApplication {
    pub(super) application: Application,
    /// Path of its file in the repository; for a rendered one, of its source.
    pub(super) file: String,
}

/// Every document of a YAML or JSON file that may be an Application or an `ApplicationSet`, with its file. Files that
/// cannot be read are templates, or no manifests.
pub(super) fn documents(state: &RepositoryState) -> Vec<(Value, String)> {
    let mut found = Vec::new();
    for file in state.manifest_files() {
        let Some(bytes) = state.read(&file) else { continue };
        if !has(&bytes, b"Application") || !has(&bytes, b"argoproj.io") {
            continue;
        }
        let Ok(documents) = parse_documents_bytes(&bytes, &Limits::default()) else { continue };
        for document in documents {
            let items = document.value.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
            found.extend(std::iter::once(document.value).chain(items).map(|value| (value, file.clone())));
        }
    }
    found
}

/// The Application in a document, if it is one.
pub(super) fn of(value: &Value) -> Option<Application> {
    let is_it = value.get("kind").and_then(Value::as_str) == Some(Application::KIND)
        && value.get("apiVersion").and_then(Value::as_str) == Some(Application::API_VERSION);
    is_it.then(|| Application::from_json(value).ok()).flatten()
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
