//! How Go writes floating-point numbers.

/// The digits of a number without its point, and where the point is: `0.d₁d₂d₃… × 10^point`.
struct Decimal {
    digits: Vec<u8>,
    point: i32,
}

/// The shortest digits that read back as the same number.
fn shortest(number: f64) -> Decimal {
    from_scientific(&format!("{:e}", number.abs()))
}

/// So many digits after the first, correctly rounded.
fn rounded(number: f64, decimals: usize) -> Decimal {
    from_scientific(&format!("{:.*e}", decimals, number.abs()))
}

fn from_scientific(text: &str) -> Decimal {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if digits.iter().all(|digit| *digit == b'0') {
        return Decimal { digits, point: 1 };
    }
    Decimal { digits, point: exponent + 1 }
}

fn special(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

fn sign(number: f64) -> &'static str {
    if number.is_sign_negative() { "-" } else { "" }
}

fn exponent_form(number: f64, decimal: &Decimal, upper: bool) -> String {
    let exponent = decimal.point - 1;
    let digits = String::from_utf8_lossy(&decimal.digits);
    let (first, rest) = digits.split_at(1.min(digits.len()));
    let point = if rest.is_empty() { "" } else { "." };
    let e = if upper { 'E' } else { 'e' };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{}{first}{point}{rest}{e}{exponent_sign}{:02}", sign(number), exponent.abs())
}

fn plain_form(number: f64, decimal: &Decimal) -> String {
    let digits = String::from_utf8_lossy(&decimal.digits).into_owned();
    let point = decimal.point;
    let text = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(usize::try_from(-point).unwrap_or(0)))
    } else {
        let point = usize::try_from(point).unwrap_or(0);
        if digits.len() <= point {
            format!("{digits}{}", "0".repeat(point - digits.len()))
        } else {
            format!("{}.{}", &digits[..point], &digits[point..])
        }
    };
    format!("{}{text}", sign(number))
}

/// `%g` with so many digits; `None` is the shortest, as in `%v`. The exponent form is used below 1e-04, and where
/// the number needs more digits before its point than it has (for the shortest: from 1e+06).
pub fn general(number: f64, precision: Option<usize>, upper: bool) -> String {
    if let Some(text) = special(number) {
        return text.to_owned();
    }
    let mut decimal = match precision {
        None => shortest(number),
        Some(precision) => rounded(number, precision.max(1) - 1),
    };
    while decimal.digits.len() > 1 && decimal.digits.last() == Some(&b'0') {
        decimal.digits.pop();
    }
    let n_digits = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX);
    let bound = match precision.map(|precision| i32::try_from(precision.max(1)).unwrap_or(i32::MAX)) {
        None => 6,
        Some(precision) if precision > n_digits && n_digits >= decimal.point => n_digits,
        Some(precision) => precision,
    };
    let exponent = decimal.point - 1;
    if exponent < -4 || exponent >= bound {
        exponent_form(number, &decimal, upper)
    } else {
        plain_form(number, &decimal)
    }
}

/// `%e` with so many decimals; `None` is the shortest.
pub(crate) fn scientific(number: f64, decimals: Option<usize>, upper: bool) -> String {
    if let Some(text) = special(number) {
        return text.to_owned();
    }
    let decimal = decimals.map_or_else(|| shortest(number), |decimals| rounded(number, decimals));
    exponent_form(number, &decimal, upper)
}

/// `%f` with so many decimals; `None` is the shortest.
pub(crate) fn fixed(number: f64, decimals: Option<usize>) -> String {
    if let Some(text) = special(number) {
        return text.to_owned();
    }
    match decimals {
        None => plain_form(number, &shortest(number)),
        Some(decimals) => format!("{}{:.decimals$}", sign(number), number.abs()),
    }
}

/// A number in JSON, as Go's `encoding/json` writes it.
pub(crate) fn json(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        // Go removes the zero in `e-09`.
        let text = scientific(number, None, false);
        return match text.split_once("e-0") {
            Some((mantissa, digit)) => format!("{mantissa}e-{digit}"),
            None => text,
        };
    }
    fixed(number, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_go() {
        let shown = |number: f64| {
            format!("{} {} {}", general(number, None, false), fixed(number, None), json(number))
        };
        assert_eq!(shown(3.0), "3 3 3");
        assert_eq!(shown(999_999.0), "999999 999999 999999");
        assert_eq!(shown(1_000_000.0), "1e+06 1000000 1000000");
        assert_eq!(shown(123_456_789.0), "1.23456789e+08 123456789 123456789");
        assert_eq!(shown(0.000_01), "1e-05 0.00001 0.00001");
        assert_eq!(shown(-2.5), "-2.5 -2.5 -2.5");
        assert_eq!(shown(1e21), "1e+21 1000000000000000000000 1e+21");
        assert_eq!(shown(1e-9), "1e-09 0.000000001 1e-9");
        assert_eq!(shown(0.0), "0 0 0");
        assert_eq!(general(1234.5, Some(3), false), "1.23e+03");
        assert_eq!(scientific(1234.5, Some(6), false), "1.234500e+03");
        assert_eq!(fixed(2.345, Some(2)), "2.35");
        assert_eq!(fixed(0.125, Some(2)), "0.12");
    }
}
