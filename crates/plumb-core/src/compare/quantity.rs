//! Resource quantities, as Kubernetes reads them.

use serde_json::Value;

/// A quantity in billionths, which is as fine as Kubernetes goes. Two spellings of one quantity are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

const NANO: i128 = 1_000_000_000;
/// The suffixes by powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The suffixes by powers of 1000, from billionths.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

impl Quantity {
    /// Reads a quantity from a text or a number.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Reads `100m`, `1.5Gi`, `2e3`, `0.5` …
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.as_bytes().first()? {
            b'-' => (-1, text.get(1..)?),
            b'+' => (1, text.get(1..)?),
            _ => (1, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || number.len() > 30 || fraction.contains('.') {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?;
        let (factor, exponent) = suffix_of(suffix)?;
        let value = digits.checked_mul(factor)?;
        Some(Self(sign * scaled(value, exponent - scale + 9)?))
    }

    /// The spelling in which the API server prints a quantity of a built-in kind: `1000m` is `1`, `0.5Gi` is `512Mi`.
    /// `None` if it is no quantity, or is written with an exponent.
    pub fn canonical(text: &str) -> Option<String> {
        let Self(value) = Self::parse(text)?;
        if text.contains(['e', 'E']) && !text.ends_with(['E', 'i']) {
            return None;
        }
        if value == 0 {
            return Some("0".to_owned());
        }
        // Small and fractional numbers of bytes are printed without a binary suffix.
        if text.ends_with('i') && value % NANO == 0 && (value / NANO).abs() >= 1024 {
            let whole = value / NANO;
            let fits = BINARY.iter().enumerate().rev();
            let mut fits = fits.filter_map(|(power, suffix)| {
                let unit = 1024_i128.pow(u32::try_from(power).ok()?);
                (whole % unit == 0).then(|| format!("{}{suffix}", whole / unit))
            });
            return fits.next();
        }
        let fits = DECIMAL.iter().enumerate().rev();
        let mut fits = fits.filter_map(|(power, suffix)| {
            let unit = 1000_i128.pow(u32::try_from(power).ok()?);
            (value % unit == 0).then(|| format!("{}{suffix}", value / unit))
        });
        fits.next()
    }

    /// Does the text use a suffix that only quantities have (`m`, `Ki`, `Gi`, `k` …)?
    pub fn has_suffix(text: &str) -> bool {
        Self::parse(text).is_some() && text.ends_with(|c: char| c.is_ascii_alphabetic())
    }
}

/// `value` times ten to `exponent`; what does not fit into billionths is rounded up, as the server does.
fn scaled(value: i128, exponent: i32) -> Option<i128> {
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        value.checked_mul(power)
    } else {
        let rounded_up = i128::from(value % power != 0);
        Some(value / power + rounded_up)
    }
}

fn suffix_of(suffix: &str) -> Option<(i128, i32)> {
    let decimal = |exponent| Some((1, exponent));
    let binary = |power| Some((1024_i128.pow(power), 0));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-18..=18).contains(&exponent).then_some((1, exponent))
        }
    }
}

// The unit that the type counts in, for readers of `scaled`.
const _: () = assert!(NANO == 10_i128.pow(9));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_quantity_are_equal() {
        for (one, other) in [
            ("1000m", "1"),
            ("0.1", "100m"),
            ("3072Mi", "3Gi"),
            ("0.5Gi", "512Mi"),
            ("1073741824", "1Gi"),
            ("12000m", "12"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("+5", "5"),
            (".5", "500m"),
            ("5.", "5"),
            ("1500u", "1.5m"),
        ] {
            assert_eq!(Quantity::parse(one).unwrap(), Quantity::parse(other).unwrap(), "{one} {other}");
        }
    }

    #[test]
    fn the_api_server_prints_the_shortest_spelling() {
        for (text, expected) in [
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("0.1", "100m"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1536Mi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("0.5Ki", "512"),
            ("1000M", "1G"),
            ("1024", "1024"),
            ("1000", "1k"),
            ("0", "0"),
            ("-2000m", "-2"),
            ("2E", "2E"),
        ] {
            assert_eq!(Quantity::canonical(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["1e3", "1E3", "x", ""] {
            assert_eq!(Quantity::canonical(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_none() {
        for text in [
            "",
            "-",
            "m",
            "1KiB",
            "1 Gi",
            "abc",
            "1..2",
            "1e",
            "1e99",
            "0x10",
            "1_000",
            "9999999999999999999999999999999",
        ] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        assert_ne!(Quantity::parse("12"), Quantity::parse("120"));
        assert!(Quantity::parse("-1") < Quantity::parse("1m"));
    }
}
