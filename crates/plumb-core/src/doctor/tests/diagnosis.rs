//! What comes first, and what is left out.

use std::collections::BTreeSet;

use expect_test::expect;

use super::scene::*;
use crate::doctor::*;
use crate::drift::DriftClass;

#[test]
fn the_longest_illness_is_the_first_line() {
    let diagnosis = diagnose(&cluster(), &Filter::default(), now());
    expect![[r"
        UNHEALTHY for 21d 2h: rollouts: apps/Deployment shop/rollouts: Progressing, stuck
              Pod shop/rollouts-6b4c: container main keeps crashing (CrashLoopBackOff): 1154 restarts, exit code 1
        UNHEALTHY for 1h 0m: payments: Service shop/lb: Degraded
          → plumb unmask  # all of them, and what changed before each of them began

        WRONG (3)
          Blocked Service: 1 finding in payments
              payments Service shop/lb: /spec/ports
              ends with: the fix of Blocked
          LiveEdit Deployment: 2 findings in payments, team/payments, by kubectl, for 2d 0h
              payments apps/Deployment shop/web: /spec/replicas
              team/payments apps/Deployment shop/api: /spec/replicas
              ends with: the fix of LiveEdit
          → plumb drift APP  # the evidence; then sync, or change Git

        RED, BUT NOTHING IS WRONG (1)
          PhantomDefault ConfigMap: 1 finding in payments
              payments ConfigMap shop/c: /data/x
              ends with: the fix of PhantomDefault
          → plumb fix --patch  # the changes of Git that end it; --branch NAME commits them

        NOT IN GIT (1)
          Orphan Secret: 1 finding in payments, for 6d 23h
              payments Secret shop/old|one
          → plumb orphans  # who still uses them, and in which order they can go

        RENDERED DIFFERENTLY EACH TIME (1)
          UnstableRender Deployment: 1 finding in team/payments
              team/payments apps/Deployment shop/api: /spec/template/metadata/annotations/t
              ends with: the fix of UnstableRender
          → plumb fix --class UnstableRender --patch  # a rule for exactly these fields

        PAUSED (1)
          payments: apps/Deployment shop/web: ends in 2h 0m (load test)
          → plumb resume APP

        3 apps: 2 objects unhealthy for too long, 3 wrong, 1 not in Git, 1 red without a reason; 1 more difference without any meaning"]].assert_eq(&text(&diagnosis, "argocd", now()));
    assert!(diagnosis.is_bad());
}

#[test]
fn what_is_red_without_any_difference_is_named() {
    let mut tekton = app(
        "argocd",
        "tekton",
        vec![
            finding(DriftClass::SchemaDefault, false, "Service", "s", "/spec/type", None),
            finding(DriftClass::Unexplained, true, "ConfigMap", "c", "/data/x", None),
        ],
    );
    tekton.status_of = StatusOf::ArgoCd;
    tekton.red = BTreeSet::from([
        key("Deployment", "task"),
        key("Service", "s"),
        key("ConfigMap", "c"),
        key("Secret", "unread"),
    ]);
    tekton.problem = Some("cannot read Secret shop/unread: forbidden".to_owned());
    let diagnosis = diagnose(std::slice::from_ref(&tekton), &Filter::default(), now());
    expect![[r"
        WRONG (1)
          Unexplained ConfigMap: 1 finding in tekton
              tekton ConfigMap shop/c: /data/x
              ends with: the fix of Unexplained
          → plumb doctor --app APP -o yaml  # the evidence; then sync, or change Git
          → plumb doctor --dry-runs  # the API server can explain some of them; it changes nothing

        RED, BUT NOTHING IS WRONG (1)
          SchemaDefault Service: 1 finding in tekton
              tekton Service shop/s: /spec/type
              Argo CD: OutOfSync. plumb: nothing is wrong (SchemaDefault), ends with: the fix of SchemaDefault
          → plumb fix --patch  # the changes of Git that end it; --branch NAME commits them

        RED, AND PLUMB FINDS NO DIFFERENCE (1)
          tekton: apps/Deployment shop/task
          → plumb app get APP --hard-refresh  # Argo CD compares again
          → plumb doctor --app APP --dry-runs -o yaml  # still red: report it with this

        NOT JUDGED BY PLUMB (1)
          tekton: cannot read Secret shop/unread: forbidden
          → plumb app get APP  # its conditions

        1 app: 0 objects unhealthy for too long, 1 wrong, 0 not in Git, 2 red without a reason; 0 more differences without any meaning"]]
    .assert_eq(&text(&diagnosis, "argocd", now()));
    assert_eq!(data(&diagnosis)["summary"]["redWithoutDifference"], 1);
    assert!(markdown(&diagnosis, "argocd", now()).contains("| tekton | apps/Deployment shop/task |"));
    assert!(sarif(&diagnosis, "1").to_string().contains("plumb finds no difference"));
    assert!(junit(&diagnosis).contains("apps/Deployment shop/task has no difference"));
    // Where plumb's engine wrote the status, it is plumb's own verdict.
    let own = AppFacts { status_of: StatusOf::Plumb, ..tekton };
    assert!(diagnose(&[own], &Filter::default(), now()).unexplained.is_empty());
}

#[test]
fn a_healthy_cluster_takes_one_line() {
    let quiet =
        [app("argocd", "a", vec![finding(DriftClass::SchemaDefault, false, "Service", "s", "/spec", None)])];
    let diagnosis = diagnose(&quiet, &Filter::default(), now());
    expect!["1 app: 0 objects unhealthy for too long, 0 wrong, 0 not in Git, 0 red without a reason; 1 more difference without any meaning"].assert_eq(&text(&diagnosis, "argocd", now()));
    expect![[r"
        # plumb doctor

        Nothing is wrong.
    "]]
    .assert_eq(&markdown(&diagnosis, "argocd", now()));
    assert!(!diagnosis.is_bad());
}

#[test]
fn filters() {
    let shown = |filter: &Filter| {
        let found = diagnose(&cluster(), filter, now());
        let groups = [&found.wrong, &found.harmless, &found.orphans, &found.unstable];
        let n_findings: usize =
            groups.iter().flat_map(|groups| groups.iter()).map(|group| group.places.len()).sum();
        (found.n_apps, found.ill.len(), n_findings, found.pauses.len())
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(shown(&Filter::default()), (3, 2, 6, 1));
    assert_eq!(shown(&Filter { classes: vec![DriftClass::LiveEdit], ..Filter::default() }), (3, 0, 2, 0));
    assert_eq!(shown(&Filter { kinds: words(&["service"]), ..Filter::default() }), (3, 1, 1, 1));
    assert_eq!(shown(&Filter { apps: words(&["team/payments"]), ..Filter::default() }), (1, 0, 2, 0));
    assert_eq!(shown(&Filter { apps: words(&["payments"]), ..Filter::default() }), (2, 1, 6, 1));
    assert_eq!(shown(&Filter { projects: words(&["team"]), ..Filter::default() }), (1, 0, 2, 0));
}

/// Without an engine of plumb there is no verdict, and that is said.
#[test]
fn red_without_a_report_is_not_called_harmless() {
    let mut argo = app("argocd", "legacy", Vec::new());
    argo.is_judged = false;
    argo.red = BTreeSet::from([key("ConfigMap", "c"), key("Deployment", "web")]);
    let diagnosis = diagnose(&[argo.clone()], &Filter::default(), now());
    expect![[r"
        NOT JUDGED BY PLUMB (1)
          legacy: OutOfSync: ConfigMap shop/c, apps/Deployment shop/web
          → plumb app get APP  # its conditions

        1 app: 0 objects unhealthy for too long, 0 wrong, 0 not in Git, 0 red without a reason; 0 more differences without any meaning"]].assert_eq(&text(&diagnosis, "argocd", now()));
    assert!(diagnosis.is_bad() && diagnosis.harmless.is_empty());
    argo.is_judged = true;
    assert!(!diagnose(&[argo], &Filter::default(), now()).is_bad());
}

/// Under Argo CD, its verdict is shown beside plumb's.
#[test]
fn what_argo_cd_says_is_shown_beside_the_verdict() {
    let default = |name: &str| {
        let mut finding = finding(DriftClass::SchemaDefault, false, "Service", name, "/spec/type", None);
        finding.fix.patch = Some("- op: add\n  path: /spec/type\n  value: ClusterIP".to_owned());
        finding
    };
    let edit = finding(DriftClass::LiveEdit, true, "Deployment", "web", "/spec/replicas", None);
    let unadopted = finding(DriftClass::Unadopted, true, "ConfigMap", "c", "", None);
    let mut shop = app("argocd", "shop", vec![default("a"), default("b"), edit, unadopted]);
    shop.status_of = StatusOf::ArgoCd;
    shop.red = BTreeSet::from([key("Service", "a"), key("ConfigMap", "c")]);
    shop.plain_secrets = vec![key("Secret", "login")];
    let mut away = app("argocd", "away", Vec::new());
    away.is_judged = false;
    away.problem = Some("its destination is not the control-plane cluster".to_owned());
    let diagnosis = diagnose(&[shop, away], &Filter::default(), now());
    expect![[r"
        WRONG (2)
          LiveEdit Deployment: 1 finding in shop, by kubectl
              shop apps/Deployment shop/web: /spec/replicas (Argo CD: Synced)
              ends with: the fix of LiveEdit
          Unadopted ConfigMap: 1 finding in shop
              shop ConfigMap shop/c: 
              ends with: the fix of Unadopted
          → plumb doctor --app APP -o yaml  # the evidence; then sync, or change Git
          → plumb adopt --all --dry-run  # marks existing objects as the app's own

        RED, BUT NOTHING IS WRONG (1)
          SchemaDefault Service: 1 finding in shop
              shop Service shop/a: /spec/type
              Argo CD: OutOfSync. plumb: nothing is wrong (SchemaDefault), ends with this patch:
                - op: add
                  path: /spec/type
                  value: ClusterIP
          → plumb fix --patch  # the changes of Git that end it; --branch NAME commits them

        NOT JUDGED BY PLUMB (1)
          away: its destination is not the control-plane cluster
          → plumb app get APP  # its conditions

        SECRETS WITH THEIR VALUES IN GIT (1)
          shop: Secret shop/login
          → plumb lint DIRECTORY  # names the files; a value that was in Git has to change

        2 apps: 0 objects unhealthy for too long, 2 wrong, 0 not in Git, 1 red without a reason; 1 more difference without any meaning"]].assert_eq(&text(&diagnosis, "argocd", now()));
    assert_eq!(data(&diagnosis)["harmless"][0]["argocd"], "OutOfSync");
    assert!(diagnosis.is_bad());
}

/// Names and messages come from others.
#[test]
fn what_others_wrote_stays_text() {
    let mut bad = app(
        "argocd",
        "a",
        vec![finding(DriftClass::Blocked, true, "Service", "x", "/a<b>\n\u{1b}[31m", None)],
    );
    bad.findings[0].actor = Some("[click](http://x) | <img>".to_owned());
    bad.findings[0].evidence = vec!["]]>&\u{0}".to_owned()];
    let diagnosis = diagnose(&[bad], &Filter::default(), now());
    let markdown = markdown(&diagnosis, "argocd", now());
    assert!(markdown.contains(r"\[click\](http://x) \| \<img\>"), "{markdown}");
    let xml = junit(&diagnosis);
    assert!(xml.contains("/a&lt;b&gt;") && xml.contains("]]&gt;&amp;") && !xml.contains('\u{1b}'), "{xml}");
    let screen = text(&diagnosis, "argocd", now());
    assert!(!screen.contains('\u{1b}'), "{screen}");
}

#[test]
fn a_thousand_apps_are_sorted_in_no_time() {
    let apps: Vec<AppFacts> = (0..1_000)
        .map(|number| {
            let findings = (0..20).map(|object| {
                let name = format!("o{object}");
                finding(DriftClass::SchemaDefault, false, "Deployment", &name, "/spec/x", None)
            });
            app("argocd", &format!("app-{number}"), findings.collect())
        })
        .collect();
    let diagnosis = diagnose(&apps, &Filter::default(), now());
    assert_eq!((diagnosis.n_apps, diagnosis.n_quiet), (1_000, 20_000));
    // What means nothing is counted, and not kept.
    assert!(diagnosis.harmless.is_empty() && diagnosis.unstable.is_empty());
}
