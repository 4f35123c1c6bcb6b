//! The words that people use for states, as tables.
//!
//! A name or a phase is split into lowercase words (`ClusterRollingUpgrading`, `DEPLOYED_NOT_READY`), and each
//! word is looked up. A word that ends in `-ing` is something under way unless the table knows better. To teach
//! the reading a word, add it to a list; nothing else needs to change.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::HealthStatus;

/// Something went wrong.
const FAILING: &str = "
    abort aborted aborting alert backoff blocked broken cannot conflict conflicted conflicting corrupt corrupted
    crash crashed crashloopbackoff crashing dead degraded denied err error errored errors evicted exceeded
    exhausted expired fail failed failing failure failures fatal forbidden incompatible invalid lost mismatch
    misconfigured noncompliant orphan orphaned partially red refused rejected stalled throwable timeout unable
    unauthorized unhealthy unreachable unrecoverable unschedulable violation warning";

/// Waiting on purpose.
const PAUSED: &str = "
    disabled halted hibernated ignored inactive onhold pause paused stopped suspend suspended";

/// Under way, besides the words in `-ing`.
const MOVING: &str = "
    begun init progress queued requested retry scheduled started submitted unavailable unknown unready wait
    yellow";

/// All is well.
const WELL: &str = "
    accepted active admitted alive applied approved available bound complete completed compliant configured
    connected created deployed done enabled established exists finished green healthy initialized insync
    installed issued launched normal ok online operational pass passed programmed promoted provisioned ready
    reconciled registered released resolved running serving steady succeeded success successful successfully
    sync synced synchronized up updated upgraded valid validated";

/// Words in `-ing` that do not say that something is under way.
const NOT_MOVING: &str = "being during existing matching missing nothing string thing";

static SENSES: LazyLock<HashMap<&'static str, Option<Sense>>> = LazyLock::new(|| {
    [
        (FAILING, Some(Sense::Failing)),
        (PAUSED, Some(Sense::Paused)),
        (MOVING, Some(Sense::Moving)),
        (WELL, Some(Sense::Well)),
        (NOT_MOVING, None),
    ]
    .into_iter()
    .flat_map(|(words, sense)| words.split_whitespace().map(move |word| (word, sense)))
    .collect()
});

/// What one word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    Failing,
    Paused,
    Moving,
    Well,
}

impl Sense {
    /// The status of this sense.
    pub(super) fn status(self) -> HealthStatus {
        match self {
            Self::Failing => HealthStatus::Degraded,
            Self::Paused => HealthStatus::Suspended,
            Self::Moving => HealthStatus::Progressing,
            Self::Well => HealthStatus::Healthy,
        }
    }
}

fn sense_of_word(word: &str) -> Option<Sense> {
    match SENSES.get(word) {
        Some(sense) => *sense,
        None => word.ends_with("ing").then_some(Sense::Moving),
    }
}

/// What a name says: a phase, a reason, a type of condition. The worst word counts; `not` before a good word
/// makes it something to wait for.
pub(super) fn sense_of_name(name: &str) -> Option<Sense> {
    let mut found: Option<Sense> = None;
    let mut negation: Option<String> = None;
    for word in split(name) {
        if matches!(word.as_str(), "not" | "non" | "no" | "never") {
            negation = Some(word);
            continue;
        }
        let sense = match (sense_of_word(&word), negation.as_deref()) {
            (Some(Sense::Well), Some("non")) => Some(Sense::Failing),
            (Some(Sense::Well), Some(_)) => Some(Sense::Moving),
            (Some(Sense::Failing), Some(_)) => Some(Sense::Well),
            (Some(Sense::Paused), Some(_)) => None,
            (sense, _) => sense,
        };
        negation = None;
        let rank = |sense: Sense| match sense {
            Sense::Failing => 3,
            Sense::Paused => 2,
            Sense::Moving => 1,
            Sense::Well => 0,
        };
        found = match (found, sense) {
            (Some(known), Some(new)) if rank(known) >= rank(new) => Some(known),
            (known, new) => new.or(known),
        };
    }
    found
}

/// Parts of sentences that say that something went wrong. Sentences are not read word by word: they name
/// objects, and an object may be called anything.
const FAILING_PHRASES: &[&str] = &[
    "back-off",
    "can not",
    "can't",
    "cannot",
    "could not",
    "crashloop",
    "denied",
    "does not exist",
    "doesn't",
    "error",
    "exceeded",
    "failed",
    "failure",
    "forbidden",
    "invalid",
    "not allowed",
    "not found",
    "refused",
    "rejected",
    "terminated unexpectedly",
    "timed out",
    "timeout",
    "unable to",
    "unauthorized",
    "unreachable",
    "unsupported",
];

/// Parts of sentences that say that something is under way.
const MOVING_PHRASES: &[&str] = &[
    "does not have minimum",
    "in progress",
    "is being",
    "not ready",
    "not yet",
    "pending",
    "progressing",
    "still",
    "waiting",
];

/// What a sentence says, as far as it is one of two things: something failed, or something is under way.
pub(super) fn sense_of_sentence(sentence: &str) -> Option<Sense> {
    let lower = sentence.to_lowercase();
    if FAILING_PHRASES.iter().any(|phrase| lower.contains(phrase)) {
        Some(Sense::Failing)
    } else if MOVING_PHRASES.iter().any(|phrase| lower.contains(phrase)) {
        Some(Sense::Moving)
    } else {
        None
    }
}

/// Lowercase words of a name: `RemoteSynced`, `in-sync`, `HEALTH_OK`, `platform.confluent.io/rolling` (its last
/// part).
pub(super) fn split(name: &str) -> impl Iterator<Item = String> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in name.chars().take(MAX_NAME) {
        let starts_word = letter.is_uppercase() && !before.is_uppercase();
        if (starts_word || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words.into_iter()
}

/// No state has a longer name; a longer text is not read to its end.
const MAX_NAME: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let words = |name: &str| split(name).collect::<Vec<_>>().join(" ");
        assert_eq!(words("ClusterRollingUpgrading"), "cluster rolling upgrading");
        assert_eq!(words("DEPLOYED_NOT_READY"), "deployed not ready");
        assert_eq!(words("ACK.ResourceSynced"), "ack resource synced");
        assert_eq!(words("platform.confluent.io/garbage-collecting"), "garbage collecting");
        assert_eq!(words("in progress"), "in progress");
        assert_eq!(words(""), "");
    }

    #[test]
    fn words_have_a_sense() {
        for (name, sense) in [
            ("Ready", Some(Sense::Well)),
            ("NotReady", Some(Sense::Moving)),
            ("ProgressDeadlineExceeded", Some(Sense::Failing)),
            ("ImportInProgress", Some(Sense::Moving)),
            ("NoError", Some(Sense::Well)),
            ("NonCompliant", Some(Sense::Failing)),
            ("NoPause", None),
            ("ReconcilePaused", Some(Sense::Paused)),
            ("Banana", None),
        ] {
            assert_eq!(sense_of_name(name), sense, "{name}");
        }
    }
}
