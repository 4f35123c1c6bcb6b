//! What the automation knows about one object.

use jiff::Timestamp;

use super::{HealContext, Item};
use crate::desired::{ObjectOptions, PruneOption};
use crate::drift::{DriftClass, Verdict};
use crate::fields::Owners;
use crate::object::{Fingerprint, Manifest};
use crate::plan::{AppOptions, Owner};
use crate::status::ObjectStatus;
use crate::tracking::FIELD_MANAGER;

/// The facts about one object that decide whether a sync of it may start without a user.
#[derive(Clone, Copy, Debug)]
pub struct ItemFacts<'a> {
    /// The object's verdict, if it was compared.
    pub verdict: Option<&'a Verdict>,
    /// The live object.
    pub live: Option<&'a Manifest>,
    /// True if the live objects were listed completely.
    pub live_complete: bool,
    /// Whose the live object is.
    pub owner: Option<&'a Owner>,
    /// What Git asks of the object.
    pub desired: Option<DesiredFacts>,
    /// Sync options of the app.
    pub options: &'a AppOptions,
    /// When the last operation started that pruned or that chose objects: see [`ItemFacts::was_left_out`].
    pub pruned_before: Option<Timestamp>,
    /// True if a user paused the object.
    pub is_paused: bool,
}

/// What Git asks of an object, compared with what plumb applied.
#[derive(Clone, Copy, Debug)]
pub struct DesiredFacts {
    /// Identifies the request: see [`WriteHistory::asked`](crate::writes::WriteHistory::asked).
    pub asked: Fingerprint,
    /// True if plumb applied exactly this.
    pub was_applied: bool,
}

impl ItemFacts<'_> {
    /// The object as the automation looks at it.
    pub fn item(&self, object: &ObjectStatus) -> Item {
        let can_heal = self.can_heal();
        let counted = self.verdict.and_then(|verdict| verdict.findings.iter().find(|finding| finding.counts));
        Item {
            key: object.key.clone(),
            status: object.status,
            requires_pruning: object.requires_pruning,
            can_heal,
            is_behind: match (self.live, self.desired) {
                (_, Some(desired)) => self.verdict.is_some_and(is_behind_git) && !desired.was_applied,
                (Some(live), None) => can_heal && self.was_left_out(live),
                (None, None) => false,
            },
            moves_here: matches!(self.owner, Some(Owner::Other { renders: false, .. }))
                && self.desired.is_some(),
            is_paused: self.is_paused,
            context: HealContext {
                desired: self.desired.map(|desired| desired.asked.to_string()).unwrap_or_default(),
                opponent: counted.and_then(|finding| finding.actor.clone()),
                fields: counted
                    .map(|finding| finding.fields.iter().map(ToString::to_string).collect())
                    .unwrap_or_default(),
            },
        }
    }

    /// True if a sync of just this object would change what counts.
    fn can_heal(&self) -> bool {
        let Some(verdict) = self.verdict else { return false };
        if verdict.advice.blocked {
            return false;
        }
        if verdict.requires_pruning {
            let options = self.live.map(ObjectOptions::parse).unwrap_or_default();
            // Stricter than the plan: what the app protects is deleted only by a sync that a user starts, whatever the
            // object itself says.
            let is_guarded =
                options.prune == Some(PruneOption::Never) || self.options.prune == PruneOption::Never;
            // An object that is not proven to have left Git is not deleted, and another attempt changes nothing.
            return !is_guarded && self.live_complete && !self.live.is_some_and(Manifest::is_terminating);
        }
        let is_missing = self.live.is_none() && self.desired.is_some();
        is_missing || !verdict.advice.heal.is_empty()
    }

    /// True if an object that left Git existed before the last pruning operation, so that the operation left it out.
    /// An object that another writer created or marked since then is a live edit, which self-heal handles. Both times
    /// are whole seconds, so an object of plumb's own from the same second counts as older.
    fn was_left_out(&self, live: &Manifest) -> bool {
        let Some(pruned_before) = self.pruned_before else { return false };
        live.created_at().is_some_and(|created| created <= pruned_before)
            && Owners::of(live).entries().iter().any(|entry| entry.manager == FIELD_MANAGER)
    }
}

/// True if a sync would bring the object to a state of Git that has not arrived yet.
fn is_behind_git(verdict: &Verdict) -> bool {
    let mut counted = verdict.findings.iter().filter(|finding| finding.counts);
    !verdict.advice.blocked && counted.any(|finding| finding.class == DriftClass::Behind)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::app::SyncOption;
    use crate::drift::{ApplyAdvice, Finding, Fix, FixKind, VerdictStatus};
    use crate::object::FieldPath;
    use crate::plan::tests::fixture::{Fixture, key, time};
    use crate::status::SyncCode;

    /// An object in words: `live` (the cluster has it), `git` (Git has it), `applied` (plumb applied exactly that).
    /// The verdict: `unjudged` (none), `blocked`, `prune` (requires pruning), `heal` (it has fields to heal), and the
    /// findings `forgiven-behind`, `forgiven-edit` (these two do not count), `edit` and `behind`, in this order.
    /// `unlisted`: the live objects were not listed completely. `owner=…`, `terminating` and `options=…` are
    /// those of the fixture, `app=…` is a sync option of the app, `by=…` a field manager, `created=…` a time of the day
    /// on which the last operation pruned at 12:00:00, unless `unpruned`.
    fn item(words: &str) -> Item {
        let fixture = Fixture::parse(&format!("live ConfigMap web {words}"));
        let fixed = fixture.facts[&key("ConfigMap", "web")].live.clone().unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        let has = |word: &str| words.contains(&word);
        let values = |name: &'static str| words.iter().filter_map(move |word| word.strip_prefix(name));
        let entry = |by: &str| json!({"manager": by, "operation": "Apply", "fieldsV1": {"f:data": {}}});
        let entries: Vec<Value> = values("by=").map(entry).collect();
        let created: Option<String> = values("created=").next().map(|at| format!("2026-11-15T{at}Z"));
        let live = fixed.manifest.as_ref().clone().edit_metadata(|metadata| {
            metadata.insert("managedFields".to_owned(), json!(entries));
            metadata.insert("creationTimestamp".to_owned(), json!(created));
        });
        let options: Vec<SyncOption> = values("app=").map(|option| SyncOption(option.to_owned())).collect();
        let findings = ["forgiven-behind", "forgiven-edit", "edit", "behind"].into_iter();
        let verdict = Verdict {
            status: if has("edit") { VerdictStatus::OutOfSync } else { VerdictStatus::Synced },
            findings: findings.filter(|word| has(word)).map(finding).collect(),
            requires_pruning: has("prune"),
            advice: ApplyAdvice {
                heal: has("heal").then(|| FieldPath::from_pointer("/data/a")).into_iter().collect(),
                blocked: has("blocked"),
                ..ApplyAdvice::default()
            },
            ..Verdict::plain(key("ConfigMap", "web"))
        };
        let facts = ItemFacts {
            verdict: (!has("unjudged")).then_some(&verdict),
            live: has("live").then_some(&live),
            live_complete: !has("unlisted"),
            owner: has("live").then_some(&fixed.owner),
            desired: has("git").then(|| DesiredFacts { asked: asked(), was_applied: has("applied") }),
            options: &AppOptions::parse(&options),
            pruned_before: (!has("unpruned")).then(|| time("2026-11-15T12:00:00Z")),
            is_paused: has("paused"),
        };
        facts.item(&ObjectStatus::of(&verdict, "v1"))
    }

    fn asked() -> Fingerprint {
        Fingerprint::of_value(&json!("asked"))
    }

    fn finding(word: &str) -> Finding {
        Finding {
            key: key("ConfigMap", "web"),
            class: if word.ends_with("behind") { DriftClass::Behind } else { DriftClass::LiveEdit },
            rule: "test".into(),
            fields: ["/data/a", "/data/b"].map(FieldPath::from_pointer).into(),
            counts: !word.starts_with("forgiven"),
            actor: (!word.ends_with("behind")).then(|| word.to_owned()),
            since: None,
            evidence: Vec::new(),
            fix: Fix { kind: FixKind::Sync, text: String::new(), patch: None },
        }
    }

    #[test]
    fn an_object_can_heal_if_a_sync_would_change_what_counts() {
        for (words, expected) in [
            ("live git heal", true),
            // Self-heal leaves its drift classes alone.
            ("live git edit", false),
            // Missing: the whole object is healed.
            ("git", true),
            // Neither Git nor the cluster has it.
            ("", false),
            ("unjudged git", false),
            // The API server refuses every apply until a user acts.
            ("live git heal blocked", false),
            ("git blocked", false),
            ("live prune blocked", false),
            // It left Git, and is deleted.
            ("live prune", true),
            ("live prune options=Prune=false", false),
            ("live prune app=Prune=false", false),
            // Without a user the app's protection counts, though the object's own option would override it.
            ("live prune options=Prune=true app=Prune=false", false),
            ("live prune heal options=Prune=false", false),
            // The sync starts, and waits for the confirmation.
            ("live prune options=Prune=confirm", true),
            ("live prune app=Prune=confirm", true),
            // Not proven to have left Git.
            ("live prune unlisted", false),
            ("live prune terminating", false),
            // `Prune=false` does not protect against an apply.
            ("live git heal options=Prune=false app=Prune=false", true),
        ] {
            assert_eq!(item(words).can_heal, expected, "{words}");
        }
    }

    #[test]
    fn an_object_in_git_is_behind_until_plumb_applied_the_newest_state() {
        for (words, expected) in [
            ("live git behind", true),
            ("git behind", true),
            ("live git edit behind", true),
            // plumb applied the newest state, and another writer restored the old one.
            ("live git behind applied", false),
            ("live git edit", false),
            ("live git forgiven-behind", false),
            ("live git forgiven-behind edit", false),
            ("live git behind blocked", false),
            ("live git behind unjudged", false),
        ] {
            assert_eq!(item(words).is_behind, expected, "{words}");
        }
    }

    #[test]
    fn an_object_that_left_git_is_behind_if_the_last_prune_left_it_out() {
        for (words, expected) in [
            ("live created=11:59:59 by=argocd-controller", true),
            ("live created=11:59:59 by=kubectl by=argocd-controller", true),
            // Times have whole seconds: plumb's own object of the same second is older.
            ("live created=12:00:00 by=argocd-controller", true),
            ("live created=12:00:01 by=argocd-controller", false),
            ("live by=argocd-controller", false),
            // Another writer created it, with the tracking mark of the app.
            ("live created=11:59:59 by=kubectl", false),
            // No operation has pruned yet.
            ("live created=11:59:59 by=argocd-controller unpruned", false),
            // A sync would leave it out again.
            ("live created=11:59:59 by=argocd-controller options=Prune=false", false),
            // Git has it: only a finding says that it is behind.
            ("live created=11:59:59 by=argocd-controller git", false),
            // It is deleted already.
            ("created=11:59:59 by=argocd-controller", false),
        ] {
            assert_eq!(item(&format!("prune {words}")).is_behind, expected, "{words}");
        }
    }

    #[test]
    fn only_a_desired_object_that_the_other_app_dropped_moves_here() {
        for (words, expected) in [
            ("live git owner=gone:shop", true),
            // This app does not want it either.
            ("live owner=gone:shop", false),
            ("live git owner=other:shop", false),
            ("live git owner=nobody", false),
            ("live git", false),
            ("git owner=gone:shop", false),
        ] {
            assert_eq!(item(words).moves_here, expected, "{words}");
        }
    }

    #[test]
    fn the_context_is_the_request_and_the_first_finding_that_counts() {
        let asked = asked().to_string();
        for (words, desired, opponent, n_fields) in [
            ("live git edit", asked.as_str(), Some("edit"), 2),
            ("live git forgiven-edit edit", &asked, Some("edit"), 2),
            ("live git edit behind", &asked, Some("edit"), 2),
            // The writer is not known.
            ("live git behind", &asked, None, 2),
            // Nothing counts.
            ("live git forgiven-edit", &asked, None, 0),
            ("live git edit unjudged", &asked, None, 0),
            // Git does not have it.
            ("live prune edit", "", Some("edit"), 2),
        ] {
            let expected = HealContext {
                desired: desired.to_owned(),
                opponent: opponent.map(str::to_owned),
                fields: ["/data/a", "/data/b"].iter().take(n_fields).map(ToString::to_string).collect(),
            };
            assert_eq!(item(words).context, expected, "{words}");
        }
    }

    #[test]
    fn the_rest_is_taken_as_it_is() {
        for (words, status, requires_pruning, is_paused) in [
            ("live git edit", SyncCode::OutOfSync, false, false),
            ("live prune", SyncCode::Synced, true, false),
            ("live git paused", SyncCode::Synced, false, true),
        ] {
            let item = item(words);
            assert_eq!((item.key, item.status), (key("ConfigMap", "web"), Some(status)), "{words}");
            assert_eq!((item.requires_pruning, item.is_paused), (requires_pruning, is_paused), "{words}");
        }
    }
}
