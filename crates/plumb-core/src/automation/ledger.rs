//! The history of heals: which writer undid which fields, how often, and since when.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::object::ObjectKey;

/// Limits of self-heal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealLimits {
    /// After this many heals within `window`, each undone again, the next one does not happen.
    pub rounds: usize,
    /// Heals older than this are forgotten.
    pub window: Duration,
    /// The wait before the second heal of an object; the first has none.
    pub backoff: Duration,
    /// What each next wait is multiplied with.
    pub factor: u32,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for HealLimits {
    fn default() -> Self {
        Self {
            rounds: 5,
            window: Duration::from_mins(10),
            backoff: Duration::from_secs(1),
            factor: 2,
            longest: Duration::from_mins(5),
        }
    }
}

impl HealLimits {
    /// How long after the last of so many heals the next one may come.
    fn wait_after(&self, n_heals: usize) -> Duration {
        let exponent = u32::try_from(n_heals.saturating_sub(1)).unwrap_or(u32::MAX);
        let factor = self.factor.max(1).checked_pow(exponent).unwrap_or(u32::MAX);
        self.backoff.checked_mul(factor).unwrap_or(self.longest).min(self.longest)
    }
}

/// What a repeated heal is about. When the desired state changes, the count restarts. Another writer resumes a heal that was
/// stopped. The fields may vary between rounds, so they are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealContext {
    /// Fingerprint of the desired object and of the ignore rules that apply to it.
    pub desired: String,
    /// Who made the change that was healed.
    pub opponent: Option<String>,
    /// The fields that were healed, as JSON pointers.
    pub fields: Vec<String>,
}

/// Heals by object. If it is lost, self-heal makes at most `rounds` more attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealLedger {
    entries: BTreeMap<ObjectKey, HealEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HealEntry {
    context: HealContext,
    heals: VecDeque<Timestamp>,
    stopped_at: Option<Timestamp>,
}

/// May an object be healed?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealState {
    /// Now.
    Free,
    /// Not before this time.
    BackOff {
        /// When.
        until: Timestamp,
    },
    /// Not until Git, the rules or the opponent change.
    Stopped(Stopped),
}

/// A fight with another writer that self-heal has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which object.
    pub key: ObjectKey,
    /// The other writer, if known.
    pub opponent: Option<String>,
    /// The fields, as JSON pointers.
    pub fields: Vec<String>,
    /// How often it was healed.
    pub n_heals: usize,
    /// When it was stopped.
    pub since: Timestamp,
}

impl Stopped {
    /// For the `SyncError` condition.
    pub fn message(&self) -> String {
        let opponent = self.opponent.as_deref().unwrap_or("another writer");
        let fields = if self.fields.is_empty() { "it".to_owned() } else { self.fields.join(", ") };
        format!(
            "self-heal of {} stopped after {} rounds: {opponent} keeps changing {fields}. Remove the field \
             from Git, add an ignore rule, or stop the other writer",
            self.key, self.n_heals
        )
    }
}

impl HealLedger {
    /// May this object be healed at `now`, given what the difference is about?
    pub fn state_of(
        &self,
        key: &ObjectKey,
        context: &HealContext,
        limits: &HealLimits,
        now: Timestamp,
    ) -> HealState {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.context.desired == context.desired)
        else {
            return HealState::Free;
        };
        let stopped = |since| {
            HealState::Stopped(Stopped {
                key: key.clone(),
                opponent: entry.context.opponent.clone(),
                fields: entry.context.fields.clone(),
                n_heals: entry.heals.len(),
                since,
            })
        };
        let recent = entry.heals.iter().filter(|at| is_within(**at, limits.window, now)).count();
        // Another writer is another fight, but clients choose their names: it has no rounds of its own, and it waits.
        if entry.context.is_same_writer(context) {
            if let Some(since) = entry.stopped_at {
                return stopped(since);
            }
            if recent >= limits.rounds {
                return stopped(now);
            }
        }
        // A wait may be longer than the window in which rounds are counted.
        let Some(last) = entry.heals.back() else { return HealState::Free };
        let wait = limits.wait_after(recent);
        let until = last.saturating_add(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX));
        match until {
            Ok(until) if until > now => HealState::BackOff { until },
            Ok(_) | Err(_) => HealState::Free,
        }
    }

    /// The ledger after this object was healed once more.
    #[must_use]
    pub fn healed(
        mut self,
        key: &ObjectKey,
        context: &HealContext,
        limits: &HealLimits,
        now: Timestamp,
    ) -> Self {
        let entry = self.entries.entry(key.clone()).or_insert_with(|| HealEntry::new(context.clone()));
        if entry.context.desired != context.desired {
            *entry = HealEntry::new(context.clone());
        }
        if !entry.context.is_same_writer(context) {
            entry.stopped_at = None;
        }
        if context.opponent.is_some() {
            entry.context = context.clone();
        }
        entry.heals.retain(|at| is_within(*at, limits.window, now));
        entry.heals.push_back(now);
        self
    }

    /// The ledger after self-heal of an object was stopped: only a change of context resumes it.
    #[must_use]
    pub fn stopped(mut self, stopped: &Stopped) -> Self {
        if let Some(entry) = self.entries.get_mut(&stopped.key) {
            entry.stopped_at.get_or_insert(stopped.since);
        }
        self
    }

    /// The ledger after these objects were seen in sync. A stopped object that is in sync is no longer
    /// contested: the other writer has stopped.
    #[must_use]
    pub fn settled<'a>(mut self, keys: impl IntoIterator<Item = &'a ObjectKey>) -> Self {
        for key in keys {
            if self.is_stopped(key) {
                self.entries.remove(key);
            }
        }
        self
    }

    /// The ledger after a user synced these objects: the count restarts.
    #[must_use]
    pub fn forgotten<'a>(mut self, keys: impl IntoIterator<Item = &'a ObjectKey>) -> Self {
        for key in keys {
            self.entries.remove(key);
        }
        self
    }

    /// Has self-heal of this object been stopped?
    pub fn is_stopped(&self, key: &ObjectKey) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.stopped_at.is_some())
    }

    /// The heals of one object within the window, newest last, and what they are about.
    pub fn heals(&self, key: &ObjectKey) -> Option<(&HealContext, impl Iterator<Item = Timestamp>)> {
        let entry = self.entries.get(key)?;
        Some((&entry.context, entry.heals.iter().copied()))
    }
}

impl HealEntry {
    fn new(context: HealContext) -> Self {
        Self { context, heals: VecDeque::new(), stopped_at: None }
    }
}

impl HealContext {
    /// The same writer. An unknown one may be the same.
    fn is_same_writer(&self, other: &Self) -> bool {
        match (&self.opponent, &other.opponent) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        }
    }
}

fn is_within(at: Timestamp, window: Duration, now: Timestamp) -> bool {
    let age = now.duration_since(at);
    SignedDuration::try_from(window).is_ok_and(|window| age < window)
}
