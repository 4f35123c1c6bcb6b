//! Durations as Go writes them.

use jiff::SignedDuration;

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration such as 30s, 5m or 1h30m")]
pub struct NotADuration(pub String);

/// Go counts nanoseconds in 63 bits: about 292 years.
const MAX_NANOS: u128 = i64::MAX as u128;

/// More digits after the point do not change a result in nanoseconds.
const MAX_FRACTION_DIGITS: usize = 18;

/// Go's `time.ParseDuration`: `1h30m`, `1.5s`, `-100ms`, `0`.
pub fn parse_go_duration(text: &str) -> Result<SignedDuration, NotADuration> {
    signed_nanos(text).map(SignedDuration::from_nanos).ok_or_else(|| NotADuration(text.to_owned()))
}

fn signed_nanos(text: &str) -> Option<i64> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
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
    let nanos = i64::try_from(nanos).ok()?;
    Some(if is_negative { -nanos } else { nanos })
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
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos = whole.checked_mul(unit).filter(|nanos| *nanos <= MAX_NANOS)?;
    let (mut numerator, mut denominator) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(MAX_FRACTION_DIGITS) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    Some((nanos + numerator * unit / denominator, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("-0", Some(0)),
            ("5s", Some(5_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("2.s", Some(2_000)),
            ("100ms", Some(100)),
            ("+3m", Some(180_000)),
            ("-60s", Some(-60_000)),
            ("1h0m0.25s", Some(3_600_250)),
            ("0.000000000000000000009s", Some(0)),
            ("", None),
            ("-", None),
            ("5", None),
            ("5 s", None),
            (" 5s", None),
            ("1h 30m", None),
            ("s", None),
            ("h", None),
            (".s", None),
            ("1d", None),
            ("1h30", None),
            ("1hh", None),
            ("1.2.3s", None),
            ("abc", None),
            ("9999999999h", None),
            ("340282366920938463463374607431768211455s", None),
            ("99999999999999999999999999999999999999999999s", None),
        ];
        for (text, millis) in cases {
            assert_eq!(parse_go_duration(text).ok(), millis.map(SignedDuration::from_millis), "{text}");
        }
    }

    #[test]
    fn spellings_of_the_same_duration() {
        for (one, other) in [
            ("8760h", "8760h0m0s"),
            ("90m", "1h30m0s"),
            ("1.5s", "1500ms"),
            ("0", "0s"),
            ("1h30m", "1.5h"),
            ("-60s", "-1m"),
            ("500us", "0.5ms"),
            ("3ns", "0.003µs"),
        ] {
            assert_eq!(parse_go_duration(one).unwrap(), parse_go_duration(other).unwrap(), "{one} {other}");
        }
    }
}
