//! What a finding says about other objects and apps: what still uses an orphan, and on what two apps disagree.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be made or told fails the test")]

use plumb_core::app::CompareOptions;
use plumb_core::desired::{DesiredObject, ObjectOptions, Origin};
use plumb_core::drift::{
    Answers, Claim, DriftClass, Evidence, Extraneous, Facts, Finding, LiveOwner, NotCompared, Outcome,
    Previous, Verdict, VerdictStatus, judge,
};
use plumb_core::ignore::IgnoreRules;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::schema::SchemaSet;
use serde_json::json;

fn key() -> ObjectKey {
    ObjectKey::new("", "ConfigMap", Some("shop".to_owned()), "settings")
}

fn map(level: &str, annotations: &serde_json::Value) -> Manifest {
    Manifest::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"level": level, "same": "x"},
        "metadata": {"name": "settings", "namespace": "shop", "annotations": annotations}}))
    .unwrap()
}

fn judged(desired: Option<&Manifest>, live: &Manifest, facts: Facts<'_>) -> Verdict {
    let desired = desired.map(|manifest| DesiredObject {
        key: key(),
        manifest: manifest.clone(),
        options: ObjectOptions::default(),
        origin: Some(Origin { source: 0, file: "apps/shop.yaml".to_owned(), line: 7, verbatim: true }),
    });
    let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
    let outcome = judge(&Evidence {
        key: &key(),
        desired: desired.as_ref(),
        live: Some(live),
        schemas: &schemas,
        rules: &rules,
        options: CompareOptions::default(),
        facts,
        answers: Answers::default(),
        now: "2026-02-01T00:00:00Z".parse().unwrap(),
    });
    match outcome {
        Outcome::Settled(verdict) => *verdict,
        Outcome::Ask(questions) => panic!("asks {questions:?}"),
    }
}

fn only(verdict: &Verdict, class: DriftClass) -> &Finding {
    let [finding] = &*verdict.findings else { panic!("{:?}", verdict.findings) };
    assert_eq!(finding.class, class);
    finding
}

#[test]
fn an_orphan_names_what_still_uses_it() {
    let users: Vec<ObjectKey> =
        (0..7).map(|n| ObjectKey::new("", "Pod", Some("shop".to_owned()), format!("web-{n}"))).collect();
    let live = map("1", &json!({}));
    let facts = Facts { app: "shop", owner: LiveOwner::ThisApp, users: &users, ..Facts::default() };
    let verdict = judged(None, &live, facts.clone());
    assert!(verdict.status == VerdictStatus::OutOfSync && verdict.requires_pruning);
    let orphan = only(&verdict, DriftClass::Orphan);
    let used = "Pod shop/web-0, Pod shop/web-1, Pod shop/web-2, Pod shop/web-3, Pod shop/web-4, and 2 more";
    assert!(orphan.evidence.contains(&format!("still used by {used}")), "{:?}", orphan.evidence);
    assert!(orphan.fix.text.starts_with(&format!("first check what still uses it ({used}); then ")));

    let nobodys = judged(None, &live, Facts { users: &[], ..facts });
    let orphan = only(&nobodys, DriftClass::Orphan);
    assert!(!orphan.evidence.iter().any(|line| line.contains("used by")), "{:?}", orphan.evidence);
    assert!(orphan.fix.text.starts_with("preview with `plumb app sync shop --prune --dry-run`"));
}

#[test]
fn the_namespace_that_options_ask_for_is_no_orphan() {
    let live = map("1", &json!({}));
    let facts = Facts {
        app: "shop",
        owner: LiveOwner::ThisApp,
        extraneous: Extraneous { is_asked_for: true, ..Extraneous::default() },
        ..Facts::default()
    };
    let verdict = judged(None, &live, facts.clone());
    assert_eq!(verdict.status, VerdictStatus::NotCompared(NotCompared::AskedFor));
    assert!(!verdict.requires_pruning && !verdict.counts_for_app && verdict.findings.is_empty());
    // Git has it: it is compared.
    assert_eq!(judged(Some(&live), &live, facts).status, VerdictStatus::Synced);
}

#[test]
fn an_orphan_says_why_it_is_not_pruned() {
    let facts = |prune| Facts { app: "shop", owner: LiveOwner::ThisApp, prune, ..Facts::default() };
    for (annotations, prune, why) in [
        (json!({}), false, "the app's sync policy does not prune"),
        (json!({}), true, "the next sync with prune deletes it"),
        (
            json!({"argocd.argoproj.io/sync-options": "Prune=false"}),
            true,
            "it is protected by the sync option `Prune=false`",
        ),
        // Only the deletion of the whole app follows it.
        (json!({"helm.sh/resource-policy": "keep"}), true, "the next sync with prune deletes it"),
    ] {
        let verdict = judged(None, &map("1", &annotations), facts(prune));
        let orphan = only(&verdict, DriftClass::Orphan);
        assert!(orphan.evidence.iter().any(|line| line.ends_with(why)), "{why}: {:?}", orphan.evidence);
    }
}

/// Both apps report on what they disagree; it counts for the one that does not track the object.
#[test]
fn both_apps_report_on_what_they_disagree() {
    let (ours, theirs) = (map("1", &json!({})), map("2", &json!({})));
    let fields = |finding: &Finding| finding.fields.iter().map(ToString::to_string).collect::<Vec<_>>();

    let claims = [Claim { app: "billing", manifest: Some(&theirs) }];
    let facts = Facts {
        app: "shop",
        owner: LiveOwner::ThisApp,
        previous: Previous::Same,
        claims: &claims,
        ..Facts::default()
    };
    let keeper = judged(Some(&ours), &ours, facts.clone());
    assert_eq!(keeper.status, VerdictStatus::Synced);
    let finding = only(&keeper, DriftClass::SharedResource);
    assert_eq!((fields(finding), finding.counts), (vec!["/data/level".to_owned()], false));
    assert_eq!(finding.actor.as_deref(), Some("billing"));
    assert!(finding.evidence.contains(&"app `billing` asks for another value at /data/level".to_owned()));
    assert!(finding.fix.text.contains("line 7 of apps/shop.yaml"), "{}", finding.fix.text);

    let loser = judged(
        Some(&ours),
        &theirs,
        Facts { owner: LiveOwner::App("billing".to_owned()), previous: Previous::Unknown, ..facts },
    );
    assert_eq!(loser.status, VerdictStatus::OutOfSync);
    let finding = only(&loser, DriftClass::SharedResource);
    assert_eq!((fields(finding), finding.counts), (vec!["/data/level".to_owned()], true));
    assert_eq!(finding.actor.as_deref(), Some("billing"));
    let said = r#"the apps disagree on /data/level: Git says "1", the cluster has "2""#;
    assert!(finding.evidence.contains(&said.to_owned()), "{:?}", finding.evidence);

    // A value that both ask for and another writer edited is reported by the owner only.
    let claims = [Claim { app: "billing", manifest: Some(&ours) }];
    let owner = LiveOwner::App("billing".to_owned());
    let agreed =
        judged(Some(&ours), &theirs, Facts { app: "shop", owner, claims: &claims, ..Facts::default() });
    let finding = only(&agreed, DriftClass::SharedResource);
    assert_eq!((fields(finding), finding.counts), (Vec::<String>::new(), true));
}
