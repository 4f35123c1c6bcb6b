//! Cron lines of five fields, read as Argo CD's library reads them: Sunday is 0, names are allowed, and of
//! day-of-month and day-of-week one is enough when both are restricted.

use jiff::civil::{Date, DateTime, Time};

/// A cron line of five fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronSchedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Are days of the month, or of the week, left open?
    any_day: bool,
    any_weekday: bool,
}

/// The text is not a cron line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse schedule '{schedule}': {reason}")]
pub struct NotASchedule {
    /// The text.
    pub schedule: String,
    /// What is wrong with it.
    pub reason: String,
}

/// How far an opening is looked for; a line such as `0 0 29 2 *` has one in four or eight years.
const DAYS: usize = 366 * 9;

struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { name: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { name: "day of month", min: 1, max: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field =
    Field { name: "day of week", min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

impl CronSchedule {
    /// Reads a cron line.
    pub fn parse(schedule: &str) -> Result<Self, NotASchedule> {
        Self::parse_fields(schedule).map_err(|reason| NotASchedule { schedule: schedule.to_owned(), reason })
    }

    fn parse_fields(schedule: &str) -> Result<Self, String> {
        let fields: Vec<&str> = schedule.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(format!("expected 5 fields, found {}", fields.len()));
        };
        let (minutes, _) = MINUTE.parse(minute)?;
        let (hours, _) = HOUR.parse(hour)?;
        let (days, any_day) = DAY.parse(day)?;
        let (months, _) = MONTH.parse(month)?;
        let (weekdays, any_weekday) = WEEKDAY.parse(weekday)?;
        Ok(Self { minutes, hours, days, months, weekdays, any_day, any_weekday })
    }

    /// The last time at or before `now` at which the schedule fires; `None` if there is none in nine years.
    pub fn last_before(&self, now: DateTime) -> Option<DateTime> {
        let mut date = now.date();
        let mut latest = now.time();
        for _ in 0..DAYS {
            if self.fires_on(date)
                && let Some(time) = self.last_time_until(latest)
            {
                return Some(date.to_datetime(time));
            }
            date = date.yesterday().ok()?;
            latest = Time::MAX;
        }
        None
    }

    /// The first time after `now` at which the schedule fires; `None` if there is none in nine years.
    pub fn next_after(&self, now: DateTime) -> Option<DateTime> {
        let mut date = now.date();
        let mut after = Some(now.time());
        for _ in 0..DAYS {
            if self.fires_on(date)
                && let Some(time) = self.first_time_after(after)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            after = None;
        }
        None
    }

    fn fires_on(&self, date: Date) -> bool {
        let in_month = has(self.months, u32::from(date.month().unsigned_abs()));
        let day = has(self.days, u32::from(date.day().unsigned_abs()));
        let weekday = has(self.weekdays, u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs()));
        in_month && if self.any_day || self.any_weekday { day && weekday } else { day || weekday }
    }

    /// The first time of a day that is after `after`, or of the whole day.
    fn first_time_after(&self, after: Option<Time>) -> Option<Time> {
        let at = |hour: i8, first_minute: i8| {
            (first_minute..60)
                .find(|minute| has(self.minutes, u32::from(minute.unsigned_abs())))
                .and_then(|minute| Time::new(hour, minute, 0, 0).ok())
        };
        (after.map_or(0, Time::hour)..24)
            .filter(|hour| has(self.hours, u32::from(hour.unsigned_abs())))
            .find_map(|hour| match after {
                Some(after) if after.hour() == hour => at(hour, after.minute() + 1),
                _ => at(hour, 0),
            })
    }

    /// The last time of a day that is not after `latest`.
    fn last_time_until(&self, latest: Time) -> Option<Time> {
        let at = |hour: i8, last_minute: i8| {
            (0..=last_minute)
                .rev()
                .find(|minute| has(self.minutes, u32::from(minute.unsigned_abs())))
                .and_then(|minute| Time::new(hour, minute, 0, 0).ok())
        };
        (0..=latest.hour())
            .rev()
            .filter(|hour| has(self.hours, u32::from(hour.unsigned_abs())))
            .find_map(|hour| at(hour, if hour == latest.hour() { latest.minute() } else { 59 }))
    }
}

fn has(set: u64, bit: u32) -> bool {
    set >> bit & 1 == 1
}

impl Field {
    /// The set of values, and whether the field was left open.
    fn parse(&self, text: &str) -> Result<(u64, bool), String> {
        let mut set = 0;
        let mut is_open = false;
        for part in text.split(',') {
            let (values, open) = self.parse_range(part)?;
            set |= values;
            is_open |= open;
        }
        Ok((set, is_open))
    }

    fn parse_range(&self, text: &str) -> Result<(u64, bool), String> {
        let wrong = |what: &str| format!("{what} in the {} field: {text}", self.name);
        let (range, step) = match text.split_once('/') {
            None => (text, None),
            Some((range, step)) => (range, Some(step)),
        };
        let step = match step.map(str::parse::<u32>) {
            None => None,
            Some(Ok(0) | Err(_)) => return Err(wrong("a step that is not a positive number")),
            Some(Ok(step)) => Some(step),
        };
        let is_star = matches!(range, "*" | "?");
        let (first, last) = match range.split_once('-') {
            _ if is_star => (self.min, self.max),
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            // `5/10` is every tenth from the fifth on.
            None if step.is_some() => (self.value(range)?, self.max),
            None => (self.value(range)?, self.value(range)?),
        };
        if first > last {
            return Err(wrong("a range that ends before it begins"));
        }
        let step = step.unwrap_or(1);
        let values = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        let set = values.fold(0, |set, value| set | 1 << value);
        Ok((set, is_star && step == 1))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let by_name = || {
            let position = self.names.iter().position(|name| name.eq_ignore_ascii_case(text))?;
            u32::try_from(position).ok().map(|position| position + self.min)
        };
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { text.parse().ok() } else { by_name() };
        value.filter(|value| (self.min..=self.max).contains(value)).ok_or_else(|| {
            format!("the {} field takes {} to {}, found {text}", self.name, self.min, self.max)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_opening() {
        let now: DateTime = "2026-11-15T19:30:20".parse().expect("a time"); // a Sunday
        let cases = [
            ("* * * * *", "2026-11-15T19:30:00"),
            ("30 19 * * *", "2026-11-15T19:30:00"),
            ("31 19 * * *", "2026-11-14T19:31:00"),
            ("0 22 * * *", "2026-11-14T22:00:00"),
            ("*/20 * * * *", "2026-11-15T19:20:00"),
            ("5/20 * * * *", "2026-11-15T19:25:00"),
            ("0 8-17 * * 1-5", "2026-11-13T17:00:00"),
            ("0 8-17/4 * * mon-FRI", "2026-11-13T16:00:00"),
            ("0 0 * * 0", "2026-11-15T00:00:00"),
            ("0 0 * * SAT", "2026-11-14T00:00:00"),
            ("0 0 1 * *", "2026-11-01T00:00:00"),
            ("0 0 1,10,20 * *", "2026-11-10T00:00:00"),
            ("0 0 ? jan ?", "2026-01-31T00:00:00"),
            ("0 0 29 2 *", "2024-02-29T00:00:00"),
            // Both restricted: one is enough.
            ("0 0 13 * 2", "2026-11-13T00:00:00"),
            // `*/2` restricts, so that one is enough here too.
            ("0 0 */2 * 6", "2026-11-15T00:00:00"),
            ("0 0 31 12 *", "2025-12-31T00:00:00"),
        ];
        for (schedule, expected) in cases {
            let last = CronSchedule::parse(schedule).expect("a schedule").last_before(now);
            assert_eq!(last.map(|time| time.to_string()).as_deref(), Some(expected), "{schedule}");
        }
    }

    #[test]
    fn the_next_opening() {
        let now: DateTime = "2026-11-15T19:30:00".parse().expect("a time"); // a Sunday
        let cases = [
            ("* * * * *", "2026-11-15T19:31:00"),
            ("30 19 * * *", "2026-11-16T19:30:00"),
            ("31 19 * * *", "2026-11-15T19:31:00"),
            ("0 22 * * *", "2026-11-15T22:00:00"),
            ("0 8-17 * * 1-5", "2026-11-16T08:00:00"),
            ("0 0 * * SAT", "2026-11-21T00:00:00"),
            ("0 0 1 * *", "2026-12-01T00:00:00"),
            ("0 0 29 2 *", "2028-02-29T00:00:00"),
            ("59 23 31 12 *", "2026-12-31T23:59:00"),
        ];
        for (schedule, expected) in cases {
            let next = CronSchedule::parse(schedule).expect("a schedule").next_after(now);
            assert_eq!(next.map(|time| time.to_string()).as_deref(), Some(expected), "{schedule}");
        }
    }

    #[test]
    fn a_day_that_never_comes() {
        let now: DateTime = "2026-11-15T19:30:20".parse().expect("a time");
        let never = CronSchedule::parse("0 0 31 2 *").expect("a schedule");
        assert_eq!((never.last_before(now), never.next_after(now)), (None, None));
        assert!(CronSchedule::parse("0 0 * * *").expect("a schedule").last_before(DateTime::MIN).is_some());
    }

    #[test]
    fn what_is_no_schedule() {
        let lines = [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "a * * * *",
            "*/0 * * * *",
            "*/x * * * *",
            "5-1 * * * *",
            "-1 * * * *",
            "1- * * * *",
            ", * * * *",
            "@daily",
            "+5 * * * *",
            "99999999999 * * * *",
        ];
        for line in lines {
            assert!(CronSchedule::parse(line).is_err(), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_schedule_or_an_error(text in ".{0,40}") {
            if let Ok(schedule) = CronSchedule::parse(&text) {
                schedule.last_before(DateTime::MAX);
                schedule.next_after(DateTime::MAX);
            }
        }

        #[test]
        fn the_last_opening_is_not_in_the_future(
            minute in 0..60_u8, hour in 0..24_u8, weekday in 0..7_u8, second in 0_i32..2_000_000_000,
        ) {
            let schedule = CronSchedule::parse(&format!("{minute} {hour} * * {weekday}")).expect("a schedule");
            let now = jiff::Timestamp::from_second(i64::from(second)).expect("in range");
            let now = now.to_zoned(jiff::tz::TimeZone::UTC).datetime();
            let last = schedule.last_before(now).expect("every week");
            proptest::prop_assert!(last <= now);
            let next = schedule.next_after(now).expect("every week");
            proptest::prop_assert!(now < next);
            proptest::prop_assert_eq!(schedule.last_before(next), Some(next));
            proptest::prop_assert!(now.duration_since(last).as_hours() < 7 * 24);
        }
    }
}
