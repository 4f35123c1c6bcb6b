//! Certificates that end soon.

use jiff::{SignedDuration, Timestamp};

/// A certificate that ends within this time is worth a line.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// How long a certificate is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Long enough.
    Later,
    /// It ends within two weeks.
    Soon,
    /// It has ended.
    Over,
}

impl Expiry {
    /// Of a certificate that is valid until `not_after`.
    pub fn of(not_after: Timestamp, now: Timestamp) -> Self {
        if not_after < now {
            Self::Over
        } else if not_after.duration_since(now) < SOON {
            Self::Soon
        } else {
            Self::Later
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_weeks_are_soon() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-05-15T00:00:00Z");
        for (until, expected) in [
            ("2026-05-14T23:59:59Z", Expiry::Over),
            ("2026-05-15T00:00:00Z", Expiry::Soon),
            ("2026-05-28T23:59:59Z", Expiry::Soon),
            ("2026-05-29T00:00:00Z", Expiry::Later),
        ] {
            assert_eq!(Expiry::of(at(until), now), expected, "{until}");
        }
    }
}
