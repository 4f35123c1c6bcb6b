//! Sprig's functions for times. "Local" is UTC.

use std::rc::Rc;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Zoned};
use plumb_core::duration::parse_go_duration;

use super::table::{Row, Type, new_text, text};
use crate::budget::Fault;
use crate::time;
use crate::value::{Scope, Value};

const DATE: &str = "2006-01-02";
const TEXTS: &[Type] = &[Type::Text, Type::Text];

pub(super) const ROWS: &[Row] = &[
    ("now", &[], None, |scope, _| Ok(Value::Time(Rc::new(now(scope))))),
    ("date", &[Type::Text, Type::Any], None, |scope, given| shown(scope, &text(given, 0), &given[1], "UTC")),
    ("htmlDate", &[Type::Any], None, |scope, given| shown(scope, DATE, &given[0], "UTC")),
    ("htmlDateInZone", &[Type::Any, Type::Text], None, |scope, given| {
        shown(scope, DATE, &given[0], &text(given, 1))
    }),
    ("dateInZone", &[Type::Text, Type::Any, Type::Text], None, date_in_zone),
    ("date_in_zone", &[Type::Text, Type::Any, Type::Text], None, date_in_zone),
    ("dateModify", &[Type::Text, Type::Time], None, |_, given| modify(given, false)),
    ("date_modify", &[Type::Text, Type::Time], None, |_, given| modify(given, false)),
    ("mustDateModify", &[Type::Text, Type::Time], None, |_, given| modify(given, true)),
    ("must_date_modify", &[Type::Text, Type::Time], None, |_, given| modify(given, true)),
    ("ago", &[Type::Any], None, |scope, given| {
        let since =
            now(scope).timestamp().as_nanosecond() - moment(scope, &given[0]).timestamp().as_nanosecond();
        let seconds = (since + 500_000_000).div_euclid(1_000_000_000);
        let nanoseconds = i64::try_from(seconds * 1_000_000_000).unwrap_or(0);
        Ok(Value::text(time::duration_text(nanoseconds)))
    }),
    ("duration", &[Type::Any], None, |_, given| {
        let seconds = match &given[0] {
            Value::Text(_) => text(given, 0).parse().unwrap_or(0),
            Value::Int64(number) => *number,
            _ => 0,
        };
        Ok(Value::text(time::duration_text(seconds.saturating_mul(1_000_000_000))))
    }),
    ("durationRound", &[Type::Any], None, |scope, given| {
        let nanoseconds = match &given[0] {
            Value::Text(_) => parse_go_duration(&text(given, 0)).map_or(0, |duration| duration.as_nanos()),
            Value::Int64(number) => i128::from(*number),
            Value::Time(at) => now(scope).timestamp().as_nanosecond() - at.timestamp().as_nanosecond(),
            _ => 0,
        };
        Ok(Value::text(rounded(nanoseconds.unsigned_abs())))
    }),
    ("toDate", TEXTS, None, |_, given| {
        let parsed = time::parse(&text(given, 0), &text(given, 1));
        // Go's zero time is the first day of the year 1.
        Ok(Value::Time(Rc::new(parsed.unwrap_or_else(|_| time::from_seconds(-62_135_596_800)))))
    }),
    ("mustToDate", TEXTS, None, |_, given| {
        Ok(Value::Time(Rc::new(time::parse(&text(given, 0), &text(given, 1)).map_err(Fault)?)))
    }),
    ("unixEpoch", &[Type::Time], None, |_, given| match &given[0] {
        Value::Time(at) => Ok(Value::text(at.timestamp().as_second().to_string())),
        _ => Ok(Value::text("0")),
    }),
];

fn now(scope: &Scope) -> Zoned {
    scope.now.to_zoned(TimeZone::UTC)
}

/// The time that a value means; the present for a value that means none.
fn moment(scope: &Scope, value: &Value) -> Zoned {
    match value {
        Value::Time(at) => at.as_ref().clone(),
        Value::Int(seconds) | Value::Int64(seconds) => time::from_seconds(*seconds),
        _ => now(scope),
    }
}

fn shown(scope: &Scope, layout: &str, value: &Value, zone: &str) -> Result<Value, Fault> {
    let zone = if zone == "Local" { "UTC" } else { zone };
    let zone = TimeZoneDatabase::bundled().get(zone).unwrap_or(TimeZone::UTC);
    new_text(scope, time::format(&moment(scope, value).with_time_zone(zone), layout))
}

fn date_in_zone(scope: &Scope, given: &[Value]) -> Result<Value, Fault> {
    shown(scope, &text(given, 0), &given[1], &text(given, 2))
}

fn modify(given: &[Value], strict: bool) -> Result<Value, Fault> {
    let Value::Time(at) = &given[1] else { return Ok(given[1].clone()) };
    let written = text(given, 0);
    let by = match parse_go_duration(&written) {
        Ok(by) => by,
        Err(_) if strict => return Err(Fault(time::duration_fault(&written))),
        Err(_) => SignedDuration::ZERO,
    };
    Ok(Value::Time(Rc::new(at.checked_add(by).unwrap_or_else(|_| at.as_ref().clone()))))
}

fn rounded(nanoseconds: u128) -> String {
    const SECOND: u128 = 1_000_000_000;
    let units = [
        (SECOND * 86_400 * 365, "y"),
        (SECOND * 86_400 * 30, "mo"),
        (SECOND * 86_400, "d"),
        (SECOND * 3600, "h"),
        (SECOND * 60, "m"),
        (SECOND, "s"),
    ];
    let unit = units.iter().find(|(size, _)| nanoseconds > *size);
    unit.map_or_else(|| "0s".to_owned(), |(size, name)| format!("{}{name}", nanoseconds / size))
}
