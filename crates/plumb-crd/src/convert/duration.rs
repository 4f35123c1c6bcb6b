//! Durations of the Application's spec.

use std::time::Duration;

pub use plumb_core::duration::NotADuration;

/// A Go duration that is not negative: `1h30m`, `1.5s`, `100ms`, `0`.
pub fn parse_go_duration(text: &str) -> Result<Duration, NotADuration> {
    let duration = plumb_core::duration::parse_go_duration(text)?;
    Duration::try_from(duration).map_err(|_| NotADuration(text.to_owned()))
}

/// A bare number is seconds, anything else a Go duration: the rule of `retry.backoff`.
pub fn parse_retry_duration(text: &str) -> Result<Duration, NotADuration> {
    match text.parse::<u64>() {
        Ok(seconds) if seconds <= MAX_SECONDS => Ok(Duration::from_secs(seconds)),
        Ok(_) => Err(NotADuration(text.to_owned())),
        Err(_) => parse_go_duration(text),
    }
}

/// Go counts nanoseconds in 63 bits: about 292 years.
const MAX_SECONDS: u64 = i64::MAX as u64 / 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_duration_is_refused() {
        assert_eq!(parse_go_duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_go_duration("-5s"), Err(NotADuration("-5s".to_owned())));
        assert!(parse_go_duration("5").is_err());
    }

    #[test]
    fn a_bare_number_of_a_retry_is_seconds() {
        assert_eq!(parse_retry_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_retry_duration("2m"), Ok(Duration::from_mins(2)));
        assert!(parse_retry_duration("ten").is_err());
        assert!(parse_retry_duration("18446744073709551615").is_err());
    }
}
