//! Random functions. They draw from the seed of the scope: the same inputs give the same result, so that an object
//! that uses one does not change with each rendering.

use super::table::{Row, Type, hex, integer, new_text, text};
use crate::budget::Fault;
use crate::value::{Scope, Value};

const COUNT: &[Type] = &[Type::Int];

pub(super) const ROWS: &[Row] = &[
    ("randAlphaNum", COUNT, None, |scope, given| {
        drawn(scope, given, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    }),
    ("randAlpha", COUNT, None, |scope, given| {
        drawn(scope, given, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    }),
    ("randNumeric", COUNT, None, |scope, given| drawn(scope, given, b"0123456789")),
    ("randAscii", COUNT, None, |scope, given| {
        let printable: Vec<u8> = (b' '..=b'~').collect();
        drawn(scope, given, &printable)
    }),
    ("randInt", &[Type::Int, Type::Int], None, |scope, given| {
        let (low, high) = (integer(given, 0), integer(given, 1));
        let span = u64::try_from(i128::from(high) - i128::from(low)).ok().filter(|span| *span > 0);
        let span = span.ok_or_else(|| Fault::new("invalid argument to Intn"))?;
        let offset = i64::try_from(scope.random_below(span)).unwrap_or(0);
        Ok(Value::Int(low.wrapping_add(offset)))
    }),
    ("randBytes", COUNT, None, |scope, given| {
        use base64::Engine as _;
        let count = usize::try_from(integer(given, 0)).map_err(|_| negative())?;
        scope.allocate(count)?;
        scope.step(count / 16)?;
        let mut bytes = vec![0; count];
        scope.random_bytes(&mut bytes);
        new_text(scope, base64::engine::general_purpose::STANDARD.encode(bytes))
    }),
    ("uuidv4", &[], None, |scope, _| {
        let mut bytes = [0; 16];
        scope.random_bytes(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = hex(&bytes);
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Ok(Value::text(parts.join("-")))
    }),
    ("shuffle", &[Type::Text], None, |scope, given| {
        let mut characters: Vec<char> = text(given, 0).chars().collect();
        scope.step(characters.len())?;
        for end in (1..characters.len()).rev() {
            let other = usize::try_from(scope.random_below(end as u64 + 1)).unwrap_or(0);
            characters.swap(end, other);
        }
        new_text(scope, characters.into_iter().collect::<String>())
    }),
];

fn negative() -> Fault {
    Fault::new("runtime error: makeslice: len out of range")
}

/// So many characters of a set. A negative number gives none, as in Sprig, which ignores the error.
fn drawn(scope: &Scope, given: &[Value], set: &[u8]) -> Result<Value, Fault> {
    let count = usize::try_from(integer(given, 0)).unwrap_or(0);
    scope.allocate(count)?;
    scope.step(count)?;
    let one = |_| set[usize::try_from(scope.random_below(set.len() as u64)).unwrap_or(0)];
    Ok(Value::text((0..count).map(one).collect::<Vec<u8>>()))
}
