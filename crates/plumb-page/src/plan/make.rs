//! The plan of a verb.

use std::fmt::Write as _;

use jiff::Timestamp;
use plumb_crd::{Application, DriftReport};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::draft::Draft;
use super::{PlanRequest, Verb, deletion, other, pause, sync};
use crate::git_facts::PlanSources;

/// What would be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the page shows.
    pub shown: Value,
    /// Changes with the facts that the plan was made from.
    pub token: String,
    /// True if it can be done.
    pub is_possible: bool,
}

/// The plan of a verb on one app.
pub fn plan(
    verb: Verb,
    app: &Application,
    report: Option<&DriftReport>,
    sources: &PlanSources,
    request: &PlanRequest,
    now: Timestamp,
) -> Plan {
    let mut draft = Draft::default();
    match verb {
        Verb::Sync => sync::sync(&mut draft, app, report, sources, request),
        Verb::Refresh => other::refresh(&mut draft, app, request),
        Verb::Pause => pause::pause(&mut draft, app, request, now),
        Verb::Resume => pause::resume(&mut draft, app, request),
        Verb::Terminate => other::terminate(&mut draft, app),
        Verb::Rollback => sync::rollback(&mut draft, app, sources, request),
        Verb::Delete => deletion::delete(&mut draft, app, sources, request),
        Verb::Restart => other::restart(&mut draft, app, request),
        Verb::DeleteObject => deletion::delete_object(&mut draft, app, request),
        Verb::ConfirmDeletion => deletion::confirm_deletion(&mut draft, app, report),
    }
    let facts = json!([
        verb.name(),
        app.metadata.uid,
        draft.steps,
        draft.hurdle,
        app.operation.is_some(),
        format!("{request:?}"),
        app.status.sync.revision,
        sources.next.as_ref().map(|next| &next.revision)
    ]);
    let digest = Sha256::digest(facts.to_string().as_bytes());
    let token = digest.iter().take(16).fold(String::new(), |mut token, byte| {
        let _ = write!(token, "{byte:02x}");
        token
    });
    let shown = json!({
        "verb": verb.name(), "app": [app.metadata.namespace, app.metadata.name], "steps": draft.steps,
        "notes": draft.notes, "hurdle": draft.hurdle, "button": draft.button, "undo": draft.undo,
        "typed": if draft.typed { json!(app.metadata.name) } else { Value::Null }, "commands": draft.commands,
        "token": token,
    });
    Plan { shown, token, is_possible: draft.hurdle.is_none() }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use plumb_core::object::{Manifest, ObjectKey};

    use super::*;
    use crate::git_facts::GitFacts;
    use crate::row::tests::{app, live_edit, report};

    fn application() -> Application {
        let resource = |kind: &str, name: &str, status: &str, prune: bool| {
            json!({"group": "apps", "kind": kind, "namespace": "pay", "name": name, "status": status,
                   "requiresPruning": prune})
        };
        app(
            "payments",
            json!({"resources": [
                resource("Deployment", "payments", "OutOfSync", false),
                resource("Deployment", "fine", "Synced", false),
                resource("PersistentVolumeClaim", "old", "OutOfSync", true),
            ]}),
        )
    }

    #[expect(clippy::needless_pass_by_value, reason = "a table of cases is shorter so")]
    fn check(verb: Verb, request: &PlanRequest, expected: Expect) {
        let report = report("payments", json!([live_edit()]), json!([]));
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let shown = plan(verb, &application(), Some(&report), &PlanSources::default(), request, now).shown;
        let mut text = String::new();
        for step in shown["steps"].as_array().unwrap() {
            let _ = writeln!(text, "{} {}: {}", step["what"], step["name"], step["why"]);
        }
        let _ = writeln!(text, "[{}] typed {} hurdle {}", shown["button"], shown["typed"], shown["hurdle"]);
        let _ = writeln!(text, "$ {}", shown["commands"][0]);
        expected.assert_eq(&text);
    }

    #[test]
    fn plans() {
        check(
            Verb::Sync,
            &PlanRequest::default(),
            expect![[r#"
                "apply" "payments": "LiveEdit: Git says 3, the cluster has 10"
                "keep" "old": "it is no longer in Git; prune would delete it"
                ["Apply 1"] typed null hurdle null
                $ "plumb app sync payments"
            "#]],
        );
        check(
            Verb::Sync,
            &PlanRequest { prune: true, ..PlanRequest::default() },
            expect![[r#"
                "apply" "payments": "LiveEdit: Git says 3, the cluster has 10"
                "delete" "old": "it is no longer in Git"
                ["Apply 1, delete 1"] typed "payments" hurdle null
                $ "plumb app sync payments --prune"
            "#]],
        );
        check(
            Verb::Pause,
            &PlanRequest { minutes: 30, reason: "it's $(mine)".to_owned(), ..PlanRequest::default() },
            expect![[r#"
                ["Pause 30 min"] typed null hurdle null
                $ "plumb pause payments --for 30m --reason 'it'\\''s $(mine)'"
            "#]],
        );
        check(
            Verb::Pause,
            &PlanRequest { minutes: 30, ..PlanRequest::default() },
            expect![[r#"
                ["Pause 30 min"] typed null hurdle "give a reason: other users will see it"
                $ "plumb pause payments --for 30m --reason ''"
            "#]],
        );
        check(
            Verb::Terminate,
            &PlanRequest::default(),
            expect![[r#"
                ["Terminate"] typed null hurdle "no operation runs"
                $ "plumb app terminate-op payments"
            "#]],
        );
    }

    #[test]
    fn a_token_holds_for_the_same_facts_only() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let token = |app: &Application, request: &PlanRequest| {
            plan(Verb::Sync, app, None, &PlanSources::default(), request, now).token
        };
        let plain = PlanRequest::default();
        let mut other = application();
        assert_eq!(token(&application(), &plain), token(&other, &plain));
        assert_ne!(token(&other, &plain), token(&other, &PlanRequest { prune: true, ..plain.clone() }));
        if let Some(resource) = other.status.resources.get_mut(1) {
            resource.status = "OutOfSync".to_owned();
        }
        assert_ne!(token(&application(), &plain), token(&other, &plain));
    }

    /// What Git has, as texts `kind name content [annotation=value]`.
    fn facts(revision: &str, objects: &[&str], hooks: &[&str]) -> GitFacts {
        let manifest = |text: &&str| {
            let words: Vec<&str> = text.split(' ').collect();
            let mut object = json!({"apiVersion": "apps/v1", "kind": words[0], "metadata": {"name": words[1], "namespace": "pay"},
                                    "spec": {"content": words[2]}});
            if let Some((name, value)) = words.get(3).and_then(|word| word.split_once('=')) {
                object["metadata"]["annotations"] = json!({name: value});
            }
            Manifest::new(object).unwrap()
        };
        let objects: Vec<Manifest> = objects.iter().map(manifest).collect();
        let hooks: Vec<Manifest> = hooks.iter().map(manifest).collect();
        let keys: Vec<ObjectKey> = objects.iter().map(|object| object.key().unwrap()).collect();
        GitFacts::of(revision, keys.iter().zip(&objects), hooks.iter())
    }

    fn steps(verb: Verb, sources: &PlanSources, request: &PlanRequest) -> String {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let shown = plan(verb, &application(), None, sources, request, now).shown;
        let mut text = String::new();
        for step in shown["steps"].as_array().unwrap() {
            let _ = writeln!(text, "{} {} {}: {}", step["wave"], step["what"], step["name"], step["why"]);
        }
        let _ = writeln!(text, "[{}] typed {}", shown["button"], shown["typed"]);
        text
    }

    #[test]
    fn a_new_commit_and_its_hooks_are_part_of_the_plan() {
        let sources = PlanSources {
            base: Some(facts("aaaaaaa1", &["Deployment payments 1", "Deployment fine 1"], &[])),
            next: Some(facts(
                "bbbbbbb2",
                &[
                    "Deployment payments 1",
                    "Deployment fine 2",
                    "Deployment new 1 argocd.argoproj.io/sync-wave=2",
                ],
                &["Job migrate 1 argocd.argoproj.io/hook=PreSync", "Job test 1 helm.sh/hook=post-upgrade"],
            )),
            problem: None,
        };
        expect![[r#"
            0 "hook" "migrate": "PreSync: runs before anything is applied"
            0 "apply" "payments": ""
            0 "apply" "fine": "commit bbbbbbb changes it"
            2 "create" "new": "commit bbbbbbb adds it"
            0 "keep" "old": "it is no longer in Git; prune would delete it"
            0 "hook" "test": "PostSync: runs after everything is healthy"
            ["Apply 3"] typed null
        "#]]
        .assert_eq(&steps(Verb::Sync, &sources, &PlanRequest::default()));
        // A sync of one object runs no hooks.
        let fine = ObjectKey::new("apps", "Deployment", Some("pay".to_owned()), "fine");
        let one = PlanRequest { objects: vec![fine], ..PlanRequest::default() };
        expect![[r#"
            0 "apply" "fine": "commit bbbbbbb changes it"
            ["Apply 1"] typed null
        "#]]
        .assert_eq(&steps(Verb::Sync, &sources, &one));
    }

    #[test]
    fn commands_name_the_group_and_the_cluster() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let shown = |verb: Verb, key: ObjectKey, cluster: &str| {
            let mut app = application();
            cluster.clone_into(&mut app.spec.destination.name);
            let request = PlanRequest { objects: vec![key], ..PlanRequest::default() };
            let shown = plan(verb, &app, None, &PlanSources::default(), &request, now).shown;
            let is_named = shown["notes"].to_string().contains("against the cluster prod");
            format!("{} {is_named}", shown["commands"][0].as_str().unwrap())
        };
        let key = |group: &str, kind: &str| ObjectKey::new(group, kind, Some("pay".to_owned()), "web");
        assert_eq!(
            shown(Verb::DeleteObject, key("serving.knative.dev", "Service"), "prod"),
            "kubectl -n pay delete service.serving.knative.dev/web true"
        );
        assert_eq!(
            shown(Verb::DeleteObject, key("", "Service"), "in-cluster"),
            "kubectl -n pay delete service/web false"
        );
        assert_eq!(
            shown(Verb::Restart, key("apps", "Deployment"), "prod"),
            "kubectl -n pay rollout restart deployment.apps/web true"
        );
    }

    #[test]
    fn a_plan_says_how_to_go_back_and_names_hooks() {
        let now = "2026-11-15T03:12:12Z".parse().unwrap();
        let mut app = app("payments", json!({}));
        let next = facts("aaaaaaa1", &[], &["Job test 1 argocd.argoproj.io/hook=PostSync"]);
        let sources = PlanSources { next: Some(next), ..PlanSources::default() };
        let shown =
            |app: &Application| plan(Verb::Sync, app, None, &sources, &PlanRequest::default(), now).shown;
        assert_eq!(
            (&shown(&app)["button"], &shown(&app)["undo"]),
            (&json!("Run 1 hook"), &json!("To go back, revert the commit."))
        );
        app.spec.sync_policy = None;
        assert_eq!(shown(&app)["undo"], "Rollback goes back to the state before.");
    }

    #[test]
    fn what_stays_when_an_app_goes() {
        let keeps = "Deployment fine 1 argocd.argoproj.io/sync-options=Delete=false";
        let next = facts("aaaaaaa1", &["Deployment payments 1", keeps], &[]);
        let sources = PlanSources { next: Some(next), ..PlanSources::default() };
        let request = PlanRequest { cascade: true, ..PlanRequest::default() };
        expect![[r#"
            0 "delete" "payments": "its app goes"
            0 "delete" "old": "its app goes, and its data with it"
            0 "keep" "fine": "Git says that it stays"
            ["Delete the Application and 2 objects"] typed "payments"
        "#]]
        .assert_eq(&steps(Verb::Delete, &sources, &request));
    }

    #[test]
    fn one_object_is_paused_and_a_deletion_is_confirmed() {
        let object = ObjectKey::new("apps", "Deployment", Some("pay".to_owned()), "fine");
        let request = PlanRequest {
            objects: vec![object],
            reason: "a test".to_owned(),
            minutes: 30,
            ..PlanRequest::default()
        };
        check(
            Verb::Pause,
            &request,
            expect![[r#"
                "pause" "fine": "neither syncs nor self-heal change it"
                ["Pause fine 30 min"] typed null hurdle null
                $ "plumb pause payments apps/Deployment/pay/fine --for 30m --reason 'a test'"
            "#]],
        );
        check(
            Verb::ConfirmDeletion,
            &PlanRequest::default(),
            expect![[r#"
                ["Confirm 0 deletions"] typed null hurdle "no deletion waits for a confirmation"
                $ "plumb app confirm-deletion payments"
            "#]],
        );
    }
}
