//! Any text as the address of a Git repository or of a submodule.
#![no_main]

#[path = "../../crates/plumb-git/tests/any_address/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    check::any_text(text);
});
