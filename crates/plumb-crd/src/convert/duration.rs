//! Durations as Go writes them.

use std::time::Duration;

/// The text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration such as 30s, 5m or 1h30m")]
pub struct NotADuration(String);

/// Go's `time.ParseDuration`, without negative results: `1h30m`, `1.5s`, `100ms`, `0`.
pub fn parse_go_duration(text: &str) -> Result<Duration, NotADuration> {
    parse_units(text).ok_or_else(|| NotADuration(text.to_owned()))
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
const MAX_NANOS: u128 = i64::MAX as u128;
const MAX_SECONDS: u64 = i64::MAX as u64 / 1_000_000_000;

fn parse_units(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest)?;
        nanos = nanos.checked_add(part).filter(|total| *total <= MAX_NANOS)?;
        rest = after;
    }
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// One number with its unit, in nanoseconds, and the text after it.
fn parse_part(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(scale).filter(|nanos| *nanos <= MAX_NANOS)?;
    let mut digit_scale = scale;
    for digit in fraction.bytes() {
        digit_scale /= 10;
        nanos += u128::from(digit - b'0') * digit_scale;
    }
    Some((nanos, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        let cases: &[(&str, Option<u64>)] = &[
            ("0", Some(0)),
            ("5s", Some(5_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("2.s", Some(2_000)),
            ("100ms", Some(100)),
            ("+3m", Some(180_000)),
            ("1h0m0.25s", Some(3_600_250)),
            ("", None),
            ("5", None),
            ("5 s", None),
            (" 5s", None),
            ("-5s", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1h30", None),
            ("1hh", None),
            ("9999999999h", None),
            ("340282366920938463463374607431768211455s", None),
            ("99999999999999999999999999999999999999999999s", None),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_go_duration(text).ok(), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn a_bare_number_of_a_retry_is_seconds() {
        assert_eq!(parse_retry_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_retry_duration("2m"), Ok(Duration::from_mins(2)));
        assert!(parse_retry_duration("ten").is_err());
        assert!(parse_retry_duration("18446744073709551615").is_err());
    }
}
