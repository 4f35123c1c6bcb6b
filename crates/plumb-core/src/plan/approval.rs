//! A user's approval of deletions.

use jiff::{SignedDuration, Timestamp};

/// How far the clock of the user who approves may be ahead of plumb's.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// The time of an approval (`argocd.argoproj.io/deletion-approved`), if it counts now. It approves operations that
/// started before it. One that lies in the future would approve every operation until then, so it does not count.
pub fn approval(text: &str, now: Timestamp) -> Option<Timestamp> {
    let approved: Timestamp = text.trim().parse().ok()?;
    let latest = now.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX);
    (approved <= latest).then_some(approved.min(now))
}

/// Does an approval count for an operation that started then? Both have full seconds, and an operation that follows another
/// within a second has the next one as its start. So one of the second before counts, too.
pub fn approves(approved_at: Option<Timestamp>, started_at: Timestamp) -> bool {
    approved_at.is_some_and(|approved| approved.as_second() + 1 >= started_at.as_second())
}

/// The approval as it counts for an operation that began at one time and has another as its start. After several operations
/// within a second, the start of the last one lies in the future, and an approval after its beginning is older than its start.
pub fn approval_of(
    approved_at: Option<Timestamp>,
    began_at: Timestamp,
    started_at: Timestamp,
) -> Option<Timestamp> {
    let approved = approved_at?;
    Some(if approves(approved_at, began_at.min(started_at)) { approved.max(started_at) } else { approved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_of_the_same_second_counts() {
        let started = "2026-11-18T12:00:00.493Z".parse().expect("a time");
        let approves = |at: &str| approves(Some(at.parse().expect("a time")), started);
        assert!(approves("2026-11-18T12:00:00Z") && approves("2026-11-18T12:00:01Z"));
        assert!(approves("2026-11-18T11:59:59Z"), "the operation may have started in that second");
        assert!(!approves("2026-11-18T11:59:58Z"));
    }

    #[test]
    fn an_approval_counts_for_an_operation_whose_start_lies_in_the_future() {
        let at = |second: u32| format!("2026-11-18T12:00:{second:02}Z").parse::<Timestamp>().expect("a time");
        for (approved, began, started, counts) in [
            (10, 10, 13, true),
            (12, 10, 13, true),
            (8, 10, 13, false),
            (8, 10, 10, false),
            (11, 10, 10, true),
        ] {
            let counted = approval_of(Some(at(approved)), at(began), at(started));
            assert_eq!(approves(counted, at(started)), counts, "{approved} {began} {started}");
        }
        assert_eq!(approval_of(None, at(1), at(1)), None);
    }

    #[test]
    fn an_approval_of_the_future_counts_for_nothing() {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().expect("a time");
        let counts = |text: &str| approval(text, now).map(|at| at.to_string());
        assert_eq!(counts("2026-11-18T11:59:00Z").as_deref(), Some("2026-11-18T11:59:00Z"));
        assert_eq!(counts("2026-11-18T12:00:30Z").as_deref(), Some("2026-11-18T12:00:00Z"));
        for ahead in ["2026-11-18T12:02:00Z", "2099-01-01T00:00:00Z", "", "yes", "9999"] {
            assert_eq!(counts(ahead), None, "{ahead}");
        }
    }
}
