//! Numbers and quoted strings of templates.

use crate::convert::{float, parse_float, parse_wide_integer, truncate};
use crate::format::quote;
use crate::lexer::{Token, TokenKind};
use crate::node::NumberLiteral;

/// The number of a token.
pub(crate) fn number(token: &Token) -> Result<NumberLiteral, String> {
    let source = token.text.clone();
    let whole = |source: String, number: i128| NumberLiteral {
        integer: i64::try_from(number).ok(),
        float: i64::try_from(number).ok().map(float),
        source,
        is_complex: false,
    };
    if token.kind == TokenKind::CharConstant {
        let inner = source.trim_start_matches('\'').strip_suffix('\'').unwrap_or_default();
        let inner = if source == "'''" { "" } else { inner };
        let text = unquote_inner(inner, '\'').map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let mut characters = text.iter().flat_map(|text| text.chars());
        return match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(whole(source, i128::from(u32::from(character)))),
            _ => Err(format!("malformed character constant: {source}")),
        };
    }
    if token.kind == TokenKind::Complex || source.ends_with('i') {
        return Ok(NumberLiteral { source, integer: None, float: None, is_complex: true });
    }
    if let Some(number) = parse_wide_integer(&source) {
        if i64::try_from(number).is_err() && u64::try_from(number).is_err() {
            return Err(format!("integer overflow: {}", quote(&source)));
        }
        return Ok(whole(source, number));
    }
    let plain = source.replace('_', "");
    match parse_float(&plain).or_else(|| hex_float(&plain)) {
        None => Err(format!("illegal number syntax: {}", quote(&source))),
        Some(_) if !source.contains(['.', 'e', 'E', 'p', 'P']) => {
            Err(format!("integer overflow: {}", quote(&source)))
        }
        Some(number) if number.is_infinite() => Err(format!("illegal number syntax: {}", quote(&source))),
        Some(number) => {
            let is_whole = number.fract() == 0.0 && number.abs() < 9.2e18;
            let integer = is_whole.then(|| truncate(number));
            Ok(NumberLiteral { source, integer, float: Some(number), is_complex: false })
        }
    }
}

/// `0x1.8p-2`: a hexadecimal number times a power of two. Digits after the first 16 do not count.
fn hex_float(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { -1.0 } else { 1.0 }, digits),
        None => (1.0, text),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (mantissa, exponent) = digits.split_once(['p', 'P'])?;
    let mut exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let is_fraction = index >= whole.len();
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent = exponent.checked_sub(if is_fraction { 4 } else { 0 })?;
        } else if !is_fraction {
            exponent = exponent.checked_add(4)?;
        }
    }
    // Two factors: one alone may be too small or too large.
    let half = exponent.clamp(-2400, 2400) / 2;
    let rest = exponent.clamp(-2400, 2400) - half;
    Some(sign * float_of(value) * 2_f64.powi(half) * 2_f64.powi(rest))
}

#[expect(clippy::cast_precision_loss, reason = "a float has 53 bits, as in Go")]
fn float_of(number: u64) -> f64 {
    number as f64
}

/// Go's `strconv.Unquote` for a string in double quotes or backticks.
pub(crate) fn unquote(text: &str) -> Option<Vec<u8>> {
    if let Some(raw) = text.strip_prefix('`') {
        return Some(raw.strip_suffix('`')?.replace('\r', "").into_bytes());
    }
    unquote_inner(text.strip_prefix('"')?.strip_suffix('"')?, '"')
}

fn unquote_inner(text: &str, mark: char) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    let push = |out: &mut Vec<u8>, character: char| {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    };
    while let Some(character) = characters.next() {
        if character != '\\' {
            push(&mut out, character);
            continue;
        }
        let escaped = characters.next()?;
        let mut code = |n: usize, radix: u32| -> Option<u32> {
            let digits: String = characters.by_ref().take(n).collect();
            (digits.chars().count() == n).then(|| u32::from_str_radix(&digits, radix).ok()).flatten()
        };
        match escaped {
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(11),
            '\\' => out.push(b'\\'),
            same if same == mark => push(&mut out, mark),
            'x' => out.push(u8::try_from(code(2, 16)?).ok()?),
            'u' => push(&mut out, char::from_u32(code(4, 16)?)?),
            'U' => push(&mut out, char::from_u32(code(8, 16)?)?),
            first @ '0'..='7' => {
                let rest = code(2, 8)?;
                out.push(u8::try_from(first.to_digit(8)? * 64 + rest).ok()?);
            }
            _ => return None,
        }
    }
    Some(out)
}
