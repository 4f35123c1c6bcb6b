//! Whether a sync may prune although other apps follow the same revision.
//!
//! One commit can move an object from one app to another. The app that loses the object must not delete it before the other
//! app had its chance to ask for it. So a prune waits for every sibling: an app that follows the same revision and whose
//! project permits the object. It waits for an event and not for a time: a busy machine makes a sibling late, and a late
//! sibling may still ask.

use std::time::Duration;

use crate::app::AppId;

/// How long a prune waits for a sibling that fails for a cause that may pass, such as a server that is away.
const FAILING_SIBLING: Duration = Duration::from_mins(5);
/// A sibling whose sources changed this often before they were gathered is not waited for without an end.
const RESTLESS_AFTER: u32 = 10;

/// What is known of a sibling when an app wants to prune.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiblingFacts {
    /// It was last gathered at the commits that the pruning app is at.
    pub is_at_same_commits: bool,
    /// How its last look at Git ended that was requested after the prune began to wait; `None` if there was none.
    pub last: Option<SiblingEnd>,
    /// How often its sources changed since it was last gathered.
    pub restarts: u32,
    /// An earlier prune waited for it in vain, and it has failed ever since.
    pub was_given_up: bool,
}

/// How a look at Git ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiblingEnd {
    /// It is known what the app asks for.
    Gathered,
    /// It cannot ask for anything until Git, its spec or the settings change: its manifests cannot be rendered, say.
    Broken,
    /// It may succeed later although nothing changes: a server is away.
    Failing(String),
}

/// Whether the prune goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneDecision {
    /// It goes on. These siblings could not be asked.
    Go {
        /// The siblings whose failure may pass, waited for in vain.
        without: Vec<AppId>,
    },
    /// It waits.
    Wait {
        /// What the operation says meanwhile.
        message: String,
        /// When the wait for failing siblings ends; `None` while one is only late.
        at_most: Option<Duration>,
    },
}

/// What one sibling means for the prune.
enum Stance {
    /// It does not ask for the object, or has said so.
    Answered,
    /// It is going to answer.
    Late,
    /// It may never answer.
    Doubtful(String),
    GivenUp,
}

/// Decides whether an app may prune that has waited this long for its siblings.
pub fn may_prune(siblings: &[(AppId, SiblingFacts)], waited: Duration) -> PruneDecision {
    let mut without = Vec::new();
    let mut late = Vec::new();
    let mut doubtful = Vec::new();
    for (app, facts) in siblings {
        match stance(facts) {
            Stance::Answered => {}
            Stance::Late => late.push(app),
            Stance::Doubtful(_) if waited >= FAILING_SIBLING => without.push(app.clone()),
            Stance::Doubtful(why) => doubtful.push((app, why)),
            Stance::GivenUp => without.push(app.clone()),
        }
    }
    if late.is_empty() && doubtful.is_empty() {
        return PruneDecision::Go { without };
    }
    let mut parts = Vec::new();
    if !late.is_empty() {
        parts.push(format!("{} to be fetched and rendered", names(&late)));
    }
    let at_most = late.is_empty().then(|| FAILING_SIBLING.saturating_sub(waited));
    if let Some((first, why)) = doubtful.first() {
        let apps: Vec<&AppId> = doubtful.iter().map(|(app, _)| *app).collect();
        let cause = if doubtful.len() == 1 { why.clone() } else { format!("{first}: {why}") };
        let minutes = FAILING_SIBLING.as_secs() / 60;
        parts.push(format!(
            "{}, which cannot be gathered ({cause}), for at most {minutes} minutes",
            names(&apps)
        ));
    }
    let message = format!(
        "pruning waits for apps that follow the same revision and may ask for what left this app: {}",
        parts.join("; ")
    );
    PruneDecision::Wait { message, at_most }
}

fn stance(facts: &SiblingFacts) -> Stance {
    if facts.is_at_same_commits {
        return Stance::Answered;
    }
    match &facts.last {
        Some(SiblingEnd::Gathered | SiblingEnd::Broken) => Stance::Answered,
        Some(SiblingEnd::Failing(_)) if facts.was_given_up => Stance::GivenUp,
        Some(SiblingEnd::Failing(why)) => Stance::Doubtful(why.clone()),
        None if facts.restarts >= RESTLESS_AFTER => Stance::Doubtful("its sources keep changing".to_owned()),
        None => Stance::Late,
    }
}

/// The first few names, and how many more there are.
fn names(apps: &[&AppId]) -> String {
    const SHOWN: usize = 3;
    let mut text = apps.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(more) = apps.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(" and ");
        text.push_str(&more.to_string());
        text.push_str(" more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it shows, the siblings, how long the prune has waited, and the decision.
    type Case<'c> = (&'c str, &'c [(&'c str, SiblingFacts)], Duration, Option<PruneDecision>);

    fn app(name: &str) -> AppId {
        AppId { namespace: "argocd".into(), name: name.into() }
    }

    fn behind() -> SiblingFacts {
        SiblingFacts::default()
    }

    fn ended(end: SiblingEnd) -> SiblingFacts {
        SiblingFacts { last: Some(end), ..behind() }
    }

    fn failing() -> SiblingFacts {
        ended(SiblingEnd::Failing("cannot reach git.example.com".to_owned()))
    }

    fn go(without: &[&str]) -> PruneDecision {
        PruneDecision::Go { without: without.iter().map(|name| app(name)).collect() }
    }

    #[test]
    fn a_prune_waits_for_an_answer_and_not_for_a_time() {
        let given_up = SiblingFacts { was_given_up: true, ..failing() };
        let restless = SiblingFacts { restarts: RESTLESS_AFTER, ..behind() };
        let (soon, late) = (Duration::from_secs(1), FAILING_SIBLING);
        let cases: [Case<'_>; 12] = [
            ("no sibling", &[], soon, Some(go(&[]))),
            (
                "at the same commit",
                &[("b", SiblingFacts { is_at_same_commits: true, ..behind() })],
                soon,
                Some(go(&[])),
            ),
            ("gathered since", &[("b", ended(SiblingEnd::Gathered))], soon, Some(go(&[]))),
            ("cannot be rendered", &[("b", ended(SiblingEnd::Broken))], soon, Some(go(&[]))),
            ("late", &[("b", behind())], soon, None),
            ("late for a day", &[("b", behind())], Duration::from_hours(24), None),
            ("failing", &[("b", failing())], soon, None),
            ("failing for long", &[("b", failing())], late, Some(go(&["b"]))),
            ("failed for an earlier prune", &[("b", given_up.clone())], soon, Some(go(&["b"]))),
            ("changes all the time", &[("b", restless.clone())], soon, None),
            ("changes for long", &[("b", restless)], late, Some(go(&["b"]))),
            ("one answers, one is late", &[("b", given_up), ("c", behind())], Duration::from_hours(24), None),
        ];
        for (name, siblings, waited, expected) in cases {
            let siblings: Vec<(AppId, SiblingFacts)> =
                siblings.iter().map(|(name, facts)| (app(name), facts.clone())).collect();
            let decision = may_prune(&siblings, waited);
            match expected {
                Some(expected) => assert_eq!(decision, expected, "{name}"),
                None => assert!(matches!(decision, PruneDecision::Wait { .. }), "{name}: {decision:?}"),
            }
        }
    }

    #[test]
    fn the_message_names_who_is_waited_for_and_why() {
        let all = [
            (app("b"), behind()),
            (app("c"), behind()),
            (app("d"), behind()),
            (app("e"), behind()),
            (app("f"), failing()),
        ];
        let PruneDecision::Wait { message, at_most } = may_prune(&all, Duration::from_mins(1)) else {
            panic!("it waits")
        };
        assert_eq!(
            message,
            "pruning waits for apps that follow the same revision and may ask for what left this app: argocd/b, \
             argocd/c, argocd/d and 1 more to be fetched and rendered; argocd/f, which cannot be gathered (cannot \
             reach git.example.com), for at most 5 minutes"
        );
        assert_eq!(at_most, None, "late apps are waited for without an end");
        let failing = may_prune(&all[4..], Duration::from_mins(1));
        assert!(
            matches!(failing, PruneDecision::Wait { at_most: Some(left), .. } if left == Duration::from_mins(4))
        );
    }
}
