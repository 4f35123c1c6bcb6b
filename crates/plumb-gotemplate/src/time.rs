//! Times in Go's layouts: `2006-01-02 15:04:05`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A part of a layout. The longest that fits at a place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LongMonth,
    ShortMonth,
    LongDay,
    ShortDay,
    Month,
    Month2,
    Day,
    Day2,
    DayBlank,
    YearDay3,
    Hour24,
    Hour12,
    Hour12Two,
    Minute,
    Minute2,
    Second,
    Second2,
    Year4,
    Year2,
    UpperPm,
    LowerPm,
    Zone,
    Offset { z: bool, colon: bool, minutes: bool },
    Fraction { digits: usize, trims: bool },
}

/// All parts with fixed spellings, longer ones before their prefixes.
const PARTS: &[(&str, Part)] = &[
    ("January", Part::LongMonth),
    ("Monday", Part::LongDay),
    ("2006", Part::Year4),
    ("-07:00", Part::Offset { z: false, colon: true, minutes: true }),
    ("Z07:00", Part::Offset { z: true, colon: true, minutes: true }),
    ("-0700", Part::Offset { z: false, colon: false, minutes: true }),
    ("Z0700", Part::Offset { z: true, colon: false, minutes: true }),
    ("-07", Part::Offset { z: false, colon: false, minutes: false }),
    ("Z07", Part::Offset { z: true, colon: false, minutes: false }),
    ("Jan", Part::ShortMonth),
    ("Mon", Part::ShortDay),
    ("MST", Part::Zone),
    ("002", Part::YearDay3),
    ("01", Part::Month2),
    ("02", Part::Day2),
    ("03", Part::Hour12Two),
    ("04", Part::Minute2),
    ("05", Part::Second2),
    ("06", Part::Year2),
    ("15", Part::Hour24),
    ("_2", Part::DayBlank),
    ("PM", Part::UpperPm),
    ("pm", Part::LowerPm),
    ("1", Part::Month),
    ("2", Part::Day),
    ("3", Part::Hour12),
    ("4", Part::Minute),
    ("5", Part::Second),
];

/// The first part of a layout: the text before it, the part, and the text after it.
fn next_part(layout: &str) -> (&str, Option<(&str, Part)>, &str) {
    for (at, _) in layout.char_indices() {
        let rest = &layout[at..];
        if rest.starts_with(['.', ',']) {
            let digits = rest[1..].bytes().take_while(|byte| *byte == b'0' || *byte == b'9').count();
            let run = &rest[1..=digits];
            let is_same = run.bytes().all(|byte| byte == b'0') || run.bytes().all(|byte| byte == b'9');
            let ends = !rest[1 + digits..].starts_with(|character: char| character.is_ascii_digit());
            if digits > 0 && is_same && ends {
                let trims = run.starts_with('9');
                let part = Part::Fraction { digits, trims };
                return (&layout[..at], Some((&rest[..=digits], part)), &rest[1 + digits..]);
            }
        }
        for (spelling, part) in PARTS {
            let Some(after) = rest.strip_prefix(spelling) else { continue };
            // "Janet" is no month, and "_2006" is a year after an underscore.
            let is_word = matches!(part, Part::ShortMonth | Part::ShortDay);
            if is_word && after.starts_with(|character: char| character.is_ascii_lowercase()) {
                continue;
            }
            if *part == Part::DayBlank && after.starts_with("006") {
                continue;
            }
            return (&layout[..at], Some((spelling, *part)), after);
        }
    }
    (layout, None, "")
}

/// Formats a time.
pub(crate) fn format(time: &Zoned, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    loop {
        let (before, part, after) = next_part(rest);
        out.push_str(before);
        let Some((spelling, part)) = part else { return out };
        push_part(&mut out, time, spelling, part);
        rest = after;
    }
}

/// The English name of the month.
pub(crate) fn month_name(time: &Zoned) -> &'static str {
    MONTHS[usize::from(time.month().unsigned_abs()).clamp(1, 12) - 1]
}

/// The English name of the day of the week.
pub(crate) fn day_name(time: &Zoned) -> &'static str {
    DAYS[usize::from(time.weekday().to_monday_zero_offset().unsigned_abs()) % 7]
}

/// Go's zero time, the first day of the year 1, in seconds.
pub(crate) const ZERO_SECONDS: i128 = -62_135_596_800;

/// A date so many years, months and days later. As in Go a day that the month does not have is one of the next month.
pub(crate) fn add_date(time: &Zoned, years: i64, months: i64, days: i64) -> Option<Zoned> {
    let month = i64::from(time.month()).checked_sub(1)?.checked_add(months)?;
    let year = i64::from(time.year()).checked_add(years)?.checked_add(month.div_euclid(12))?;
    let first = Date::new(i16::try_from(year).ok()?, i8::try_from(month.rem_euclid(12) + 1).ok()?, 1).ok()?;
    let days = i64::from(time.day()).checked_sub(1)?.checked_add(days)?;
    let date = first.checked_add(jiff::Span::new().try_days(days).ok()?).ok()?;
    DateTime::from_parts(date, time.time()).to_zoned(time.time_zone().clone()).ok()
}

/// Why Go cannot read a duration that is none.
pub(crate) fn duration_fault(written: &str) -> String {
    let shown = quote(written);
    let mut rest = written.strip_prefix(['-', '+']).unwrap_or(written);
    while !rest.is_empty() {
        let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let dot = usize::from(rest[whole..].starts_with('.'));
        let fraction =
            rest[whole + dot..].bytes().take_while(|byte| dot > 0 && byte.is_ascii_digit()).count();
        if whole + fraction == 0 {
            break;
        }
        let after = &rest[whole + dot + fraction..];
        let unit = after.bytes().take_while(|byte| !is_number(*byte)).count();
        if unit == 0 {
            return format!("time: missing unit in duration {shown}");
        }
        let (unit, after) = after.split_at(unit);
        if !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return format!("time: unknown unit {} in duration {shown}", quote(unit));
        }
        rest = after;
    }
    format!("time: invalid duration {shown}")
}

fn push_part(out: &mut String, time: &Zoned, spelling: &str, part: Part) {
    let hour12 = if time.hour() % 12 == 0 { 12 } else { time.hour() % 12 };
    let (month, day) = (month_name(time), day_name(time));
    let is_pm = time.hour() >= 12;
    let shown = match part {
        Part::LongMonth => month.to_owned(),
        Part::ShortMonth => month[..3].to_owned(),
        Part::LongDay => day.to_owned(),
        Part::ShortDay => day[..3].to_owned(),
        Part::Month => time.month().to_string(),
        Part::Month2 => format!("{:02}", time.month()),
        Part::Day => time.day().to_string(),
        Part::Day2 => format!("{:02}", time.day()),
        Part::DayBlank => format!("{:2}", time.day()),
        Part::YearDay3 => format!("{:03}", time.day_of_year()),
        Part::Hour24 => format!("{:02}", time.hour()),
        Part::Hour12 => hour12.to_string(),
        Part::Hour12Two => format!("{hour12:02}"),
        Part::Minute => time.minute().to_string(),
        Part::Minute2 => format!("{:02}", time.minute()),
        Part::Second => time.second().to_string(),
        Part::Second2 => format!("{:02}", time.second()),
        Part::Year4 => format!("{:04}", time.year()),
        Part::Year2 => format!("{:02}", time.year().rem_euclid(100)),
        Part::UpperPm => if is_pm { "PM" } else { "AM" }.to_owned(),
        Part::LowerPm => if is_pm { "pm" } else { "am" }.to_owned(),
        Part::Zone => zone_name(time),
        Part::Offset { z, colon, minutes } => offset(time.offset(), z, colon, minutes),
        Part::Fraction { digits, trims } => {
            let fraction = format!("{:09}", time.subsec_nanosecond());
            let cut = &fraction[..digits.min(9)];
            let cut = if trims { cut.trim_end_matches('0') } else { cut };
            if cut.is_empty() { String::new() } else { format!("{}{cut}", &spelling[..1]) }
        }
    };
    out.push_str(&shown);
}

fn zone_name(time: &Zoned) -> String {
    // A zone that was read as an offset has no name.
    let is_nameless = time.time_zone().iana_name().is_none() && time.offset() != Offset::UTC;
    if is_nameless {
        return offset(time.offset(), false, false, true);
    }
    time.time_zone().to_offset_info(time.timestamp()).abbreviation().to_owned()
}

fn offset(offset: Offset, z: bool, colon: bool, minutes: bool) -> String {
    let seconds = offset.seconds();
    if z && seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let total = seconds.abs() / 60;
    let separator = if colon { ":" } else { "" };
    if minutes {
        format!("{sign}{:02}{separator}{:02}", total / 60, total % 60)
    } else {
        format!("{sign}{:02}", total / 60)
    }
}

/// As `time.Time.String` prints it.
pub(crate) fn go_text(time: &Zoned) -> String {
    format(time, "2006-01-02 15:04:05.999999999 -0700 MST")
}

/// As JSON has it.
pub(crate) fn rfc3339(time: &Zoned) -> String {
    format(time, "2006-01-02T15:04:05.999999999Z07:00")
}

/// A duration as Go prints it: `1h2m3.5s`.
pub(crate) fn duration_text(nanoseconds: i64) -> String {
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    let decimal = |value: u64, unit: u64| {
        let fraction = format!("{:0width$}", value % unit, width = unit.ilog10() as usize);
        let fraction = fraction.trim_end_matches('0');
        let whole = value / unit;
        if fraction.is_empty() || unit == 1 { whole.to_string() } else { format!("{whole}.{fraction}") }
    };
    if size < 1_000_000_000 {
        return match size {
            0..1_000 => format!("{sign}{size}ns"),
            1_000..1_000_000 => format!("{sign}{}µs", decimal(size, 1_000)),
            _ => format!("{sign}{}ms", decimal(size, 1_000_000)),
        };
    }
    let seconds = decimal(size % 60_000_000_000, 1_000_000_000);
    let (hours, minutes) = (size / 3_600_000_000_000, size / 60_000_000_000 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// The parts that a text gave.
#[derive(Clone, Copy)]
struct Parsed {
    year: i16,
    month: i8,
    day: i8,
    year_day: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    pm: Option<bool>,
    offset: Option<i32>,
}

/// Reads a time that is written in a layout; times without a zone are in UTC.
pub(crate) fn parse(layout: &str, text: &str) -> Result<Zoned, String> {
    let failed = |at: &str, part: &str| {
        format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(text),
            quote(layout),
            quote(at),
            quote(part)
        )
    };
    let out_of_range = |what: &str| format!("parsing time {}: {what} out of range", quote(text));
    let mut parsed = Parsed {
        year: 0,
        month: 1,
        day: 1,
        year_day: None,
        hour: 0,
        minute: 0,
        second: 0,
        nanosecond: 0,
        pm: None,
        offset: None,
    };
    let (mut layout_rest, mut rest) = (layout, text);
    loop {
        let (before, part, after) = next_part(layout_rest);
        rest = skip(rest, before).ok_or_else(|| failed(rest, before))?;
        let Some((spelling, part)) = part else {
            if rest.is_empty() {
                break;
            }
            let (text, rest) = (quote(text), quote(rest));
            return Err(format!("parsing time {text}: extra text: {rest}"));
        };
        rest = read_part(&mut parsed, rest, part).ok_or_else(|| failed(rest, spelling))?;
        // A fraction may follow the seconds where the layout has none.
        if matches!(part, Part::Second | Part::Second2)
            && !after.starts_with(['.', ','])
            && let Some(after_fraction) = read_fraction(&mut parsed, rest)
        {
            rest = after_fraction;
        }
        layout_rest = after;
    }
    build(&parsed).map_err(out_of_range)
}

fn build(parsed: &Parsed) -> Result<Zoned, &'static str> {
    let hour = match parsed.pm {
        Some(true) if parsed.hour < 12 => parsed.hour + 12,
        Some(false) if parsed.hour == 12 => 0,
        _ => parsed.hour,
    };
    let date = match parsed.year_day {
        Some(day) => Date::new(parsed.year, 1, 1)
            .and_then(|first| first.checked_add(jiff::Span::new().days(i64::from(day) - 1)))
            .map_err(|_| "day-of-year")?,
        None => Date::new(parsed.year, parsed.month, parsed.day).map_err(|_| "day")?,
    };
    let time = Time::new(hour, parsed.minute, parsed.second, parsed.nanosecond).map_err(|_| "time")?;
    let zone = match parsed.offset {
        None | Some(0) => TimeZone::UTC,
        Some(seconds) => TimeZone::fixed(Offset::from_seconds(seconds).map_err(|_| "time zone offset")?),
    };
    DateTime::from_parts(date, time).to_zoned(zone).map_err(|_| "time")
}

/// Skips text of a layout; blanks in it stand for any number of blanks.
fn skip<'a>(text: &'a str, expected: &str) -> Option<&'a str> {
    let mut rest = text;
    for character in expected.chars() {
        if character == ' ' {
            if !rest.is_empty() && !rest.starts_with(' ') {
                return None;
            }
            rest = rest.trim_start_matches(' ');
        } else {
            rest = rest.strip_prefix(character)?;
        }
    }
    Some(rest)
}

/// A number of at least and at most so many digits.
fn digits(text: &str, least: usize, most: usize) -> Option<(i32, &str)> {
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (length >= least).then(|| (text[..length].parse().unwrap_or(0), &text[length..]))
}

fn name<'a>(text: &'a str, names: &[&str], length: Option<usize>) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = &name[..length.unwrap_or(name.len())];
        let start = text.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then(|| (index, &text[name.len()..]))
    })
}

/// Long because each element of a layout has one arm.
fn read_part<'a>(parsed: &mut Parsed, text: &'a str, part: Part) -> Option<&'a str> {
    let small = |number: i32, low: i32, high: i32| {
        (low..=high).contains(&number).then(|| i8::try_from(number).ok()).flatten()
    };
    let rest;
    let number;
    match part {
        Part::LongMonth | Part::ShortMonth => {
            let index;
            (index, rest) = name(text, &MONTHS, (part == Part::ShortMonth).then_some(3))?;
            parsed.month = i8::try_from(index).ok()? + 1;
        }
        Part::LongDay => (_, rest) = name(text, &DAYS, None)?,
        Part::ShortDay => (_, rest) = name(text, &DAYS, Some(3))?,
        Part::Month | Part::Month2 => {
            (number, rest) = digits(text, if part == Part::Month2 { 2 } else { 1 }, 2)?;
            parsed.month = small(number, 1, 12)?;
        }
        Part::Day | Part::Day2 | Part::DayBlank => {
            let text = if part == Part::DayBlank { text.strip_prefix(' ').unwrap_or(text) } else { text };
            (number, rest) = digits(text, if part == Part::Day2 { 2 } else { 1 }, 2)?;
            parsed.day = small(number, 0, 99)?;
        }
        Part::YearDay3 => {
            (number, rest) = digits(text, 3, 3)?;
            parsed.year_day = Some(i16::try_from(number).ok()?);
        }
        Part::Hour24 | Part::Hour12 | Part::Hour12Two => {
            (number, rest) = digits(text, if part == Part::Hour12 { 1 } else { 2 }, 2)?;
            parsed.hour = small(number, 0, if part == Part::Hour24 { 23 } else { 12 })?;
        }
        Part::Minute | Part::Minute2 => {
            (number, rest) = digits(text, if part == Part::Minute2 { 2 } else { 1 }, 2)?;
            parsed.minute = small(number, 0, 59)?;
        }
        Part::Second | Part::Second2 => {
            (number, rest) = digits(text, if part == Part::Second2 { 2 } else { 1 }, 2)?;
            parsed.second = small(number, 0, 59)?;
        }
        Part::Year4 => {
            (number, rest) = digits(text, 4, 4)?;
            parsed.year = i16::try_from(number).ok()?;
        }
        Part::Year2 => {
            (number, rest) = digits(text, 2, 2)?;
            parsed.year = i16::try_from(if number >= 69 { 1900 + number } else { 2000 + number }).ok()?;
        }
        Part::UpperPm | Part::LowerPm => {
            let start = text.get(..2)?;
            parsed.pm = Some(start.eq_ignore_ascii_case("pm"));
            rest =
                (start.eq_ignore_ascii_case("pm") || start.eq_ignore_ascii_case("am")).then(|| &text[2..])?;
        }
        Part::Zone => {
            let length = text.bytes().take_while(u8::is_ascii_uppercase).count();
            rest = (3..=5).contains(&length).then(|| &text[length..])?;
        }
        Part::Offset { z, colon, minutes } => rest = read_offset(parsed, text, (z, colon, minutes))?,
        Part::Fraction { .. } => rest = read_fraction(parsed, text).unwrap_or(text),
    }
    Some(rest)
}

fn read_offset<'a>(
    parsed: &mut Parsed,
    text: &'a str,
    (z, colon, has_minutes): (bool, bool, bool),
) -> Option<&'a str> {
    if z && let Some(rest) = text.strip_prefix('Z') {
        parsed.offset = Some(0);
        return Some(rest);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, mut rest) = digits(&text[1..], 2, 2)?;
    let mut minutes = 0;
    if has_minutes {
        rest = if colon { rest.strip_prefix(':')? } else { rest };
        (minutes, rest) = digits(rest, 2, 2)?;
    }
    parsed.offset = Some(sign * (hours * 3600 + minutes * 60));
    Some(rest)
}

fn read_fraction<'a>(parsed: &mut Parsed, text: &'a str) -> Option<&'a str> {
    let rest = text.strip_prefix(['.', ','])?;
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return None;
    }
    let digits: String = rest[..length].chars().chain("000000000".chars()).take(9).collect();
    parsed.nanosecond = digits.parse().ok()?;
    Some(&rest[length..])
}

/// A time from seconds since 1970, in UTC.
pub(crate) fn from_seconds(seconds: i64) -> Zoned {
    Timestamp::from_second(seconds).unwrap_or_default().to_zoned(TimeZone::UTC)
}

/// Quotes a text as Go's `time` does, which knows only ASCII.
fn quote(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}
