//! Methods of values that are no plain data.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::tz::TimeZone;
use plumb_core::version::Version;

use super::table::{Function, Type, integer, new_text, text};
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
    ("Compare", of_two_versions(|_, given| ordered(given, |order| Value::Int(order as i64)))),
    ("Equal", of_two_versions(|_, given| ordered(given, |order| Value::Bool(order.is_eq())))),
    ("LessThan", of_two_versions(|_, given| ordered(given, |order| Value::Bool(order.is_lt())))),
    ("LessThanEqual", of_two_versions(|_, given| ordered(given, |order| Value::Bool(order.is_le())))),
    ("GreaterThan", of_two_versions(|_, given| ordered(given, |order| Value::Bool(order.is_gt())))),
    ("GreaterThanEqual", of_two_versions(|_, given| ordered(given, |order| Value::Bool(order.is_ge())))),
    (
        "IncMajor",
        without_arguments(|_, given| {
            of_version(given, |version| next(version, |[major, _, _]| [major.wrapping_add(1), 0, 0]))
        }),
    ),
    (
        "IncMinor",
        without_arguments(|_, given| {
            of_version(given, |version| next(version, |[major, minor, _]| [major, minor.wrapping_add(1), 0]))
        }),
    ),
    (
        "IncPatch",
        without_arguments(|_, given| {
            of_version(given, |version| {
                // A pre-release comes before the version itself.
                let step = u64::from(!version.is_prerelease());
                next(version, |[major, minor, patch]| [major, minor, patch.wrapping_add(step)])
            })
        }),
    ),
];

const fn of_two_versions(call: super::table::Call) -> Function {
    Function { parameters: &[Type::Version], rest: None, call }
}

fn ordered(given: &[Value], read: impl FnOnce(Ordering) -> Value) -> Result<Value, Fault> {
    match given {
        [Value::Version(version), Value::Version(other)] => Ok(read(version.precedence(other))),
        _ => Err(Fault::new("runtime error: invalid memory address or nil pointer dereference")),
    }
}

/// A version with other numbers, without suffixes. A leading `v` stays.
fn next(version: &Version, change: impl FnOnce([u64; 3]) -> [u64; 3]) -> Value {
    let [major, minor, patch] = change(version.numbers());
    let prefix = if version.as_str().starts_with('v') { "v" } else { "" };
    let written = format!("{prefix}{major}.{minor}.{patch}");
    Version::parse(&written).map_or(Value::Nil, |version| Value::Version(Rc::new(version)))
}

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
    (
        "UnixMicro",
        without_arguments(|_, given| of_time(given, |time| Value::Int64(time.timestamp().as_microsecond()))),
    ),
    ("Year", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.year()))))),
    // Go has types of their own, whose values are numbers that print as names. Here they are the names.
    ("Month", without_arguments(|_, given| of_time(given, |at| Value::text(time::month_name(at))))),
    ("Weekday", without_arguments(|_, given| of_time(given, |at| Value::text(time::day_name(at))))),
    ("Day", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.day()))))),
    (
        "YearDay",
        without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.day_of_year())))),
    ),
    ("Hour", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.hour()))))),
    ("Minute", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.minute()))))),
    ("Second", without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.second()))))),
    (
        "Nanosecond",
        without_arguments(|_, given| of_time(given, |time| Value::Int(i64::from(time.subsec_nanosecond())))),
    ),
    ("UTC", IN_UTC),
    // "Local" is UTC.
    ("Local", IN_UTC),
    (
        "IsZero",
        without_arguments(|_, given| {
            of_time(given, |time| {
                Value::Bool(time.timestamp().as_nanosecond() == time::ZERO_SECONDS * 1_000_000_000)
            })
        }),
    ),
    ("Compare", of_two_times(|_, given| of_times(given, |a, b| Value::Int(a.cmp(&b) as i64)))),
    ("Before", of_two_times(|_, given| of_times(given, |a, b| Value::Bool(a < b)))),
    ("After", of_two_times(|_, given| of_times(given, |a, b| Value::Bool(a > b)))),
    ("Equal", of_two_times(|_, given| of_times(given, |a, b| Value::Bool(a == b)))),
    ("Sub", of_two_times(|_, given| of_times(given, |a, b| Value::Duration(clamped(a - b))))),
    (
        "Add",
        Function {
            parameters: &[Type::Duration],
            rest: None,
            call: |_, given| {
                let Some(Value::Duration(by)) = given.get(1) else {
                    return Err(Fault::new("expected a duration"));
                };
                of_time(given, |time| {
                    let moved = time.checked_add(jiff::SignedDuration::from_nanos(*by));
                    Value::Time(moved.unwrap_or_else(|_| time.clone()).into())
                })
            },
        },
    ),
    (
        "AddDate",
        Function {
            parameters: &[Type::Int, Type::Int, Type::Int],
            rest: None,
            call: |_, given| {
                let [years, months, days] = [1, 2, 3].map(|index| integer(given, index));
                of_time(given, |at| {
                    Value::Time(time::add_date(at, years, months, days).unwrap_or_else(|| at.clone()).into())
                })
            },
        },
    ),
];

const IN_UTC: Function = without_arguments(|_, given| {
    of_time(given, |time| Value::Time(time.with_time_zone(TimeZone::UTC).into()))
});

const fn of_two_times(call: super::table::Call) -> Function {
    Function { parameters: &[Type::Time], rest: None, call }
}

/// Two times in nanoseconds.
fn of_times(given: &[Value], read: impl FnOnce(i128, i128) -> Value) -> Result<Value, Fault> {
    match given {
        [Value::Time(time), Value::Time(other)] => {
            Ok(read(time.timestamp().as_nanosecond(), other.timestamp().as_nanosecond()))
        }
        _ => Err(Fault::new("expected a time")),
    }
}

/// A difference that is too long becomes the longest duration.
fn clamped(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(if nanoseconds < 0 { i64::MIN } else { i64::MAX })
}

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
    ("Microseconds", without_arguments(|_, given| of_duration(given, |nanos| Value::Int64(nanos / 1000)))),
    ("Nanoseconds", without_arguments(|_, given| of_duration(given, Value::Int64))),
];
