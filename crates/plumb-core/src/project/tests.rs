use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use super::*;
use crate::object::{GroupKind, ObjectKey};

fn compile(rules: ProjectRules) -> Project {
    let (project, problems) = Project::compile(&ProjectRules { name: "team".to_owned(), ..rules });
    assert_eq!(problems, []);
    project
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

const PROD: TargetCluster<'static> =
    TargetCluster { server: "https://prod.example.com", name: "prod", project: None };
const TEST: TargetCluster<'static> =
    TargetCluster { server: "https://test.example.com", name: "test", project: None };

#[test]
fn sources_need_a_permission_and_no_veto() {
    let cases: &[(&[&str], &str, bool)] = &[
        (&[], "https://git.example.com/a", false),
        (&["*"], "https://git.example.com/a/b.git", true),
        (&["*"], "git@github.com:org/repo.git", true),
        (&["https://git.example.com/team/*"], "https://git.example.com/team/a.git", true),
        (&["https://git.example.com/team/*"], "https://git.example.com/team/a/b", false),
        (&["https://git.example.com/team/**"], "https://git.example.com/team/a/b", true),
        (&["https://git.example.com/team/**"], "https://git.example.com/team/../other/b", false),
        (&["https://GIT.example.com/Team/*.git"], "https://git.example.com/team/a", true),
        (&["https://github.com/org/repo"], "https://github.com/org/repo.git", true),
        (&["git@github.com:org/*"], "ssh://git@github.com/org/repo.git", true),
        (&["*", "!https://git.example.com/secret/*"], "https://git.example.com/secret/a", false),
        (&["!https://git.example.com/secret/*", "*"], "https://git.example.com/secret/A.git", false),
        (&["!https://git.example.com/secret/*", "*"], "https://git.example.com/open/a", true),
        (&["!https://git.example.com/secret/*", "*"], "https://x@git.example.com/secret/a", false),
        // Documented: a veto alone permits nothing.
        (&["!https://git.example.com/secret/*"], "https://git.example.com/open/a", false),
        (&["https://*.example.com/a"], "https://evil.com/x.example.com/a", false),
    ];
    for (patterns, url, expected) in cases {
        let project = compile(ProjectRules { source_repos: texts(patterns), ..ProjectRules::default() });
        assert_eq!(project.permits_source(url), *expected, "{patterns:?} on {url}");
    }
}

fn place(server: &str, name: &str, namespace: &str) -> DestinationPattern {
    DestinationPattern { server: server.to_owned(), name: name.to_owned(), namespace: namespace.to_owned() }
}

#[test]
fn destinations_need_a_permission_and_no_veto() {
    let all = || place("*", "", "*");
    let cases: &[(Vec<DestinationPattern>, TargetCluster<'_>, &str, bool)] = &[
        (vec![], PROD, "web", false),
        (vec![all()], PROD, "web", true),
        (vec![all()], PROD, "", true),
        (vec![place("https://prod.example.com", "", "team-*")], PROD, "team-a", true),
        (vec![place("https://prod.example.com", "", "team-*")], PROD, "kube-system", false),
        (vec![place("https://prod.example.com", "", "team-*")], TEST, "team-a", false),
        (vec![place("", "prod", "*")], PROD, "web", true),
        (vec![place("", "prod", "*")], TEST, "web", false),
        // Server or name: one is enough.
        (vec![place("https://other", "prod", "*")], PROD, "web", true),
        // A blank namespace is not a wildcard.
        (vec![place("*", "", "")], PROD, "web", false),
        (vec![place("*", "", "")], PROD, "", true),
        // Vetoes, in any order.
        (vec![place("*", "", "!kube-system"), all()], PROD, "kube-system", false),
        (vec![all(), place("*", "", "!kube-system")], PROD, "kube-system", false),
        (vec![all(), place("*", "", "!kube-system")], PROD, "web", true),
        (vec![all(), place("", "prod", "!kube-*")], PROD, "kube-system", false),
        (vec![all(), place("", "prod", "!kube-*")], TEST, "kube-system", true),
        (vec![all(), place("!https://prod*", "", "*")], PROD, "web", false),
        (vec![all(), place("!https://prod*", "", "*")], TEST, "web", true),
        (vec![all(), place("!https://prod*", "", "team-*")], PROD, "web", true),
        (vec![all(), place("", "!prod", "*")], PROD, "web", false),
        (vec![all(), place("", "!prod", "*")], TEST, "web", true),
        // As in Argo CD, a forbidden name forbids all of the cluster.
        (vec![all(), place("", "!prod", "team-*")], PROD, "web", false),
        (vec![all(), place("!https://prod*", "", "!kube-*")], PROD, "kube-system", false),
        (vec![all(), place("!https://prod*", "", "!kube-*")], TEST, "kube-system", false),
        (vec![all(), place("!https://prod*", "", "!kube-*")], PROD, "web", false),
        (vec![all(), place("!https://prod*", "", "!kube-*")], TEST, "web", true),
        // Documented: an entry with a veto permits nothing.
        (vec![place("*", "", "!kube-system")], PROD, "web", false),
    ];
    for (destinations, cluster, namespace, expected) in cases {
        let project = compile(ProjectRules { destinations: destinations.clone(), ..ProjectRules::default() });
        let permitted = project.permits_destination(cluster, namespace);
        assert_eq!(permitted, *expected, "{destinations:?} on {}/{namespace}", cluster.name);
    }
}

#[test]
fn clusters_registered_for_a_project() {
    let ours = TargetCluster { project: Some("team"), ..PROD };
    let theirs = TargetCluster { project: Some("other"), ..PROD };
    let project = compile(ProjectRules::default());
    assert!(project.permits_destination(&ours, "web"), "a cluster of the project needs no entry");
    assert!(!project.permits_destination(&theirs, "web"));
    let veto = ProjectRules { destinations: vec![place("*", "", "!web")], ..ProjectRules::default() };
    assert!(!compile(veto).permits_destination(&ours, "web"), "a veto holds there too");
    let only = ProjectRules {
        destinations: vec![place("*", "", "*")],
        only_scoped_clusters: true,
        ..ProjectRules::default()
    };
    let project = compile(only);
    assert!(project.permits_destination(&ours, "web"));
    assert!(!project.permits_destination(&theirs, "web"));
    assert!(!project.permits_destination(&PROD, "web"));
}

fn kind(group: &str, kind: &str, name: Option<&str>) -> KindPattern {
    KindPattern { group: group.to_owned(), kind: kind.to_owned(), name: name.map(str::to_owned) }
}

#[test]
fn cluster_scoped_kinds_are_denied_unless_listed() {
    let namespace = GroupKind::new("", "Namespace");
    let role = GroupKind::new("rbac.authorization.k8s.io", "ClusterRole");
    let none = compile(ProjectRules::default());
    assert!(!none.permits_kind(&namespace, "web", false));
    let some = compile(ProjectRules {
        cluster_kinds_allowed: vec![kind("", "Namespace", Some("team-*")), kind("*", "ClusterRole*", None)],
        cluster_kinds_denied: vec![kind("rbac.authorization.k8s.io", "ClusterRole", Some("admin"))],
        ..ProjectRules::default()
    });
    assert!(some.permits_kind(&namespace, "team-a", false));
    assert!(!some.permits_kind(&namespace, "kube-system", false));
    assert!(some.permits_kind(&role, "reader", false));
    assert!(!some.permits_kind(&role, "admin", false));
    assert!(!some.permits_kind(&GroupKind::new("apps", "Namespace"), "team-a", false), "the group counts");
}

#[test]
fn namespaced_kinds_are_allowed_unless_a_list_exists() {
    let deployment = GroupKind::new("apps", "Deployment");
    let secret = GroupKind::new("", "Secret");
    let allowed = |list: Option<Vec<KindPattern>>, denied: Vec<KindPattern>, of: &GroupKind| {
        compile(ProjectRules {
            namespaced_kinds_allowed: list,
            namespaced_kinds_denied: denied,
            ..ProjectRules::default()
        })
        .permits_kind(of, "x", true)
    };
    assert!(allowed(None, vec![], &deployment), "no list: all");
    assert!(!allowed(Some(vec![]), vec![], &deployment), "an empty list: none");
    assert!(allowed(Some(vec![kind("apps", "*", None)]), vec![], &deployment));
    assert!(!allowed(Some(vec![kind("apps", "*", None)]), vec![], &secret));
    assert!(!allowed(None, vec![kind("", "Secret", None)], &secret));
    assert!(allowed(None, vec![kind("", "Secret", None)], &deployment));
    assert!(
        !allowed(Some(vec![kind("*", "*", None)]), vec![kind("", "Secret", None)], &secret),
        "a veto wins"
    );
}

#[test]
fn an_object_is_checked_by_kind_and_by_its_own_namespace() {
    let project = compile(ProjectRules {
        destinations: vec![place("*", "", "web")],
        namespaced_kinds_denied: vec![kind("", "Secret", None)],
        ..ProjectRules::default()
    });
    let key = |group: &str, kind: &str, namespace: Option<&str>| {
        ObjectKey::new(group, kind, namespace.map(str::to_owned), "x")
    };
    let refusal = |key: ObjectKey| project.permits_object(&key, &PROD).expect_err("refused").to_string();
    assert_eq!(project.permits_object(&key("", "ConfigMap", Some("web")), &PROD), Ok(()));
    assert_eq!(refusal(key("", "Secret", Some("web"))), "resource :Secret is not permitted in project team");
    assert_eq!(
        refusal(key("", "ConfigMap", Some("kube-system"))),
        "namespace kube-system is not permitted in project 'team'"
    );
    assert_eq!(
        refusal(key("rbac.authorization.k8s.io", "ClusterRole", None)),
        "resource rbac.authorization.k8s.io:ClusterRole is not permitted in project team"
    );
}

#[test]
fn app_namespaces() {
    let project = compile(ProjectRules {
        source_namespaces: texts(&["team-*", "/^ops-[0-9]+$/"]),
        ..ProjectRules::default()
    });
    for (namespace, expected) in
        [("argocd", true), ("team-a", true), ("ops-1", true), ("ops-x", false), ("default", false)]
    {
        assert_eq!(project.permits_app_namespace(namespace, "argocd"), expected, "{namespace}");
    }
    assert!(!compile(ProjectRules::default()).permits_app_namespace("team-a", "argocd"));
}

#[test]
fn what_cannot_be_read_never_opens_a_door() {
    let (project, problems) = Project::compile(&ProjectRules {
        name: "team".to_owned(),
        source_repos: texts(&["*", "![oops"]),
        destinations: vec![place("*", "", "*"), place("*", "", "!{oops")],
        namespaced_kinds_denied: vec![kind("", "[oops", None)],
        source_namespaces: texts(&["/(/"]),
        ..ProjectRules::default()
    });
    let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(
        fields,
        ["sourceRepos[1]", "destinations[1]", "namespaceResourceBlacklist[0]", "sourceNamespaces[0]"]
    );
    assert!(!project.permits_source("https://git.example.com/a"));
    assert!(!project.permits_destination(&PROD, "web"));
    assert!(!project.permits_kind(&GroupKind::new("", "ConfigMap"), "x", true));
    assert!(!project.permits_app_namespace("team-a", "argocd"));
}

#[test]
fn global_projects_add_their_lists() {
    let own = ProjectRules { source_repos: texts(&["https://a/*"]), ..ProjectRules::default() };
    let global = ProjectRules {
        source_repos: texts(&["https://b/*"]),
        namespaced_kinds_denied: vec![kind("", "Secret", None)],
        source_namespaces: texts(&["*"]),
        only_scoped_clusters: true,
        ..ProjectRules::default()
    };
    let merged = own.clone().with_global(&global);
    assert_eq!(merged.source_repos, texts(&["https://a/*", "https://b/*"]));
    assert_eq!(merged.namespaced_kinds_denied.len(), 1);
    assert!(merged.source_namespaces.is_empty() && !merged.only_scoped_clusters, "not merged by Argo CD");
    assert_eq!(merged.namespaced_kinds_allowed, None, "still all");
    let listing = ProjectRules {
        namespaced_kinds_allowed: Some(vec![kind("apps", "*", None)]),
        ..ProjectRules::default()
    };
    assert_eq!(own.with_global(&listing).namespaced_kinds_allowed.map(|list| list.len()), Some(1));
}

#[test]
fn service_accounts_by_the_first_match() {
    let rule = |server: &str, namespace: &str, account: &str| ServiceAccountRule {
        server: server.to_owned(),
        namespace: namespace.to_owned(),
        account: account.to_owned(),
    };
    let project = compile(ProjectRules {
        service_accounts: vec![
            rule("https://prod*", "team-*", "deployer"),
            rule("https://prod*", "*", "ops:guest"),
        ],
        ..ProjectRules::default()
    });
    let account = |namespace: Option<&str>| project.service_account(PROD.server, namespace, "argocd");
    assert_eq!(account(Some("team-a")).as_deref(), Some("system:serviceaccount:team-a:deployer"));
    assert_eq!(account(Some("web")).as_deref(), Some("system:serviceaccount:ops:guest"));
    assert_eq!(project.service_account(TEST.server, Some("team-a"), "argocd"), None);
    let (_, problems) = Project::compile(&ProjectRules {
        service_accounts: vec![rule("*", "*", "*"), rule("*", "*", " "), rule("[", "*", "a")],
        ..ProjectRules::default()
    });
    assert_eq!(problems.len(), 3);
}

#[test]
fn orphans_that_are_none() {
    let project = compile(ProjectRules {
        orphaned_resources: Some(OrphanPatterns {
            warn: true,
            ignore: vec![
                OrphanPattern {
                    group: String::new(),
                    kind: "ConfigMap".to_owned(),
                    name: "cache-*".to_owned(),
                },
                OrphanPattern { group: "apps".to_owned(), ..OrphanPattern::default() },
            ],
        }),
        ..ProjectRules::default()
    });
    let rules = project.orphans().expect("looked for");
    assert!(rules.warns());
    let ignores = |group: &str, kind: &str, namespace: &str, name: &str| {
        rules.ignores(&ObjectKey::new(group, kind, Some(namespace.to_owned()), name))
    };
    assert!(ignores("", "ConfigMap", "web", "cache-1"));
    assert!(!ignores("", "ConfigMap", "web", "settings"));
    assert!(!ignores("example.com", "ConfigMap", "web", "cache-1"), "an empty group is the core group");
    assert!(ignores("apps", "Deployment", "web", "any"));
    assert!(ignores("", "ConfigMap", "web", "kube-root-ca.crt"));
    assert!(ignores("", "ServiceAccount", "web", "default"));
    assert!(ignores("", "Service", "default", "kubernetes"));
    assert!(!ignores("", "Service", "web", "kubernetes"));
    assert!(compile(ProjectRules::default()).orphans().is_none());
}

// Sync windows. `now` is Sunday, 2026-11-15 20:30 UTC.

const NOW: &str = "2026-11-15T20:30:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn window(kind: WindowKind, schedule: &str, hours: u64) -> WindowRule {
    WindowRule {
        kind,
        time: Ok(WindowTime {
            schedule: CronSchedule::parse(schedule).expect("a schedule"),
            duration: Duration::from_hours(hours),
            zone: TimeZone::UTC,
        }),
        applications: texts(&["*"]),
        namespaces: Vec::new(),
        clusters: Vec::new(),
        all_lists: false,
        manual_sync: false,
        sync_overrun: false,
        description: String::new(),
    }
}

const SUBJECT: WindowSubject<'static> =
    WindowSubject { app: "web", namespace: "prod", server: "https://prod.example.com", cluster: "prod" };

/// May an automated and a manual sync run at [`NOW`]?
fn check_windows(windows: Vec<WindowRule>, started: Option<&str>, automated: bool, manual: bool) {
    let project = compile(ProjectRules { sync_windows: windows, ..ProjectRules::default() });
    let allowed =
        |trigger| project.permits_sync(&SUBJECT, trigger, started.map(time), time(NOW)).is_allowed();
    assert_eq!((allowed(SyncTrigger::Automated), allowed(SyncTrigger::Manual)), (automated, manual));
}

const OPEN: &str = "0 20 * * *";
const CLOSED: &str = "0 10 * * *";

#[test]
fn windows_decide() {
    use WindowKind::{Allow, Deny};
    let open = |kind| window(kind, OPEN, 1);
    let closed = |kind| window(kind, CLOSED, 1);
    let manual = |rule: WindowRule| WindowRule { manual_sync: true, ..rule };
    check_windows(vec![], None, true, true);
    check_windows(vec![open(Allow)], None, true, true);
    check_windows(vec![closed(Allow)], None, false, false);
    check_windows(vec![open(Deny)], None, false, false);
    check_windows(vec![closed(Deny)], None, true, true);
    check_windows(vec![open(Allow), open(Deny)], None, false, false);
    check_windows(vec![open(Allow), closed(Allow)], None, true, true);
    check_windows(vec![closed(Allow), closed(Deny)], None, false, false);
    check_windows(vec![manual(open(Deny))], None, false, true);
    check_windows(vec![manual(open(Deny)), open(Deny)], None, false, false);
    check_windows(vec![manual(closed(Allow))], None, false, true);
    check_windows(vec![manual(closed(Allow)), closed(Allow)], None, false, false);
    // An open deny window overrides allow windows that permit manual syncs.
    check_windows(vec![manual(closed(Allow)), open(Deny)], None, false, false);
}

#[test]
fn a_sync_that_began_in_time_may_overrun() {
    use WindowKind::{Allow, Deny};
    let overrun = |rule: WindowRule| WindowRule { sync_overrun: true, ..rule };
    let before = Some("2026-11-15T19:59:00Z");
    let within = Some("2026-11-15T20:10:00Z");
    check_windows(vec![overrun(window(Deny, OPEN, 1))], before, true, true);
    check_windows(vec![overrun(window(Deny, OPEN, 1))], within, false, false);
    check_windows(vec![window(Deny, OPEN, 1)], before, false, false);
    check_windows(vec![overrun(window(Deny, OPEN, 1)), window(Deny, OPEN, 1)], before, false, false);
    let allow = || overrun(window(Allow, "0 19 * * *", 1));
    check_windows(vec![allow()], before, true, true);
    check_windows(vec![allow()], within, false, false);
    check_windows(vec![allow()], None, false, false);
    check_windows(vec![window(Allow, "0 19 * * *", 1)], before, false, false);
}

#[test]
fn the_next_time_at_which_windows_decide_otherwise() {
    use WindowKind::{Allow, Deny};
    let check = |windows: Vec<WindowRule>, expected: Option<&str>| {
        let (project, _) =
            Project::compile(&ProjectRules { sync_windows: windows, ..ProjectRules::default() });
        let found = project.next_window_change(&SUBJECT, time(NOW));
        assert_eq!(found.map(|time| time.to_string()).as_deref(), expected);
    };
    let berlin = |rule: WindowRule| {
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        WindowRule { time: rule.time.map(|time| WindowTime { zone, ..time }), ..rule }
    };
    let others = |rule: WindowRule| WindowRule { applications: texts(&["other"]), ..rule };
    check(vec![], None);
    check(vec![window(Allow, OPEN, 1)], Some("2026-11-15T21:00:00Z"));
    // It opens again before it closes, every day.
    check(vec![window(Deny, OPEN, 48)], None);
    check(vec![window(Deny, "* * * * *", 1)], None);
    check(vec![window(Allow, CLOSED, 1)], Some("2026-11-16T10:00:00Z"));
    check(vec![window(Allow, CLOSED, 1), window(Deny, OPEN, 1)], Some("2026-11-15T21:00:00Z"));
    check(vec![berlin(window(Allow, "0 22 * * *", 1))], Some("2026-11-15T21:00:00Z"));
    check(vec![others(window(Deny, OPEN, 1))], None);
    check(vec![WindowRule { time: Err("unreadable".to_owned()), ..window(Deny, OPEN, 1) }], None);
}

#[test]
fn which_apps_a_window_concerns() {
    let concerns = |rule: WindowRule| {
        let project = compile(ProjectRules { sync_windows: vec![rule], ..ProjectRules::default() });
        project.windows()[0].concerns(&SUBJECT)
    };
    let rule = |applications: &[&str], namespaces: &[&str], clusters: &[&str], all_lists| WindowRule {
        applications: texts(applications),
        namespaces: texts(namespaces),
        clusters: texts(clusters),
        all_lists,
        ..window(WindowKind::Deny, OPEN, 1)
    };
    assert!(concerns(rule(&["w*"], &[], &[], false)));
    assert!(!concerns(rule(&["x*"], &[], &[], false)));
    assert!(concerns(rule(&["x*"], &["prod"], &[], false)), "one list is enough");
    assert!(concerns(rule(&[], &[], &["prod"], false)), "by name");
    assert!(concerns(rule(&[], &[], &["https://prod*"], false)), "by address");
    assert!(!concerns(rule(&["x*"], &["prod"], &[], true)), "all lists");
    assert!(concerns(rule(&["web"], &["prod"], &[], true)), "a list that is not set does not count");
    assert!(!concerns(rule(&["web"], &["prod"], &["test"], true)));
    assert!(!concerns(rule(&[], &[], &[], false)), "no list, no app");
    assert!(!concerns(rule(&[], &[], &[], true)), "no list, no app");
}

#[test]
fn windows_follow_the_clock_of_their_zone() {
    let in_zone = |zone: TimeZone, schedule: &str| WindowRule {
        time: Ok(WindowTime {
            schedule: CronSchedule::parse(schedule).expect("a schedule"),
            duration: Duration::from_mins(45),
            zone,
        }),
        ..window(WindowKind::Allow, OPEN, 1)
    };
    let east = TimeZone::fixed(jiff::tz::offset(2));
    let west = TimeZone::fixed(jiff::tz::offset(-8));
    check_windows(vec![in_zone(east.clone(), "0 22 * * *")], None, true, true);
    check_windows(vec![in_zone(east, "0 20 * * *")], None, false, false);
    check_windows(vec![in_zone(west, "0 12 * * sun")], None, true, true);
}

#[test]
fn the_edges_of_a_window() {
    let project = compile(ProjectRules {
        sync_windows: vec![window(WindowKind::Allow, OPEN, 1)],
        ..ProjectRules::default()
    });
    let open = |at: &str| project.windows()[0].is_open(time(at)).expect("readable");
    assert!(!open("2026-11-15T19:59:59Z"));
    assert!(open("2026-11-15T20:00:00Z"));
    assert!(open("2026-11-15T20:59:59Z"));
    assert!(!open("2026-11-15T21:00:00Z"));
    let long = compile(ProjectRules {
        sync_windows: vec![window(WindowKind::Allow, "0 22 * * 5", 60)],
        ..ProjectRules::default()
    });
    assert!(long.windows()[0].is_open(time("2026-11-16T09:59:00Z")).expect("readable"), "over days");
    assert!(!long.windows()[0].is_open(time("2026-11-16T10:00:00Z")).expect("readable"));
}

#[test]
fn a_window_that_cannot_be_read_denies_those_it_concerns() {
    let unreadable = |rule: WindowRule| {
        let (project, problems) =
            Project::compile(&ProjectRules { sync_windows: vec![rule], ..ProjectRules::default() });
        assert_eq!(problems.len(), 1);
        project.permits_sync(&SUBJECT, SyncTrigger::Manual, None, time(NOW))
    };
    let broken_time =
        || WindowRule { time: Err("no schedule".to_owned()), ..window(WindowKind::Deny, OPEN, 1) };
    let denied = WindowDecision::Denied("invalid sync windows: no schedule".to_owned());
    assert_eq!(unreadable(broken_time()), denied);
    let elsewhere = WindowRule { applications: texts(&["other"]), ..broken_time() };
    assert_eq!(unreadable(elsewhere), WindowDecision::Allowed);
    let broken_list = WindowRule { applications: texts(&["["]), ..window(WindowKind::Deny, CLOSED, 1) };
    assert!(!unreadable(broken_list).is_allowed());
}

#[test]
fn a_refusal_says_which_window() {
    let freeze = WindowRule {
        description: "release freeze, ticket 7".to_owned(),
        ..window(WindowKind::Deny, OPEN, 1)
    };
    let project = compile(ProjectRules { sync_windows: vec![freeze], ..ProjectRules::default() });
    assert_eq!(
        project.permits_sync(&SUBJECT, SyncTrigger::Automated, None, time(NOW)),
        WindowDecision::Denied("a deny window is open (release freeze, ticket 7)".to_owned())
    );
}

#[test]
fn a_kind_that_is_forbidden_in_one_group_is_forbidden_in_all() {
    let kind = |group: &str, kind: &str| KindPattern {
        group: group.to_owned(),
        kind: kind.to_owned(),
        ..KindPattern::default()
    };
    let forbids = |denied: KindPattern, (group, kind): (&str, &str)| {
        let project =
            compile(ProjectRules { namespaced_kinds_denied: vec![denied], ..ProjectRules::default() });
        !project.permits_kind(&GroupKind::new(group, kind), "x", true)
    };
    assert!(forbids(kind("apps", "Deployment"), ("extensions", "Deployment")));
    assert!(forbids(kind("extensions", "Ingress"), ("networking.k8s.io", "Ingress")));
    assert!(forbids(kind("", "Event"), ("events.k8s.io", "Event")));
    assert!(!forbids(kind("apps", "Deployment"), ("example.com", "Deployment")));
    assert!(!forbids(kind("apps", "Deployment"), ("apps", "StatefulSet")));
    // A kind that is permitted in one group is not thereby permitted in another.
    let allowed = Some(vec![kind("apps", "Deployment")]);
    let project = compile(ProjectRules { namespaced_kinds_allowed: allowed, ..ProjectRules::default() });
    assert!(!project.permits_kind(&GroupKind::new("extensions", "Deployment"), "x", true));
}

#[test]
fn manifests_of_a_request_need_a_project_without_restrictions_or_its_word() {
    let head = |repository: &str, mode| SignatureRule {
        repositories: texts(&[repository]),
        mode,
        keys: texts(&["K"]),
    };
    let refuses = |source_repos: &[&str], local_manifests: bool, signatures: Vec<SignatureRule>| {
        let rules = ProjectRules {
            source_repos: texts(source_repos),
            local_manifests,
            signatures,
            ..ProjectRules::default()
        };
        compile(rules).refuses_local_manifests()
    };
    assert_eq!(refuses(&["*"], false, vec![]), None);
    assert_eq!(refuses(&["https://git.example.com/team/*", "*"], false, vec![]), None);
    let why = refuses(&["https://git.example.com/*"], false, vec![]).unwrap();
    assert!(why.contains("restricts the repositories") && why.contains(LOCAL_MANIFESTS_ANNOTATION), "{why}");
    assert_eq!(refuses(&["https://git.example.com/*"], true, vec![]), None);
    assert!(refuses(&["*", "!https://git.example.com/secret"], false, vec![]).is_some());
    assert!(refuses(&["!*"], false, vec![]).is_some());
    // Whatever repository the signatures are asked for: the manifests could be those of any.
    let signed = vec![head("https://git.example.com/signed", SignatureMode::Head)];
    assert!(refuses(&["*"], true, signed).unwrap().contains("requires signed commits"));
    assert_eq!(refuses(&["*"], false, vec![head("*", SignatureMode::None)]), None);
}
