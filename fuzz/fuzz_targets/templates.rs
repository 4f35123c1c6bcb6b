//! Any text as a Go template.
#![no_main]

#[path = "../../crates/plumb-gotemplate/tests/any_template/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = check::any_template(text);
});
