//! Any bytes as a kustomization file.
#![no_main]

#[path = "../../crates/plumb-render/tests/kustomization_any_bytes/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_bytes(bytes);
});
