//! Forged metadata of live objects: what the fuzz target `live` checks, on random choices. Deterministic;
//! `PLUMB_FUZZ_CASES` and `PLUMB_FUZZ_SEED` make it longer and other.

#![expect(clippy::expect_used, clippy::panic, reason = "what does not hold fails the test")]

mod check;

use check::Choices;
use serde_json::json;

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.to_le_bytes()[3]
        };
        (0..length).map(|_| next()).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for by the environment")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_metadata_hides_an_edit() {
    let mut dice = Dice(number("PLUMB_FUZZ_SEED", 0x9E37_79B9_7F4A_7C15));
    for case in 0..number("PLUMB_FUZZ_CASES", 20_000) {
        let bytes = dice.bytes(64);
        let result = std::panic::catch_unwind(|| check::no_metadata_hides_an_edit(&mut Choices(&bytes)));
        assert!(result.is_ok(), "case {case}: {bytes:?}");
    }
}

#[test]
fn live_objects_of_any_shape_are_read() {
    for metadata in [
        json!(null),
        json!([]),
        json!({"name": 1, "managedFields": {"a": 1}, "annotations": [], "labels": "x"}),
        json!({"name": "x", "managedFields": [null, 1, {"manager": 1, "fieldsV1": "x", "time": []}]}),
    ] {
        check::any_object(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": [], "status": 1}),
        );
    }
}
