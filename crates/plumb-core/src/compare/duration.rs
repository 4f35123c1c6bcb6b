//! Durations, as Go reads them.

/// Nanoseconds of a Go duration (`1h30m`, `90s`, `1.5h`); `None` if it is none.
pub(crate) fn parse_duration(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.len() > 20 || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        total = total.checked_add(digits.checked_mul(unit)? / scale)?;
        rest = after;
    }
    Some(sign * total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        for (one, other) in [
            ("8760h", "8760h0m0s"),
            ("90m", "1h30m0s"),
            ("1.5s", "1500ms"),
            ("0", "0s"),
            ("1h30m", "1.5h"),
            ("-60s", "-1m"),
            ("500us", "0.5ms"),
        ] {
            assert_eq!(parse_duration(one).unwrap(), parse_duration(other).unwrap(), "{one} {other}");
        }
        for text in ["", "h", "10", "1d", "1h 30m", "1.2.3s", "abc"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
