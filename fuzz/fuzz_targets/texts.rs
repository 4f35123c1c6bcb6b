//! Any text where a user may write one: addresses, patterns, annotations, versions, times.
#![no_main]

#[path = "../../crates/plumb-core/tests/any_text/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    check::any_text(text);
});
