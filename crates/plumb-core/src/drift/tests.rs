//! Properties of every input. The classes are tested with recordings of a real cluster, in
//! `tests/replay`.

#![expect(clippy::needless_pass_by_value, reason = "`json!` reads better at the call")]

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::app::CompareOptions;
use crate::desired::{DesiredObject, ObjectOptions};
use crate::ignore::IgnoreRules;
use crate::object::{Manifest, ObjectKey};
use crate::schema::SchemaSet;

fn object(kind: &str, body: Value, managers: &[(String, bool, Vec<String>)]) -> Manifest {
    let entries: Vec<Value> = managers
        .iter()
        .enumerate()
        .map(|(at, (manager, apply, fields))| {
            let fields: serde_json::Map<String, Value> =
                fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
            json!({"manager": manager, "operation": if *apply { "Apply" } else { "Update" },
                "time": format!("2026-01-0{}T00:00:00Z", at + 1), "fieldsV1": {"f:data": fields}})
        })
        .collect();
    Manifest::new(json!({"apiVersion": "v1", "kind": kind,
        "metadata": {"name": "x", "namespace": "n", "managedFields": entries}, "data": body}))
    .unwrap()
}

/// Judges to the end with these answers; panics if a question is asked twice or the judge does not settle.
fn settle(evidence: &Evidence<'_>, answers: Answers<'_>) -> Verdict {
    let mut evidence = evidence.clone();
    for _ in 0..4 {
        match judge(&evidence) {
            Outcome::Settled(verdict) => return *verdict,
            Outcome::Ask(questions) => {
                assert!(!questions.is_empty());
                for question in questions {
                    match question {
                        Question::DryRun => {
                            assert!(evidence.answers.dry_run.is_none());
                            evidence.answers.dry_run = Some(answers.dry_run.unwrap_or(DryRun::Unavailable));
                        }
                        Question::SecondRender => {
                            assert!(evidence.answers.second_render.is_none());
                            evidence.answers.second_render =
                                Some(answers.second_render.unwrap_or(SecondRender::Unavailable));
                        }
                        Question::LiveAt { .. } => {
                            assert!(evidence.answers.live_at.is_none());
                            evidence.answers.live_at = Some(None);
                        }
                    }
                }
            }
        }
    }
    panic!("the judge does not stop asking");
}

/// Is the class one that the rules of the finding can give?
fn is_of_its_rule(finding: &Finding) -> bool {
    finding.rule.split(", ").all(|name| {
        let groups = rule_groups();
        let mut rules = groups.iter().flat_map(|group| &group.rules);
        rules.any(|rule| rule.name == name && rule.classes.contains(&finding.class))
    })
}

fn data() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", "[xy]{0,2}", 0..4).prop_map(|map| {
        Value::Object(map.into_iter().map(|(key, text)| (key, Value::String(text))).collect())
    })
}

fn managers() -> impl Strategy<Value = Vec<(String, bool, Vec<String>)>> {
    let name = prop_oneof![
        Just("argocd-controller".to_owned()),
        Just("kubectl-edit".to_owned()),
        Just("kubectl-client-side-apply".to_owned()),
        Just("some-operator".to_owned()),
        Just("kube-controller-manager".to_owned()),
    ];
    prop::collection::vec((name, any::<bool>(), prop::collection::vec("[a-d]", 0..4)), 0..4)
}

proptest! {
    #[test]
    fn every_input_leads_to_a_verdict(
        desired in prop::option::of(data()),
        live in prop::option::of(data()),
        dry_run in prop::option::of(data()),
        second in prop::option::of(data()),
        previous in 0..4_u8,
        owner in 0..3_u8,
        managers in managers(),
        varies in any::<bool>(),
        strict in any::<bool>(),
        code in 400..600_u16,
        mutated in any::<bool>(),
    ) {
        let key = ObjectKey::new("", "ConfigMap", Some("n".to_owned()), "x");
        let manifest = |body: &Value| object("ConfigMap", body.clone(), &[]);
        let wanted = desired.as_ref().map(|body| DesiredObject {
            key: key.clone(), manifest: manifest(body), options: ObjectOptions::default(), origin: None });
        let found = live.as_ref().map(|body| object("ConfigMap", body.clone(), &managers));
        let before = manifest(&json!({"a": "x"}));
        let (dry_run, second) = (dry_run.as_ref().map(&manifest), second.as_ref().map(&manifest));
        let failure = ApiFailure { code, reason: "Refused".to_owned(), message: "no".to_owned(), causes: Vec::new() };
        let mutator = Mutator { kind: "MutatingAdmissionPolicy".to_owned(), name: "mirror".to_owned() };
        let mutators = if mutated { vec![mutator] } else { Vec::new() };
        let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
        let evidence = Evidence {
            key: &key, desired: wanted.as_ref(), live: found.as_ref(), schemas: &schemas, rules: &rules,
            options: CompareOptions { strict, ..CompareOptions::default() },
            facts: Facts {
                app: "app",
                owner: match owner { 0 => LiveOwner::ThisApp, 1 => LiveOwner::Nobody, _ => LiveOwner::App("other".to_owned()) },
                previous: match previous { 0 => Previous::Unknown, 1 => Previous::Same, 2 => Previous::Changed(None), _ => Previous::Changed(Some(&before)) },
                render_may_vary: varies,
                mutators: &mutators,
                ..Facts::default()
            },
            answers: Answers::default(),
            now: "2026-02-01T00:00:00Z".parse().unwrap(),
        };
        let answers = Answers {
            dry_run: Some(dry_run.as_ref().map_or(DryRun::Refused(&failure), DryRun::Object)),
            second_render: Some(SecondRender::Object(second.as_ref())),
            live_at: None,
        };
        let verdict = settle(&evidence, answers);
        let counts = verdict.findings.iter().any(|finding| finding.counts);
        for finding in verdict.findings.iter() {
            prop_assert!(is_of_its_rule(finding), "{finding:?}");
        }
        prop_assert_eq!(counts, verdict.status == VerdictStatus::OutOfSync);
        // Every value of Git that the cluster does not have is named by a finding.
        if let (Some(wanted), Some(found), 0) = (&wanted, &found, owner) {
            for (field, value) in wanted.manifest.value()["data"].as_object().unwrap() {
                if found.value()["data"].get(field) != Some(value) {
                    let pointer = format!("/data/{field}");
                    let named = verdict.findings.iter().any(|finding|
                        finding.class == DriftClass::Blocked || finding.fields.iter().any(|named| named.to_string() == pointer));
                    prop_assert!(named, "{pointer} is not explained: {:?}", verdict.findings);
                }
            }
        }
        // Without an answer of the API server, a value that differs from Git always counts.
        if let (Some(wanted), Some(found), 0, None, false) = (&wanted, &found, owner, &dry_run, varies) {
            for (field, value) in wanted.manifest.value()["data"].as_object().unwrap() {
                // The owner of a field is known without the API server.
                let pointer = format!("/data/{field}");
                let is_owned = verdict.findings.iter().any(|finding|
                    finding.class == DriftClass::ControllerOwned && finding.fields.iter().any(|named| named.to_string() == pointer));
                if !is_owned && found.value()["data"].get(field).is_some_and(|held| held != value) {
                    prop_assert!(counts, "{field}: {:?}", verdict.findings);
                }
            }
        }
        // A field that Git does not set never counts unless it was ours, or Strict is set.
        if let (Some(wanted), 0, false) = (&wanted, owner, strict) {
            for finding in verdict.findings.iter().filter(|finding| finding.counts) {
                let ours = matches!(finding.class, DriftClass::Behind | DriftClass::StaleOwnership | DriftClass::Blocked);
                let set = finding.fields.iter().all(|field| field.find(wanted.manifest.value()).is_some());
                // Another client may have applied under plumb's name.
                let named = finding.class == DriftClass::LiveEdit
                    && managers.iter().any(|(manager, ..)| manager == "argocd-controller");
                prop_assert!(ours || set || named, "{finding:?}");
            }
        }
    }

    #[test]
    fn secrets_never_leave_the_comparison(one in "[a-z]{12}", other in "[a-z]{12}", third in "[a-z]{12}", managers in managers(), raw in any::<bool>()) {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let hex = |text: &str| text.bytes().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| char::from_digit(digit.into(), 16)).collect::<String>();
        let key = ObjectKey::new("", "Secret", Some("n".to_owned()), "x");
        let body = if raw { json!({"a": one.clone(), "gone": other.clone()}) } else { json!({"a": encode(&one), "gone": encode(&other)}) };
        let wanted = DesiredObject { key: key.clone(), manifest: object("Secret", body, &[]), options: ObjectOptions::default(), origin: None };
        let found = object("Secret", json!({"a": encode(&other), "b": encode(&third)}), &managers);
        let answer = object("Secret", json!({"a": encode(&third)}), &[]);
        let failure = ApiFailure { code: 422, reason: "Invalid".to_owned(), message: format!("bad value {one} {}", encode(&other)), causes: Vec::new() };
        let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
        for (dry_run, previous) in [(DryRun::Object(&answer), Previous::Unknown), (DryRun::Refused(&failure), Previous::Changed(Some(&answer))), (DryRun::Unavailable, Previous::Same)] {
            let evidence = Evidence {
                key: &key, desired: Some(&wanted), live: Some(&found), schemas: &schemas, rules: &rules,
                options: CompareOptions { strict: true, ..CompareOptions::default() },
                facts: Facts { app: "app", previous, ..Facts::default() },
                answers: Answers::default(),
                now: "2026-02-01T00:00:00Z".parse().unwrap(),
            };
            let verdict = settle(&evidence, Answers { dry_run: Some(dry_run), ..Answers::default() });
            let text = format!("{verdict:?}");
            for canary in [&one, &other, &third] {
                for spelled in [canary.clone(), encode(canary), hex(canary)] {
                    prop_assert!(!text.contains(&spelled), "{spelled} in {text}");
                }
            }
        }
    }
}

#[test]
fn the_key_of_a_verdict_changes_with_the_manifest_of_another_app() {
    let key = ObjectKey::new("", "ConfigMap", Some("n".to_owned()), "x");
    let (schemas, rules) = (SchemaSet::default(), IgnoreRules::default());
    let key_beside = |theirs: &Manifest| {
        let claims = [Claim { app: "other", manifest: Some(theirs) }];
        VerdictKey::of(&Evidence {
            key: &key,
            desired: None,
            live: None,
            schemas: &schemas,
            rules: &rules,
            options: CompareOptions::default(),
            facts: Facts { claims: &claims, ..Facts::default() },
            answers: Answers::default(),
            now: "2026-02-01T00:00:00Z".parse().unwrap(),
        })
    };
    let [one, two] = ["1", "2"].map(|level| object("ConfigMap", json!({"level": level}), &[]));
    assert_eq!(key_beside(&one), key_beside(&one));
    assert_ne!(key_beside(&one), key_beside(&two));
}
