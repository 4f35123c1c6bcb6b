//! When a `DriftReport` is written.
//!
//! A finding that counts for nothing may change with every write of another client: a counter in an annotation, a time. Such
//! changes are gathered, so that a busy writer does not become as many writes of reports. What counts is written at once, and
//! a finding that is new or gone a moment later.

use std::time::Duration;

use jiff::Timestamp;

use crate::object::Fingerprint;

/// A report in which only values of findings changed that count for nothing is written at most this often.
const PACE_OF_VALUES: Duration = Duration::from_secs(10);
/// The same for a report in which such findings are new or gone.
const PACE_OF_FINDINGS: Duration = Duration::from_secs(1);

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportDigest {
    /// All of it.
    pub whole: Fingerprint,
    /// Without the values of findings that count for nothing.
    pub findings: Fingerprint,
    /// Without the findings that count for nothing.
    pub counting: Fingerprint,
}

/// The report that was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenReport {
    /// What it says.
    pub digest: ReportDigest,
    /// When it was written; `None` if an earlier process wrote it.
    pub at: Option<Timestamp>,
}

/// Whether a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportDue {
    /// The cluster has it already.
    Never,
    /// Now.
    Now,
    /// At this time, with what it says then.
    At(Timestamp),
}

/// Decides whether a report is written.
pub fn report_due(written: &WrittenReport, digest: &ReportDigest, now: Timestamp) -> ReportDue {
    if written.digest.whole == digest.whole {
        return ReportDue::Never;
    }
    let Some(at) = written.at.filter(|_| written.digest.counting == digest.counting) else {
        return ReportDue::Now;
    };
    let is_value = written.digest.findings == digest.findings;
    let pace = if is_value { PACE_OF_VALUES } else { PACE_OF_FINDINGS };
    let due = at.saturating_add(jiff::SignedDuration::try_from(pace).unwrap_or_default()).unwrap_or(now);
    // A clock that was set back must not stop the reports.
    if due <= now || at > now { ReportDue::Now } else { ReportDue::At(due) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What counts; the fields of what does not, and their values.
    fn digest(counting: &str, rest: &str) -> ReportDigest {
        let of = |text: String| Fingerprint::of_value(&json!(text));
        let fields: String = rest.chars().filter(char::is_ascii_alphabetic).collect();
        ReportDigest {
            whole: of(format!("{counting} {rest}")),
            findings: of(format!("{counting} {fields}")),
            counting: of(counting.to_owned()),
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn what_counts_is_written_at_once_and_values_of_the_rest_every_ten_seconds() {
        let written = |at: Option<i64>| WrittenReport { digest: digest("a", "1"), at: at.map(second) };
        for (at, counting, rest, now, expected) in [
            (Some(0), "a", "1", 1, ReportDue::Never),
            (Some(0), "b", "1", 1, ReportDue::Now),
            (Some(0), "b", "2", 1, ReportDue::Now),
            (Some(0), "a", "2", 0, ReportDue::At(second(10))),
            (Some(0), "a", "2", 9, ReportDue::At(second(10))),
            (Some(0), "a", "2", 10, ReportDue::Now),
            (Some(0), "a", "2", -3600, ReportDue::Now),
            // Another finding that counts for nothing.
            (Some(0), "a", "x1", 0, ReportDue::At(second(1))),
            (Some(0), "a", "x1", 1, ReportDue::Now),
            (None, "a", "2", 0, ReportDue::Now),
            (None, "a", "1", 0, ReportDue::Never),
        ] {
            let found = report_due(&written(at), &digest(counting, rest), second(now));
            assert_eq!(found, expected, "written at {at:?}, now {counting} {rest} at {now}");
        }
    }

    /// 50 changes a second for a minute that count for nothing, then silence: few writes, and the last state is written.
    #[test]
    fn a_busy_writer_costs_few_reports_and_the_last_state_is_written() {
        let mut written = WrittenReport { digest: digest("a", "0"), at: Some(second(0)) };
        let (mut n_written, mut due) = (0, None);
        for step in 1..=4000i64 {
            let now = second(0).saturating_add(jiff::SignedDuration::from_millis(step * 20)).unwrap();
            let rest = step.min(3000).to_string();
            let is_news = step <= 3000;
            if !is_news && due.is_none_or(|due| now < due) {
                continue;
            }
            match report_due(&written, &digest("a", &rest), now) {
                ReportDue::Never => {}
                ReportDue::Now => {
                    written = WrittenReport { digest: digest("a", &rest), at: Some(now) };
                    n_written += 1;
                    due = None;
                }
                ReportDue::At(at) => due = Some(at),
            }
        }
        assert!((6..=8).contains(&n_written), "{n_written} writes in 80 seconds");
        assert_eq!(written.digest, digest("a", "3000"));
    }
}
