//! Base64 text, as Secrets and kubeconfigs hold it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text in a base64 text, if it is one.
pub(crate) fn decode(text: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()
}

/// Bytes as base64 text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
