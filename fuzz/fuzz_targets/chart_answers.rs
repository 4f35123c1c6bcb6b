//! Any bytes as answers of Helm repositories and registries.
#![no_main]

#[path = "../../crates/plumb-render/tests/chart_answers/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_bytes(bytes);
});
