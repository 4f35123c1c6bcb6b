//! The time that a tool sees.
//!
//! A program cannot be given another clock without the rights of an administrator. But what it prints of the time is
//! the time of its zone, and its zone is a file that `TZ` names: one in which it is more than a year later. What a
//! chart's template prints in a zone of its own choice is moved in the template.

use std::ffi::OsString;
use std::path::Path;

use crate::helm::now;
use crate::{Limits, RenderError};

/// Which time templates print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// That of the machine, in UTC.
    Real,
    /// Another year, month, day, hour, minute and second. What a program other than Helm prints in a zone that it
    /// names, and the seconds since 1970 there, are those of the machine all the same.
    Moved,
}

/// The file of the zone in a scratch directory.
const FILE: &str = "zone";

/// How many seconds its clocks are ahead: a year, five weeks, and no full hours.
const AHEAD: i32 = 400 * 86_400 + 7 * 3_600 + 7 * 60 + 7;

impl Clock {
    /// Sets the clock of all tools that run in this scratch directory.
    pub(crate) fn set(self, scratch: &Path) -> std::io::Result<()> {
        match self {
            Self::Real => Ok(()),
            Self::Moved => std::fs::write(scratch.join(FILE), zone_file()),
        }
    }

    /// Sets the clock of the charts at a directory of it and below, once they are written there.
    pub(crate) fn set_in_charts(self, directory: &Path, limits: &Limits) -> Result<(), RenderError> {
        match self {
            Self::Real => Ok(()),
            Self::Moved => now::move_ahead(directory, AHEAD, limits),
        }
    }
}

/// The value of `TZ` for a tool that runs in this scratch directory.
pub(super) fn zone(scratch: &Path) -> OsString {
    let file = scratch.join(FILE);
    if file.exists() { file.into() } else { "UTC".into() }
}

/// A zone that has always had the same offset, as RFC 9636 (`TZif`, version 1) writes it.
fn zone_file() -> Vec<u8> {
    const NAME: &[u8] = b"AHEAD\0";
    let mut file = b"TZif".to_vec();
    file.extend([0; 16]);
    // No leap seconds and no changes, one type of local time, the letters of its name.
    for count in [0, 0, 0, 0, 1, 6_u32] {
        file.extend(count.to_be_bytes());
    }
    file.extend(AHEAD.to_be_bytes());
    // No summer time; the name begins at the first letter.
    file.extend([0, 0]);
    file.extend(NAME);
    file
}
