//! Any bytes as an Application, a project or a Secret.
#![no_main]

#[path = "../../crates/plumb-crd/tests/byte_soup/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_bytes(bytes);
});
