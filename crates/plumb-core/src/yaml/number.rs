//! Numbers as Go's parser takes them and as its JSON prints them.

use serde_json::{Number, Value};

/// What a plain scalar that looks like a number is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Numeric {
    Int(i64),
    /// Beyond `i64`; below, an `Int` is used.
    Large(u64),
    Float(f64),
}

/// Reads what starts with a digit or a sign.
pub(super) fn parse(text: &str) -> Option<Numeric> {
    let plain = text.replace('_', "");
    if let Some(int) = parse_int(&plain) {
        return Some(int);
    }
    if is_decimal(&plain) {
        // What is too large for a float is text.
        if let Some(float) = plain.parse::<f64>().ok().filter(|float| float.is_finite()) {
            return Some(Numeric::Float(float));
        }
    }
    // Go's fallback for binary numbers is meant for old compilers, and accepts a sign after the prefix.
    parse_radix(plain.strip_prefix("0b")?, 2)
}

/// Reads what starts with a dot. Go allows underscores between digits there.
pub(super) fn parse_fraction(text: &str) -> Option<Numeric> {
    let bytes = text.as_bytes();
    let between_digits = |index: usize| {
        let digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
        index > 0 && digit(bytes.get(index - 1)) && digit(bytes.get(index + 1))
    };
    let underscores_fit =
        bytes.iter().enumerate().all(|(index, &byte)| byte != b'_' || between_digits(index));
    let plain = text.replace('_', "");
    if !underscores_fit || !is_decimal(&plain) {
        return None;
    }
    plain.parse::<f64>().ok().filter(|float| float.is_finite()).map(Numeric::Float)
}

/// An optional sign, then hex, octal (with `0o` or a mere `0`), binary or decimal digits.
fn parse_int(plain: &str) -> Option<Numeric> {
    let (sign, unsigned) = match plain.as_bytes().first()? {
        b'-' => ("-", &plain[1..]),
        b'+' => ("", &plain[1..]),
        _ => ("", plain),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'b' | b'B', _, ..] => (2, &unsigned[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &unsigned[2..]),
        [b'0', b'x' | b'X', _, ..] => (16, &unsigned[2..]),
        [b'0'] => (10, unsigned),
        [b'0', ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    match sign {
        "" => parse_radix(digits, radix),
        _ => parse_radix(&format!("-{digits}"), radix),
    }
    // A sign in front keeps a number beyond `i64` from being an integer at all.
    .filter(|number| unsigned.len() == plain.len() || matches!(number, Numeric::Int(_)))
}

fn parse_radix(digits: &str, radix: u32) -> Option<Numeric> {
    i64::from_str_radix(digits, radix)
        .map(Numeric::Int)
        .or_else(|_| u64::from_str_radix(digits, radix).map(Numeric::Large))
        .ok()
}

/// `[-+]? ( .digits | digits [ . digits? ] ) ( e [-+]? digits )?`
fn is_decimal(plain: &str) -> bool {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|text| digits(text.strip_prefix(['-', '+']).unwrap_or(text)))
}

/// The number after its way through JSON: what prints as an integer is one if it fits, everything else is a
/// float. `None` for what JSON cannot say.
pub(super) fn to_json(number: Numeric) -> Option<Value> {
    match number {
        Numeric::Int(int) => Some(Value::from(int)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "this is how Kubernetes reads integers beyond 64 bits"
        )]
        Numeric::Large(large) => Number::from_f64(large as f64).map(Value::Number),
        Numeric::Float(float) => match format!("{float}").parse::<i64>() {
            Ok(int) => Some(Value::from(int)),
            Err(_) => Number::from_f64(float).map(Value::Number),
        },
    }
}

/// A float as a key: the shortest text that a 32-bit float needs, with an exponent from a million on and
/// below a ten-thousandth.
pub(super) fn float_key(float: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the Go library prints keys as 32-bit floats")]
    let short = float as f32;
    if short.is_nan() {
        return ".nan".to_owned();
    }
    if short.is_infinite() {
        return if short > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{short:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        -4..=5 => format!("{short}"),
        exponent if exponent < 0 => format!("{mantissa}e-{:02}", -exponent),
        exponent => format!("{mantissa}e+{exponent:02}"),
    }
}
