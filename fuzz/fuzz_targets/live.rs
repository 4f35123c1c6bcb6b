//! Any bytes as a live object, and as choices of metadata that must not hide an edit.
#![no_main]

#[path = "../../crates/plumb-core/tests/forged_metadata/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(object) = serde_json::from_slice(bytes) {
        check::any_object(object);
    }
    check::no_metadata_hides_an_edit(&mut check::Choices(bytes));
});
