//! Converts an `AppProject` to rules.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use plumb_core::project::{
    CronSchedule, DestinationPattern, KindPattern, LOCAL_MANIFESTS_ANNOTATION, OrphanPattern, OrphanPatterns,
    PLAIN_SECRETS_ANNOTATION, PlainSecrets, ProjectProblem, ProjectRules, ServiceAccountRule, SignatureMode,
    SignatureRule, WindowKind, WindowRule, WindowTime,
};

use super::duration::parse_go_duration;
use super::text::non_empty;
use crate::project::{AppProject, ClusterResourceRestriction, GroupKindRestriction, SyncWindow};

/// The rules of a project, and problems in them. It never fails: an invalid rule permits nothing.
pub fn to_project_rules(project: &AppProject) -> (ProjectRules, Vec<ProjectProblem>) {
    let spec = &project.spec;
    let mut problems = Vec::new();
    let windows = spec.sync_windows.iter().enumerate();
    let rules = ProjectRules {
        name: project.metadata.name.clone(),
        source_repos: spec.source_repos.clone(),
        // These come from Secrets.
        scoped_repositories: Vec::new(),
        destinations: spec
            .destinations
            .iter()
            .map(|destination| DestinationPattern {
                server: destination.server.clone(),
                name: destination.name.clone(),
                namespace: destination.namespace.clone(),
            })
            .collect(),
        only_scoped_clusters: spec.permit_only_project_scoped_clusters,
        cluster_kinds_allowed: spec.cluster_resource_whitelist.iter().map(cluster_kind).collect(),
        cluster_kinds_denied: spec.cluster_resource_blacklist.iter().map(cluster_kind).collect(),
        namespaced_kinds_allowed: spec
            .namespace_resource_whitelist
            .as_ref()
            .map(|kinds| kinds.iter().map(namespaced_kind).collect()),
        namespaced_kinds_denied: spec.namespace_resource_blacklist.iter().map(namespaced_kind).collect(),
        source_namespaces: spec.source_namespaces.clone(),
        orphaned_resources: spec.orphaned_resources.as_ref().map(|orphaned| OrphanPatterns {
            warn: orphaned.warn.unwrap_or(false),
            ignore: orphaned
                .ignore
                .iter()
                .map(|key| OrphanPattern {
                    group: key.group.clone(),
                    kind: key.kind.clone(),
                    name: key.name.clone(),
                })
                .collect(),
        }),
        sync_windows: windows.map(|(index, window)| window_rule(window, index, &mut problems)).collect(),
        service_accounts: spec
            .destination_service_accounts
            .iter()
            .map(|account| ServiceAccountRule {
                server: account.server.clone(),
                namespace: account.namespace.clone(),
                account: account.default_service_account.clone(),
            })
            .collect(),
        signatures: signatures(project, &mut problems),
        local_manifests: project
            .metadata
            .annotations
            .get(LOCAL_MANIFESTS_ANNOTATION)
            .is_some_and(|text| text == "true"),
        plain_secrets: plain_secrets(project, &mut problems),
    };
    (rules, problems)
}

/// A word that cannot be read refuses, as an unreadable rule of a project permits nothing.
fn plain_secrets(project: &AppProject, problems: &mut Vec<ProjectProblem>) -> PlainSecrets {
    let Some(text) = project.metadata.annotations.get(PLAIN_SECRETS_ANNOTATION) else {
        return PlainSecrets::default();
    };
    PlainSecrets::parse(text).unwrap_or_else(|| {
        problems.push(ProjectProblem {
            field: format!("metadata.annotations[{PLAIN_SECRETS_ANNOTATION}]"),
            reason: format!("`{text}` is none of allow, warn and refuse; refuse is used"),
        });
        PlainSecrets::Refuse
    })
}

/// `sourceIntegrity` takes precedence; the older keys are a rule for every repository.
fn signatures(project: &AppProject, problems: &mut Vec<ProjectProblem>) -> Vec<SignatureRule> {
    let spec = &project.spec;
    let Some(integrity) = &spec.source_integrity else {
        let keys: Vec<String> = spec.signature_keys.iter().map(|key| key.key_id.clone()).collect();
        let rule = SignatureRule {
            repositories: vec!["*".to_owned()],
            mode: SignatureMode::Head,
            keys: keys.clone(),
        };
        return if keys.is_empty() { Vec::new() } else { vec![rule] };
    };
    let policies = integrity.git.policies.iter().enumerate();
    policies
        .map(|(index, policy)| SignatureRule {
            repositories: policy.repos.iter().map(|repository| repository.url.clone()).collect(),
            mode: match policy.gpg.mode.as_str() {
                "none" => SignatureMode::None,
                "head" => SignatureMode::Head,
                "strict" => SignatureMode::Strict,
                other => {
                    problems.push(ProjectProblem {
                        field: format!("sourceIntegrity.git.policies[{index}].gpg.mode"),
                        reason: format!("`{other}` is none of none, head and strict; strict is used"),
                    });
                    SignatureMode::Strict
                }
            },
            keys: policy.gpg.keys.clone(),
        })
        .collect()
}

fn cluster_kind(restriction: &ClusterResourceRestriction) -> KindPattern {
    KindPattern {
        group: restriction.group.clone(),
        kind: restriction.kind.clone(),
        name: non_empty(&restriction.name),
    }
}

fn namespaced_kind(restriction: &GroupKindRestriction) -> KindPattern {
    KindPattern { group: restriction.group.clone(), kind: restriction.kind.clone(), name: None }
}

fn window_rule(window: &SyncWindow, index: usize, problems: &mut Vec<ProjectProblem>) -> WindowRule {
    let zone = time_zone(&window.time_zone).unwrap_or_else(|| {
        problems.push(ProjectProblem {
            field: format!("syncWindows[{index}].timeZone"),
            reason: format!("unknown time zone {}; UTC is used", window.time_zone),
        });
        TimeZone::UTC
    });
    let (kind, time) = match window.kind.as_str() {
        "allow" => (WindowKind::Allow, window_time(window, zone)),
        "deny" => (WindowKind::Deny, window_time(window, zone)),
        other => (WindowKind::Deny, Err(format!("kind '{other}' mismatch: can only be allow or deny"))),
    };
    WindowRule {
        kind,
        time,
        applications: window.applications.clone(),
        namespaces: window.namespaces.clone(),
        clusters: window.clusters.clone(),
        all_lists: window.and_operator,
        manual_sync: window.manual_sync,
        sync_overrun: window.sync_overrun,
        description: window.description.clone(),
    }
}

fn window_time(window: &SyncWindow, zone: TimeZone) -> Result<WindowTime, String> {
    let schedule = CronSchedule::parse(&window.schedule).map_err(|error| error.to_string())?;
    let duration = parse_go_duration(&window.duration)
        .map_err(|error| format!("cannot parse duration '{}': {error}", window.duration))?;
    Ok(WindowTime { schedule, duration, zone })
}

/// From the bundled database, not from the machine.
fn time_zone(name: &str) -> Option<TimeZone> {
    if name.is_empty() { Some(TimeZone::UTC) } else { TimeZoneDatabase::bundled().get(name).ok() }
}

#[cfg(test)]
mod tests {
    use plumb_core::project::{Project, SyncTrigger, TargetCluster, WindowSubject};
    use serde_json::{Value, json};

    use super::*;

    fn project(spec: &Value) -> (ProjectRules, Vec<ProjectProblem>) {
        let object = json!({"metadata": {"name": "team", "namespace": "argocd"}, "spec": spec});
        to_project_rules(&AppProject::from_json(&object).expect("readable"))
    }

    #[test]
    fn policies_about_signatures_are_read_as_in_argo_cd() {
        let (rules, problems) = project(&json!({
            "signatureKeys": [{"keyID": "OLD"}],
            "sourceIntegrity": {"git": {"policies": [
                {"repos": [{"url": "https://github.com/my-group/*"}, {"url": "!https://github.com/my-group/ignored.git"}],
                 "gpg": {"mode": "strict", "keys": ["D56C4FCA57A46444"]}},
                {"repos": [{"url": "https://github.com/open/*"}], "gpg": {"mode": "none", "keys": []}},
                {"repos": [{"url": "https://github.com/odd/*"}], "gpg": {"mode": "Head", "keys": ["K"]}},
            ]}},
        }));
        let (project, _) = Project::compile(&rules);
        let rule = |url: &str| project.signatures(url).map(|rule| (rule.mode, rule.keys.clone()));
        let strict = |key: &str| Some((SignatureMode::Strict, vec![key.to_owned()]));
        for (url, expected) in [
            ("https://github.com/my-group/app.git", strict("D56C4FCA57A46444")),
            ("https://github.com/my-group/nested/app", strict("D56C4FCA57A46444")),
            ("https://github.com/my-group/ignored", None),
            ("https://github.com/open/app", None),
            ("https://github.com/elsewhere/app", None),
            // A mode that is not known is the strictest.
            ("https://github.com/odd/app", strict("K")),
        ] {
            assert_eq!(rule(url), expected, "{url}");
        }
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["sourceIntegrity.git.policies[2].gpg.mode"]);
        assert!(project.refuses_local_manifests().is_some());

        let (rules, _) = self::project(&json!({"signatureKeys": [{"keyID": "OLD"}]}));
        let (project, _) = Project::compile(&rules);
        let rule =
            project.signatures("https://any.example.com/app").map(|rule| (rule.mode, rule.keys.clone()));
        assert_eq!(rule, Some((SignatureMode::Head, vec!["OLD".to_owned()])));
    }

    #[test]
    fn a_word_about_plain_secrets_that_cannot_be_read_refuses_them() {
        let read = |text: &str| {
            let project = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
                "metadata": {"name": "team", "annotations": {PLAIN_SECRETS_ANNOTATION: text}}, "spec": {}});
            let (rules, problems) = to_project_rules(&AppProject::from_json(&project).unwrap());
            (rules.plain_secrets, problems.len())
        };
        assert_eq!(project(&json!({})).0.plain_secrets, PlainSecrets::Warn);
        for (text, policy, n_problems) in [
            ("allow", PlainSecrets::Allow, 0),
            ("warn", PlainSecrets::Warn, 0),
            ("refuse", PlainSecrets::Refuse, 0),
            ("Refuse", PlainSecrets::Refuse, 1),
            ("no", PlainSecrets::Refuse, 1),
        ] {
            assert_eq!(read(text), (policy, n_problems), "{text}");
        }
    }

    #[test]
    fn the_default_project_permits_everything() {
        let (rules, problems) = project(&json!({
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        }));
        assert_eq!(problems, []);
        let (project, problems) = Project::compile(&rules);
        assert_eq!(problems, []);
        let cluster = TargetCluster { server: "https://a", name: "a", project: None };
        assert!(project.permits_source("https://git.example.com/a.git"));
        assert!(project.permits_destination(&cluster, "web"));
        assert!(project.permits_kind(&plumb_core::object::GroupKind::new("", "Namespace"), "x", false));
    }

    #[test]
    fn an_absent_list_of_kinds_is_not_an_empty_one() {
        assert_eq!(project(&json!({})).0.namespaced_kinds_allowed, None);
        assert_eq!(project(&json!({"namespaceResourceWhitelist": null})).0.namespaced_kinds_allowed, None);
        let (rules, _) = project(&json!({"namespaceResourceWhitelist": []}));
        assert_eq!(rules.namespaced_kinds_allowed, Some(Vec::new()));
    }

    #[test]
    fn windows_with_time_zones() {
        let (rules, problems) = project(&json!({"syncWindows": [
            {"kind": "allow", "schedule": "0 22 * * *", "duration": "1h", "applications": ["*"],
             "timeZone": "Europe/Berlin"},
        ]}));
        assert_eq!(problems, []);
        let (project, _) = Project::compile(&rules);
        let subject = WindowSubject { app: "web", namespace: "prod", server: "https://a", cluster: "a" };
        let allowed = |now: &str| {
            let now = now.parse().expect("a time");
            project.permits_sync(&subject, SyncTrigger::Automated, None, now).is_allowed()
        };
        assert!(allowed("2026-11-15T21:30:00Z"), "winter: one hour ahead");
        assert!(!allowed("2026-11-15T20:30:00Z"));
        assert!(allowed("2026-07-15T20:30:00Z"), "summer: two hours ahead");
        assert!(!allowed("2026-07-15T21:30:00Z"));
    }

    #[test]
    fn windows_that_cannot_be_read() {
        let (rules, problems) = project(&json!({"syncWindows": [
            {"kind": "Deny", "schedule": "0 22 * * *", "duration": "1h"},
            {"kind": "deny", "schedule": "0 25 * * *", "duration": "1h"},
            {"kind": "deny", "schedule": "0 22 * * *", "duration": "1 hour"},
            {"kind": "deny", "schedule": "0 22 * * *", "duration": "1h", "timeZone": "Mars/Olympus"},
        ]}));
        let reasons: Vec<_> = rules.sync_windows.iter().map(|window| window.time.as_ref().err()).collect();
        assert_eq!(
            reasons,
            [
                Some(&"kind 'Deny' mismatch: can only be allow or deny".to_owned()),
                Some(
                    &"cannot parse schedule '0 25 * * *': the hour field takes 0 to 23, found 25".to_owned()
                ),
                Some(
                    &"cannot parse duration '1 hour': `1 hour` is not a duration such as 30s, 5m or 1h30m"
                        .to_owned()
                ),
                None,
            ]
        );
        assert_eq!(problems[0].reason, "unknown time zone Mars/Olympus; UTC is used");
    }
}
