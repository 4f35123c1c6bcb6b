//! An object that has been `Progressing` for longer than expected, and why.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::Health;
use super::cause::{Cause, Node, chain};
use super::since::{ProgressLimits, Since, in_words};

/// An object that has been `Progressing` for longer than expected for its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Since when it is `Progressing`.
    pub since: Since,
    /// For how long, at the time of the judgement.
    pub for_so_long: SignedDuration,
    /// How long it is expected to take at most.
    pub normal: SignedDuration,
    /// The chain of causes, the object first.
    pub causes: Vec<Cause>,
}

/// Judges whether an object is stuck, from the health of the object, its children, and the time.
pub fn stuck(
    node: &Node<'_>,
    health: &Health,
    since: Since,
    patience: &ProgressLimits,
    now: Timestamp,
) -> Option<Stuck> {
    patience.overdue(node.object, health, &since, now)?;
    Some(Stuck {
        since,
        for_so_long: now.duration_since(since.at),
        normal: patience.with(node.object),
        causes: chain(node),
    })
}

impl Stuck {
    /// The text for a status: a time instead of a duration, so that the status does not have to be rewritten.
    pub fn since_when(&self) -> String {
        let at = Timestamp::from_second(self.since.at.as_second()).unwrap_or(self.since.at);
        format!("stuck since {at} (expected within {})", in_words(self.normal))
    }
}

/// `stuck for 23m (expected within 15m): …`, with the last cause of the chain.
impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stuck for {} (expected within {})", in_words(self.for_so_long), in_words(self.normal))?;
        match self.causes.last() {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{HealthHistory, assess, since};
    use crate::object::Manifest;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn a_claim_that_waits_too_long_is_stuck() {
        let claim = Manifest::new(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "shop", "creationTimestamp": "2026-03-01T08:00:00Z"},
            "status": {"phase": "Pending"},
        }))
        .expect("an object");
        let health = assess(&claim).expect("a judgement");
        let judge = |now: &str| {
            let now: Timestamp = now.parse().expect("a time");
            let since = since(&claim, &health, HealthHistory::default(), now);
            stuck(&Node::leaf(&claim), &health, since, &ProgressLimits::default(), now)
        };
        assert_eq!(judge("2026-03-01T08:14:00Z"), None);
        expect!["stuck for 1h 30m (expected within 15m): PersistentVolumeClaim shop/data: Progressing: waiting for a volume"]
            .assert_eq(&judge("2026-03-01T09:30:00Z").expect("stuck").to_string());
    }
}
