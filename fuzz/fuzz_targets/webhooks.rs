//! Any bytes as the payload of a webhook, of every sender.
#![no_main]

#[path = "../../crates/plumb-web/tests/payloads/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check::any_payload(bytes);
});
