//! Any bytes: no panic, no more than the reader may cost, and what was read is read again from its JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumb_core::yaml::{Limits, parse_documents, parse_documents_bytes};

fuzz_target!(|bytes: &[u8]| {
    let Ok(documents) = parse_documents_bytes(bytes, &Limits::default()) else { return };
    for document in documents {
        let text = document.value.to_string();
        // JSON may contain what YAML forbids in a text, such as DEL: then there is nothing to compare.
        if let Ok(again) = parse_documents(&text, &Limits::default()) {
            let values: Vec<_> = again.into_iter().map(|document| document.value).collect();
            assert_eq!(values, [document.value], "{text}");
        }
    }
});
