//! Methods of values that are no plain data.

use jiff::tz::TimeZone;
use plumb_core::version::Version;

use super::table::{Function, Type, new_text, text};
use crate::budget::Fault;
use crate::convert::float;
use crate::time;
use crate::value::Value;
use crate::version::{complete, suffixes};

/// A method; its first argument is the value itself, which the parameters do not count.
pub(crate) fn method(value: &Value, name: &str) -> Option<&'static Function> {
    let table: &'static [(&'static str, Function)] = match value {
        Value::Version(_) => VERSION,
        Value::Time(_) => TIME,
        Value::Duration(_) => DURATION,
        Value::Raw(_) => RAW,
        _ => return None,
    };
    table.iter().find(|(known, _)| *known == name).map(|(_, function)| function)
}

const fn without_arguments(call: super::table::Call) -> Function {
    Function { parameters: &[], rest: None, call }
}

fn of_version(given: &[Value], read: impl FnOnce(&Version) -> Value) -> Result<Value, Fault> {
    match given.first() {
        Some(Value::Version(version)) => Ok(read(version)),
        _ => Err(Fault::new("expected a version")),
    }
}

fn of_time(given: &[Value], read: impl FnOnce(&jiff::Zoned) -> Value) -> Result<Value, Fault> {
    match given.first() {
        Some(Value::Time(time)) => Ok(read(time)),
        _ => Err(Fault::new("expected a time")),
    }
}

fn of_duration(given: &[Value], read: impl FnOnce(i64) -> Value) -> Result<Value, Fault> {
    match given.first() {
        Some(Value::Duration(nanoseconds)) => Ok(read(*nanoseconds)),
        _ => Err(Fault::new("expected a duration")),
    }
}

/// The field of `v1.JSON`. Go has bytes there; as a text they can be printed and read.
static RAW: &[(&str, Function)] = &[(
    "Raw",
    without_arguments(|scope, given| match given.first() {
        Some(Value::Raw(raw)) => new_text(scope, raw.as_bytes()),
        _ => Err(Fault::new("expected JSON")),
    }),
)];

static VERSION: &[(&str, Function)] = &[
    ("Major", without_arguments(|_, given| of_version(given, |version| Value::Uint64(version.numbers()[0])))),
    ("Minor", without_arguments(|_, given| of_version(given, |version| Value::Uint64(version.numbers()[1])))),
    ("Patch", without_arguments(|_, given| of_version(given, |version| Value::Uint64(version.numbers()[2])))),
    (
        "Prerelease",
        without_arguments(|_, given| of_version(given, |version| Value::text(suffixes(version).0))),
    ),
    ("Metadata", without_arguments(|_, given| of_version(given, |version| Value::text(suffixes(version).1)))),
    ("Original", without_arguments(|_, given| of_version(given, |version| Value::text(version.as_str())))),
    ("String", without_arguments(|_, given| of_version(given, |version| Value::text(complete(version))))),
];

static TIME: &[(&str, Function)] = &[
    (
        "Format",
        Function {
            parameters: &[Type::Text],
            rest: None,
            call: |_, given| of_time(given, |time| Value::text(time::format(time, &text(given, 1)))),
        },
    ),
    ("String", without_arguments(|_, given| of_time(given, |time| Value::text(time::go_text(time))))),
    ("Unix", without_arguments(|_, given| of_time(given, |time| Value::Int64(time.timestamp().as_second())))),
    (
        "UnixMilli",
        without_arguments(|_, given| of_time(given, |time| Value::Int64(time.timestamp().as_millisecond()))),
    ),
    (
        "UnixNano",
        without_arguments(|_, given| {
            of_time(given, |time| Value::Int64(i64::try_from(time.timestamp().as_nanosecond()).unwrap_or(0)))
        }),
    ),
    ("Year", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.year()))))),
    ("Day", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.day()))))),
    (
        "YearDay",
        without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.day_of_year())))),
    ),
    ("Hour", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.hour()))))),
    ("Minute", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.minute()))))),
    ("Second", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.second()))))),
    (
        "UTC",
        without_arguments(|_, given| {
            of_time(given, |time| Value::Time(time.with_time_zone(TimeZone::UTC).into()))
        }),
    ),
];

static DURATION: &[(&str, Function)] = &[
    (
        "String",
        without_arguments(|_, given| of_duration(given, |nanos| Value::text(time::duration_text(nanos)))),
    ),
    ("Hours", without_arguments(|_, given| of_duration(given, |nanos| Value::Float(float(nanos) / 3.6e12)))),
    ("Minutes", without_arguments(|_, given| of_duration(given, |nanos| Value::Float(float(nanos) / 6e10)))),
    ("Seconds", without_arguments(|_, given| of_duration(given, |nanos| Value::Float(float(nanos) / 1e9)))),
    (
        "Milliseconds",
        without_arguments(|_, given| of_duration(given, |nanos| Value::Int64(nanos / 1_000_000))),
    ),
];
