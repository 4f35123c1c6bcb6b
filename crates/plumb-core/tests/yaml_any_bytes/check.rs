//! What must hold for any bytes that are read as YAML. Shared by the fuzz target and by a test of plumb-core that
//! runs everywhere.

use plumb_core::yaml::{Limits, parse_documents, parse_documents_bytes};

/// No panic, no more than the reader may cost, and what was read is read again from its JSON. Says whether it was
/// read.
pub(crate) fn any_bytes(bytes: &[u8]) -> bool {
    let Ok(documents) = parse_documents_bytes(bytes, &Limits::default()) else { return false };
    for document in documents {
        // YAML 1.1 breaks lines where JSON does not; inside quotes a break is folded.
        let text = document.value.to_string();
        let text =
            text.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        // JSON may contain what YAML forbids in a text, such as DEL: then there is nothing to compare.
        if let Ok(again) = parse_documents(&text, &Limits::default()) {
            let values: Vec<_> = again.into_iter().map(|document| document.value).collect();
            assert_eq!(values, [document.value], "{text}");
        }
    }
    true
}
