//! Any edit of any bytes.
#![no_main]

#[path = "../../crates/plumb-core/tests/yaml_edits/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_edit(bytes);
});
