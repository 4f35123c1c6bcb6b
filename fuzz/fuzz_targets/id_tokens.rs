//! Any bytes as tokens: nothing that was not signed is ever accepted, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    assert!(!plumb_server::accepts_token(&text), "a token that nobody signed is accepted");
});
