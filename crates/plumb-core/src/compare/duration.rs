//! Durations, as Go reads and prints them.

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

/// As Go's `Duration.String` prints it: `8760h0m0s`, `1m30s`, `1.5s`, `0s`. Below a second it is not needed.
pub(crate) fn print_duration(nanoseconds: i128) -> Option<String> {
    if nanoseconds == 0 {
        return Some("0s".to_owned());
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000_000, total % 1_000_000_000);
    if seconds == 0 {
        return None;
    }
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{}", format!("{fraction:09}").trim_end_matches('0'))
    };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if hours > 0 {
        format!("{sign}{hours}h{minutes}m{seconds}{fraction}s")
    } else if minutes > 0 {
        format!("{sign}{minutes}m{seconds}{fraction}s")
    } else {
        format!("{sign}{seconds}{fraction}s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        for (text, printed) in [
            ("8760h", "8760h0m0s"),
            ("90m", "1h30m0s"),
            ("1.5s", "1.5s"),
            ("0", "0s"),
            ("1h30m", "1h30m0s"),
            ("-60s", "-1m0s"),
        ] {
            assert_eq!(print_duration(parse_duration(text).unwrap()).unwrap(), printed);
        }
        for text in ["", "h", "10", "1d", "1h 30m", "1.2.3s", "abc"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
