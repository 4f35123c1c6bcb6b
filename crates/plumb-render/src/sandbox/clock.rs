//! The time that a tool sees.
//!
//! Without privileges a process cannot get another clock. But it prints local time, and `TZ` names the file of its time
//! zone: one whose clock is more than a year ahead. Times that a chart's template prints in another zone are changed in
//! the template (see `helm::set_clock`).

use std::ffi::OsString;
use std::path::Path;

/// Which time a tool sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The time of the machine, in UTC.
    Real,
    /// A time with another year, month, day, hour, minute and second. A program other than Helm still sees the real
    /// time if it names a zone or counts seconds since 1970.
    Moved,
}

/// Name of the time zone file in a scratch directory.
const FILE: &str = "zone";

/// How far the moved clock is ahead: 400 days, 7 hours, 7 minutes and 7 seconds.
pub(crate) const CLOCK_AHEAD_SECONDS: i32 = 400 * 86_400 + 7 * 3_600 + 7 * 60 + 7;

impl Clock {
    /// Sets the clock for all tools that run in this scratch directory.
    pub(crate) fn set(self, scratch: &Path) -> std::io::Result<()> {
        match self {
            Self::Real => Ok(()),
            Self::Moved => std::fs::write(scratch.join(FILE), zone_file()),
        }
    }
}

/// The value of `TZ` for a tool that runs in this scratch directory.
pub(super) fn zone(scratch: &Path) -> OsString {
    let file = scratch.join(FILE);
    if file.exists() { file.into() } else { "UTC".into() }
}

/// A time zone with one constant offset, in the format of RFC 9636 (`TZif`, version 1).
fn zone_file() -> Vec<u8> {
    const NAME: &[u8] = b"AHEAD\0";
    let mut file = b"TZif".to_vec();
    file.extend([0; 16]);
    // No leap seconds, no transitions, one local time type, six bytes of names.
    for count in [0, 0, 0, 0, 1, 6_u32] {
        file.extend(count.to_be_bytes());
    }
    file.extend(CLOCK_AHEAD_SECONDS.to_be_bytes());
    // Not daylight saving time; the name starts at index 0.
    file.extend([0, 0]);
    file.extend(NAME);
    file
}
