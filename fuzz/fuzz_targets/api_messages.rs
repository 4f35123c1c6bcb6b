//! Any bytes as messages of the API, as frames, and as requests of REST.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plumb_api::{Tables, decode, encode, unframe};

fuzz_target!(|bytes: &[u8]| {
    let tables = Tables::get();
    let _ = unframe(bytes, 1 << 20);
    for name in ["v1alpha1.Application", "application.ApplicationSyncRequest", "project.ProjectUpdateRequest"] {
        let Some(id) = tables.id(name) else { continue };
        if let Ok(value) = decode(tables, id, bytes) {
            let again = encode(tables, id, &value).expect("what was read can be written");
            decode(tables, id, &again).expect("what was written can be read");
        }
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = encode(tables, id, &value);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let (path, query) = text.split_once('?').unwrap_or((&text, ""));
    for verb in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        if let Ok(routed) = tables.route(verb, path) {
            let _ = routed.request(tables, query, bytes);
        }
    }
});
