//! Any bytes as YAML.
#![no_main]

#[path = "../checks/yaml.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_bytes(bytes);
});
