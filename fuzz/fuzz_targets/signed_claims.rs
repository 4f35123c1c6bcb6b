//! Any claims behind a valid signature: only those of plumb or Argo CD are accepted, and only in their time. The first eight
//! bytes are the time.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((now, claims)) = bytes.split_first_chunk::<8>() else { return };
    let now = i64::from_le_bytes(*now).rem_euclid(1 << 40);
    let checked = plumb_server::check_signed_claims(&String::from_utf8_lossy(claims), now);
    assert_eq!(checked, Ok(()));
});
