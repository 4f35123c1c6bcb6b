//! Sprig's functions for numbers.

use super::table::{Row, Type, integer, new_text, text};
use crate::budget::Fault;
use crate::convert::{float, to_float, to_integer};
use crate::format::sprint;
use crate::value::{Items, Scope, Value};

const ANY: Option<Type> = Some(Type::Any);
const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) const ROWS: &[Row] = &[
    ("atoi", &[Type::Text], None, |_, given| {
        let text = text(given, 0);
        let digits = text.strip_prefix(['+', '-']).unwrap_or(&text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
        Ok(Value::Int(if is_number { text.parse().unwrap_or(limit) } else { 0 }))
    }),
    ("int", ONE, None, |_, given| Ok(Value::Int(to_integer(&given[0])))),
    ("int64", ONE, None, |_, given| Ok(Value::Int64(to_integer(&given[0])))),
    ("float64", ONE, None, |_, given| Ok(Value::Float(to_float(&given[0])))),
    ("toDecimal", ONE, None, |scope, given| {
        let text = String::from_utf8_lossy(&sprint(scope, given)?).into_owned();
        Ok(Value::Int64(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    ("add1", ONE, None, |_, given| Ok(Value::Int64(to_integer(&given[0]).wrapping_add(1)))),
    ("add", &[], ANY, |_, given| Ok(Value::Int64(given.iter().map(to_integer).fold(0, i64::wrapping_add)))),
    ("sub", TWO, None, |_, given| {
        Ok(Value::Int64(to_integer(&given[0]).wrapping_sub(to_integer(&given[1]))))
    }),
    ("div", TWO, None, |_, given| divided(given, i64::wrapping_div)),
    ("mod", TWO, None, |_, given| divided(given, i64::wrapping_rem)),
    ("mul", ONE, ANY, |_, given| Ok(Value::Int64(given.iter().map(to_integer).fold(1, i64::wrapping_mul)))),
    ("max", ONE, ANY, |_, given| Ok(Value::Int64(given.iter().map(to_integer).max().unwrap_or(0)))),
    ("biggest", ONE, ANY, |_, given| Ok(Value::Int64(given.iter().map(to_integer).max().unwrap_or(0)))),
    ("min", ONE, ANY, |_, given| Ok(Value::Int64(given.iter().map(to_integer).min().unwrap_or(0)))),
    ("maxf", ONE, ANY, |_, given| {
        Ok(Value::Float(given.iter().map(to_float).fold(f64::NEG_INFINITY, f64::max)))
    }),
    ("minf", ONE, ANY, |_, given| Ok(Value::Float(given.iter().map(to_float).fold(f64::INFINITY, f64::min)))),
    ("add1f", ONE, None, |_, given| {
        Ok(Value::Float(folded(&[given[0].clone(), Value::Float(1.0)], Decimal::plus, |a, b| a + b)))
    }),
    ("addf", &[], ANY, |_, given| Ok(Value::Float(folded(given, Decimal::plus, |a, b| a + b)))),
    ("subf", ONE, ANY, |_, given| Ok(Value::Float(folded(given, minus, |a, b| a - b)))),
    ("divf", ONE, ANY, |_, given| {
        if given[1..].iter().any(|divisor| to_float(divisor) == 0.0) {
            return Err(Fault::new("decimal division by 0"));
        }
        Ok(Value::Float(folded(given, Decimal::divided_by, |a, b| a / b)))
    }),
    ("mulf", ONE, ANY, |_, given| Ok(Value::Float(folded(given, Decimal::times, |a, b| a * b)))),
    ("ceil", ONE, None, |_, given| Ok(Value::Float(to_float(&given[0]).ceil()))),
    ("floor", ONE, None, |_, given| Ok(Value::Float(to_float(&given[0]).floor()))),
    ("round", &[Type::Any, Type::Int], Some(Type::Float), |_, given| Ok(Value::Float(round(given)))),
    ("until", &[Type::Int], None, |scope, given| {
        let count = integer(given, 0);
        numbers(scope, 0, count, if count < 0 { -1 } else { 1 })
    }),
    ("untilStep", &[Type::Int, Type::Int, Type::Int], None, |scope, given| {
        numbers(scope, integer(given, 0), integer(given, 1), integer(given, 2))
    }),
    ("seq", &[], Some(Type::Int), seq),
];

fn divided(given: &[Value], divide: fn(i64, i64) -> i64) -> Result<Value, Fault> {
    match to_integer(&given[1]) {
        0 => Err(Fault::new("runtime error: integer divide by zero")),
        divisor => Ok(Value::Int64(divide(to_integer(&given[0]), divisor))),
    }
}

/// An exact decimal number: digits times a power of ten. Sprig calculates with these, so that 0.1 + 0.2 is 0.3.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Digits after the point that a division keeps.
const DIVISION_DIGITS: i32 = 16;

impl Decimal {
    fn of(number: f64) -> Option<Self> {
        let written = format!("{number:e}");
        let (mantissa, exponent) = written.split_once('e')?;
        let n_decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let digits = mantissa.replace('.', "").parse().ok()?;
        Some(Self { digits, exponent: exponent.parse::<i32>().ok()? - i32::try_from(n_decimals).ok()? })
    }

    fn number(self) -> Option<f64> {
        format!("{}e{}", self.digits, self.exponent).parse().ok()
    }

    /// The same number with a lower exponent.
    fn digits_at(self, exponent: i32) -> Option<i128> {
        let power = u32::try_from(self.exponent - exponent).ok()?;
        self.digits.checked_mul(10i128.checked_pow(power)?)
    }

    fn plus(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let digits = self.digits_at(exponent)?.checked_add(other.digits_at(exponent)?)?;
        Some(Self { digits, exponent })
    }

    fn times(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Self { digits, exponent: self.exponent.checked_add(other.exponent)? })
    }

    /// Rounded to sixteen digits after the point.
    fn divided_by(self, other: Self) -> Option<Self> {
        let digits = self.digits_at(other.exponent - DIVISION_DIGITS)?;
        let (quotient, rest) = (digits.checked_div(other.digits)?, digits.checked_rem(other.digits)?);
        let rounds_up = rest.checked_abs()?.checked_mul(2)? >= other.digits.checked_abs()?;
        let away = if (digits < 0) == (other.digits < 0) { 1 } else { -1 };
        let digits = if rounds_up { quotient + away } else { quotient };
        Some(Self { digits, exponent: -DIVISION_DIGITS })
    }
}

/// Calculates with decimals, or with floating-point numbers where the digits are too many.
fn folded(
    given: &[Value],
    exact: fn(Decimal, Decimal) -> Option<Decimal>,
    nearly: fn(f64, f64) -> f64,
) -> f64 {
    let numbers: Vec<f64> = given.iter().map(to_float).collect();
    let Some((first, rest)) = numbers.split_first() else { return 0.0 };
    let decimals = rest.iter().map(|number| Decimal::of(*number));
    let result = decimals.fold(Decimal::of(*first), |result, next| exact(result?, next?));
    let result = result.and_then(Decimal::number);
    result.unwrap_or_else(|| rest.iter().fold(*first, |result, next| nearly(result, *next)))
}

fn minus(a: Decimal, b: Decimal) -> Option<Decimal> {
    a.plus(Decimal { digits: -b.digits, ..b })
}

fn round(given: &[Value]) -> f64 {
    let round_on = given.get(2).map_or(0.5, to_float);
    let power = 10f64.powf(float(integer(given, 1)));
    let shifted = power * to_float(&given[0]);
    let rounded = if shifted.fract() >= round_on { shifted.ceil() } else { shifted.floor() };
    rounded / power
}

fn count_up(start: i64, end: i64, step: i64) -> Box<dyn Iterator<Item = i64>> {
    let goes = if end < start { step < 0 } else { step > 0 };
    if !goes {
        return Box::new(std::iter::empty());
    }
    let inside = move |number: &i64| if step < 0 { *number > end } else { *number < end };
    Box::new(std::iter::successors(Some(start), move |number| number.checked_add(step)).take_while(inside))
}

fn numbers(scope: &Scope, start: i64, end: i64, step: i64) -> Result<Value, Fault> {
    let mut items = Vec::new();
    for number in count_up(start, end, step) {
        scope.step(1)?;
        scope.allocate(48)?;
        items.push(Value::Int(number));
    }
    Value::list_of(scope, Items::Int, items)
}

fn seq(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    let at = |index: usize| integer(given, index);
    let towards = |start: i64, end: i64| if end < start { -1 } else { 1 };
    let (start, end, step) = match given.len() {
        1 => (1, at(0), towards(1, at(0))),
        2 => (at(0), at(1), towards(at(0), at(1))),
        3 => (at(0), at(2), at(1)),
        _ => return Ok(Value::text("")),
    };
    if given.len() == 3 && end < start && step > 0 {
        return Ok(Value::text(""));
    }
    let mut out = String::new();
    for number in count_up(start, end.saturating_add(towards(start, end)), step) {
        scope.step(1)?;
        scope.allocate(8)?;
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&number.to_string());
    }
    new_text(scope, out)
}
