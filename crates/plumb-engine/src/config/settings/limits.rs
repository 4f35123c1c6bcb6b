//! Limits of deletions, self-heal, tombstones and progress.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use plumb_core::automation::HealLimits;
use plumb_core::health::ProgressLimits;
use plumb_core::object::GroupKind;
use plumb_core::plan::{PruneBudget, TombstoneLimits};
use plumb_crd::settings::{self as wire, ConfigData, SettingsProblem};

/// `off`, or nothing: then the share and the number count.
pub(super) const BUDGET: &str = "plumb.prune.budget";
/// More than this share of an app's objects …
pub(super) const BUDGET_PERCENT: &str = "plumb.prune.budget.percent";
/// … and more than this many of them are not deleted unasked.
pub(super) const BUDGET_COUNT: &str = "plumb.prune.budget.count";
/// `Kind` or `group/Kind`, separated by commas.
pub(super) const PROTECTED: &str = "plumb.prune.protected-kinds";

/// How much an automated sync may delete unasked.
pub(super) fn prune_budget(map: &ConfigData) -> (PruneBudget, Vec<SettingsProblem>) {
    budget(map, [BUDGET, BUDGET_PERCENT, BUDGET_COUNT])
}

/// How many of its Applications a set may delete unasked.
pub(super) fn set_budget(map: &ConfigData) -> (PruneBudget, Vec<SettingsProblem>) {
    budget(map, ["plumb.appset.budget", "plumb.appset.budget.percent", "plumb.appset.budget.count"])
}

/// What cannot be read has its default: nothing is ever deleted because of a typo.
fn budget(map: &ConfigData, [switch, percent, number]: [&str; 3]) -> (PruneBudget, Vec<SettingsProblem>) {
    let mut problems = Vec::new();
    let mut wrong = |key: &str, text: &str, expected: &str| {
        problems.push(SettingsProblem {
            place: format!("argocd-cm {key}"),
            reason: format!("`{text}` is not {expected}"),
        });
    };
    let PruneBudget::Limited { mut share_percent, mut count } = PruneBudget::default() else {
        return (PruneBudget::default(), problems);
    };
    match map.get(switch).map(|text| text.trim()) {
        Some("off") => return (PruneBudget::Off, problems),
        None | Some("" | "on") => {}
        Some(text) => wrong(switch, text, "`on` or `off`"),
    }
    if let Some(text) = map.get(percent) {
        match text.trim().trim_end_matches('%').parse::<u8>() {
            Ok(share) if share <= 100 => share_percent = share,
            Ok(_) | Err(_) => wrong(percent, text, "a share from 0 to 100"),
        }
    }
    if let Some(text) = map.get(number) {
        match text.trim().parse() {
            Ok(most) => count = most,
            Err(_) => wrong(number, text, "a number of objects"),
        }
    }
    (PruneBudget::Limited { share_percent, count }, problems)
}

/// After so many heals of a field …
pub(super) const TUG_ROUNDS: &str = "plumb.tug-of-war.rounds";
/// … within so many minutes, self-heal gives up.
pub(super) const TUG_MINUTES: &str = "plumb.tug-of-war.minutes";

pub(super) fn heal_limits(
    map: &ConfigData,
    waits: wire::SelfHealSettings,
    problems: &mut Vec<SettingsProblem>,
) -> HealLimits {
    let mut number = |key: &str| {
        let text = map.get(key)?.trim();
        let number = text.parse::<u32>().ok().filter(|number| *number > 0);
        if number.is_none() {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {key}"),
                reason: format!("`{text}` is not a number from 1 on"),
            });
        }
        number
    };
    let (rounds, minutes) = (number(TUG_ROUNDS), number(TUG_MINUTES));
    let default = HealLimits::default();
    let limits = HealLimits {
        rounds: rounds.and_then(|rounds| usize::try_from(rounds).ok()).unwrap_or(default.rounds),
        window: minutes.map_or(default.window, |minutes| Duration::from_mins(minutes.into())),
        ..default
    };
    match waits.backoff {
        // As in Argo CD: the fixed wait counts only where the growing one is switched off.
        Some(Duration::ZERO) => {
            let fixed = waits.fixed.unwrap_or_default();
            HealLimits { backoff: fixed, factor: 1, longest: fixed, ..limits }
        }
        backoff => HealLimits {
            backoff: backoff.unwrap_or(limits.backoff),
            factor: waits.factor.map_or(limits.factor, |factor| u32::try_from(factor).unwrap_or(u32::MAX)),
            longest: waits.cap.unwrap_or(limits.longest),
            ..limits
        },
    }
}

/// Days that deleted objects can be brought back.
pub(super) const TOMBSTONE_DAYS: &str = "plumb.tombstones.days";

pub(super) fn keep_tombstones(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> Duration {
    const DAYS: u64 = 30;
    let days = map.get(TOMBSTONE_DAYS).map(|text| text.trim().parse::<u64>().map_err(|_| text));
    let days = match days {
        None => DAYS,
        Some(Ok(days)) => days,
        Some(Err(text)) => {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {TOMBSTONE_DAYS}"),
                reason: format!("`{text}` is not a number of days"),
            });
            DAYS
        }
    };
    Duration::from_hours(days.saturating_mul(24).min(24 * 36_500))
}

/// Whether log lines are quoted in findings.
pub(super) const QUOTE_LOGS: &str = "plumb.health.quote-logs";

/// A value that cannot be read means no: a typo must not publish log lines.
pub(super) fn quote_logs(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> bool {
    match map.get(QUOTE_LOGS).map(|text| text.trim()) {
        None | Some("true") => true,
        Some("false") => false,
        Some(text) => {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {QUOTE_LOGS}"),
                reason: format!("`{text}` is not `true` or `false`"),
            });
            false
        }
    }
}

/// Tombstones of one app, …
pub(super) const TOMBSTONE_APP_COUNT: &str = "plumb.tombstones.app-count";
/// … their size, …
pub(super) const TOMBSTONE_APP_MIB: &str = "plumb.tombstones.app-mib";
/// … and the size of all tombstones.
pub(super) const TOMBSTONE_TOTAL_MIB: &str = "plumb.tombstones.total-mib";

pub(super) fn tombstone_limits(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> TombstoneLimits {
    const MIB: u64 = 1 << 20;
    let mut number = |key: &str, default: u64| {
        let Some(text) = map.get(key) else { return default };
        text.trim().parse::<u64>().ok().filter(|number| *number > 0).unwrap_or_else(|| {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {key}"),
                reason: format!("`{text}` is not a number from 1 on"),
            });
            default
        })
    };
    let default = TombstoneLimits::default();
    let app_count = number(TOMBSTONE_APP_COUNT, u64::try_from(default.app_count).unwrap_or(u64::MAX));
    TombstoneLimits {
        app_count: usize::try_from(app_count).unwrap_or(usize::MAX),
        app_bytes: number(TOMBSTONE_APP_MIB, default.app_bytes / MIB).saturating_mul(MIB),
        total_bytes: number(TOMBSTONE_TOTAL_MIB, default.total_bytes / MIB).saturating_mul(MIB),
    }
}

pub(super) fn protected_kinds(map: &ConfigData) -> BTreeSet<GroupKind> {
    let text = map.get(PROTECTED).map(String::as_str).unwrap_or_default();
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let (group, kind) = name.rsplit_once('/').unwrap_or(("", name));
            GroupKind::new(group, kind)
        })
        .collect()
}

pub(super) fn progress_limits(stuck_after: &wire::StuckAfter) -> ProgressLimits {
    let length = |length: Duration| SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX);
    let by_kind = stuck_after.by_kind.iter().map(|(kind, after)| (kind.clone(), length(*after))).collect();
    ProgressLimits { default: length(stuck_after.default), by_kind }
}
