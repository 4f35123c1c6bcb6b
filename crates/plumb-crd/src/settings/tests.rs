use std::collections::BTreeMap;
use std::time::Duration;

use expect_test::expect;
use plumb_core::object::GroupKind;
use plumb_core::tracking::{TrackingMethod, TrackingSettings};
use serde_json::{Value, json};

use super::*;

fn data(entries: &[(&str, &str)]) -> ConfigData {
    entries.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Settings of an `argocd-cm` without problems.
fn config(entries: &[(&str, &str)]) -> Settings {
    let (settings, problems) = Settings::read(&data(entries), &ConfigData::new());
    assert_eq!(problems, []);
    settings
}

#[test]
fn sensitive_fields_are_json_pointers_by_kind() {
    let value = "example.com/Database: [/spec/password, /spec/users/*/token]\nWidget: [spec.password]";
    let data = ConfigData::from([("resource.sensitive.mask.fields".to_owned(), value.to_owned())]);
    let (settings, problems) = Settings::read(&data, &ConfigData::new());
    let own = settings.sensitive_fields.iter().filter(|field| field.kind.kind == "Database");
    assert_eq!(own.count(), 2);
    assert_eq!(problems.len(), 1, "a path that is not a pointer is reported: {problems:?}");
}

#[test]
fn defaults() {
    let settings = Settings::default();
    assert_eq!(settings.tracking, TrackingSettings::default());
    assert_eq!(settings.reconciliation.interval, Some(Duration::from_mins(2)));
    assert_eq!(settings.reconciliation.jitter, Duration::from_mins(1));
    assert_eq!(settings.reconciliation.hard_interval, None);
    assert_eq!(settings.compare.ignore_status, StatusScope::None);
    assert!(settings.compare.ignore_differences_on_updates && !settings.compare.ignore_aggregated_roles);
    assert!(settings.tools.helm && settings.tools.kustomize && settings.tools.jsonnet);
    assert_eq!(settings.impersonation, Impersonation::Off);
    assert!(settings.in_cluster_enabled && settings.ignore_resource_updates);
    assert_eq!(settings.webhook.max_bytes, 1 << 20);
    let controller = &settings.controller;
    assert_eq!(controller.status_processors, None);
    assert_eq!(controller.self_heal, SelfHealSettings::default());
    assert_eq!(controller.sync_timeout, None);
    assert_eq!((controller.max_directory_bytes, controller.git_timeout), (None, None));
    assert!(controller.git_submodules && controller.persist_resource_health);
    assert!(controller.watches_namespace("argocd", "argocd"));
    assert!(!controller.watches_namespace("team-a", "argocd"));
}

#[test]
fn values_of_argocd_cm() {
    let settings = config(&[
        ("application.resourceTrackingMethod", "annotation+label"),
        ("application.instanceLabelKey", "example.com/app"),
        ("installationID", "blue"),
        ("timeout.reconciliation", "0"),
        ("timeout.hard.reconciliation", "1h"),
        ("resource.compareoptions", "ignoreAggregatedRoles: true\nignoreResourceStatusField: crd\n"),
        ("resource.respectRBAC", "strict"),
        ("resource.sensitive.mask.annotations", "a.example.com/x, b.example.com/y,"),
        ("kustomize.buildOptions", "--enable-helm"),
        ("kustomize.path.v5.0.0", "/tools/kustomize5"),
        ("kustomize.buildOptions.v5.0.0", "--load-restrictor none"),
        ("helm.enable", "false"),
        ("application.sync.impersonation.enabled", "true"),
        ("url", "https://argocd.example.com"),
    ]);
    assert_eq!(settings.tracking.method, TrackingMethod::AnnotationAndLabel);
    assert_eq!(settings.tracking.label_key, "example.com/app");
    assert_eq!(settings.tracking.installation_id.as_deref(), Some("blue"));
    assert_eq!(settings.reconciliation.interval, None, "zero switches it off");
    assert_eq!(settings.reconciliation.hard_interval, Some(Duration::from_hours(1)));
    assert_eq!(settings.compare.ignore_status, StatusScope::Crds);
    assert_eq!(settings.respect_rbac, RespectRbac::Strict);
    assert_eq!(settings.mask_annotations, ["a.example.com/x", "b.example.com/y"]);
    let version = &settings.tools.kustomize_versions["v5.0.0"];
    assert_eq!(version.path, "/tools/kustomize5");
    assert_eq!(version.build_options.as_deref(), Some("--load-restrictor none"));
    assert!(!settings.tools.helm);
    assert_eq!(settings.impersonation, Impersonation::Enforced);
}

#[test]
fn how_long_is_normal() {
    let settings = config(&[
        ("plumb.health.stuckAfter", "5m"),
        ("plumb.health.stuckAfter.apps_StatefulSet", "1h"),
        ("plumb.health.stuckAfter.Pod", "30s"),
    ]);
    let by_kind = &settings.stuck_after.by_kind;
    assert_eq!(settings.stuck_after.default, Duration::from_mins(5));
    assert_eq!(by_kind.get(&GroupKind::new("apps", "StatefulSet")), Some(&Duration::from_hours(1)));
    assert_eq!(by_kind.get(&GroupKind::new("", "Pod")), Some(&Duration::from_secs(30)));
    assert_eq!(Settings::default().stuck_after.default, Duration::from_mins(15));
}

#[test]
fn a_bare_off_in_yaml_still_means_none() {
    for text in ["off", "none", "false", "\"off\""] {
        let settings = config(&[("resource.compareoptions", &format!("ignoreResourceStatusField: {text}"))]);
        assert_eq!(settings.compare.ignore_status, StatusScope::None, "{text}");
    }
}

#[test]
fn the_health_of_objects_is_stored_unless_that_is_switched_off() {
    for (value, is_stored, n_problems) in [("true", true, 0), ("false", false, 0), ("maybe", true, 1)] {
        let parameters = data(&[("controller.resource.health.persist", value)]);
        let (settings, problems) = Settings::read(&ConfigData::new(), &parameters);
        assert_eq!(
            (settings.controller.persist_resource_health, problems.len()),
            (is_stored, n_problems),
            "{value}"
        );
    }
}

#[test]
fn one_broken_value_costs_only_itself() {
    let (settings, problems) = Settings::read(
        &data(&[
            ("application.resourceTrackingMethod", "magic"),
            ("timeout.reconciliation", "2 minutes"),
            ("resource.exclusions", "- apiGroups: {}\n"),
            ("resource.inclusions", "- apiGroups: [\n"),
            ("resource.compareoptions", "ignoreResourceStatusField: sometimes"),
            (
                "resource.customizations",
                "apps/Deployment:\n  health.lua: 1\nv/Ok:\n  health.lua: return {}\n",
            ),
            ("resource.customizations.health.apps_v1_Deployment", "return {}"),
            ("resource.customizations.magic.apps_Deployment", "x"),
            ("resource.customizations.ignoreDifferences.apps_Deployment", "jsonPointers: /spec"),
            ("globalProjects", "no list"),
            ("helm.enable", "maybe"),
            ("webhook.maxPayloadSizeMB", "-1"),
            ("installationID", "blue"),
        ]),
        &data(&[
            ("controller.status.processors", "many"),
            ("application.namespaces", "team-*,/(/,ops"),
            ("reposerver.max.combined.directory.manifests.size", "10 MB"),
        ]),
    );
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    expect![[r"
        argocd-cm application.resourceTrackingMethod: `magic` is not a tracking method: use `annotation`, `label` or `annotation+label`
        argocd-cm resource.exclusions: [0].apiGroups: expected a list, found a map"]]
    .assert_eq(&problems[..2].join("\n"));
    assert!(problems[2].starts_with("argocd-cm resource.inclusions: "), "{}", problems[2]);
    expect![[r"
        argocd-cm resource.customizations: apps/Deployment: health.lua: expected a string, found the number 1
        argocd-cm resource.customizations.health.apps_v1_Deployment: expected group_Kind or Kind, found 'apps_v1_Deployment'
        argocd-cm resource.customizations.ignoreDifferences.apps_Deployment: jsonPointers: expected a list, found a string
        argocd-cm resource.customizations.magic.apps_Deployment: resource customization type magic not supported
        argocd-cm resource.compareoptions: ignoreResourceStatusField must be all, crd or none; all is used
        argocd-cm helm.enable: expected true or false; true is used
        argocd-cm globalProjects: expected a list, found a string
        argocd-cm timeout.reconciliation: `2 minutes` is not a duration such as 30s, 5m or 1h30m
        argocd-cm webhook.maxPayloadSizeMB: expected a whole number; 1 is used
        argocd-cmd-params-cm controller.status.processors: expected a whole number; it is not used
        argocd-cmd-params-cm application.namespaces: `/(/` is not a pattern: it is malformed or too large
        argocd-cmd-params-cm reposerver.max.combined.directory.manifests.size: expected a size such as 10M or 64Mi; it is not used"]]
    .assert_eq(&problems[3..].join("\n"));
    assert_eq!(settings.tracking.installation_id.as_deref(), Some("blue"));
    assert!(settings.customizations.health_script(&GroupKind::new("v", "Ok")).is_some());
    assert!(settings.controller.watches_namespace("ops", "argocd"));
    assert!(settings.controller.watches_namespace("team-a", "argocd"));
}

#[test]
fn an_unknown_policy_of_sets_counts_as_create_only() {
    let read = |policy: &str| {
        let parameters = data(&[("applicationsetcontroller.policy", policy)]);
        let (settings, problems) = Settings::read(&ConfigData::new(), &parameters);
        let app_sets = settings.controller.app_sets;
        (app_sets.policy, app_sets.policy_override, problems.len())
    };
    assert_eq!(read(""), (String::new(), true, 0));
    assert_eq!(read("create-update"), ("create-update".to_owned(), false, 0));
    assert_eq!(read("create_only"), ("create-only".to_owned(), false, 1));
}

#[test]
fn exclusions() {
    let settings = config(&[(
        "resource.exclusions",
        "- apiGroups: ['cilium.io', '']\n  kinds: [CiliumIdentity, Endpoints]\n  clusters: ['*']\n",
    )]);
    assert_eq!(settings.exclusions[0].api_groups, ["cilium.io", ""]);
    assert_eq!(settings.exclusions[0].kinds, ["CiliumIdentity", "Endpoints"]);
}

#[test]
fn customizations_of_both_forms() {
    let settings = config(&[
        (
            "resource.customizations",
            "argoproj.io/Application:\n  health.lua: |\n    return {status = 'Healthy'}\n  health.lua.useOpenLibs: true\n\
             apps/Deployment:\n  ignoreDifferences: |\n    jsonPointers: [/spec/replicas]\n",
        ),
        ("resource.customizations.health.cert-manager.io_Certificate", "return {}"),
        ("resource.customizations.health.*.aws.crossplane.io_*", "return {}"),
        ("resource.customizations.useOpenLibs.cert-manager.io_Certificate", "true"),
        (
            "resource.customizations.ignoreDifferences.all",
            "managedFieldsManagers: [kube-controller-manager]\n",
        ),
        ("resource.customizations.ignoreDifferences.Service", "jqPathExpressions: ['.spec.ports[]']\n"),
        ("resource.customizations.ignoreResourceUpdates.apps_ReplicaSet", "jsonPointers: [/status]\n"),
        (
            "resource.customizations.knownTypeFields.example.com_Tenant",
            "- field: spec.resources\n  type: core/v1/ResourceRequirements\n",
        ),
    ]);
    let customizations = &settings.customizations;
    let script = |group: &str, kind: &str| customizations.health_script(&GroupKind::new(group, kind));
    assert!(script("argoproj.io", "Application").is_some_and(|entry| entry.use_open_libs));
    assert!(script("cert-manager.io", "Certificate").is_some_and(|entry| entry.use_open_libs));
    assert!(script("rds.aws.crossplane.io", "Instance").is_some_and(|entry| !entry.use_open_libs), "glob");
    assert!(script("apps", "Deployment").is_none());

    let rules: Vec<String> = customizations
        .ignore_rules(StatusScope::All)
        .iter()
        .map(|rule| {
            let what = [&rule.json_pointers, &rule.jq_path_expressions, &rule.managed_fields_managers];
            format!("{}/{} {}", rule.group, rule.kind, what.map(|list| list.join(",")).join("|"))
        })
        .collect();
    assert_eq!(
        rules,
        [
            "/Service |.spec.ports[]|",
            "*/* ||kube-controller-manager",
            "apps/Deployment /spec/replicas||",
            "*/* /status||",
        ]
    );
    assert_eq!(customizations.update_rules().len(), 1);
    let known = customizations.iter().find(|(key, _)| key.kind == "Tenant").expect("read");
    assert_eq!(known.1.known_type_fields[0].type_name, "core/v1/ResourceRequirements");
}

#[test]
fn global_projects_by_label() {
    let settings = config(&[(
        "globalProjects",
        "- labelSelector:\n    matchLabels: {team: a}\n    matchExpressions:\n    - {key: env, operator: In, values: [prod, test]}\n\
         \x20 projectName: base\n",
    )]);
    let global = &settings.global_projects[0];
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()
    };
    assert!(global.concerns("x", &labels(&[("team", "a"), ("env", "prod")])));
    assert!(!global.concerns("x", &labels(&[("team", "a")])));
    assert!(!global.concerns("x", &labels(&[("team", "b"), ("env", "prod")])));
    assert!(!global.concerns("base", &labels(&[("team", "a"), ("env", "prod")])), "not for itself");
}

fn secret(values: &[(&str, &str)]) -> SecretData {
    let values = values.iter().map(|&(key, value)| (key.to_owned(), SecretText::new(value))).collect();
    SecretData::new(crate::Metadata::default(), values)
}

#[test]
fn secrets_are_decoded_and_never_shown() {
    let (data, unreadable) = SecretData::read(&json!({
        "metadata": {"name": "repo", "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "data": {"password": "aHVudGVyMg==", "binary": "/w==", "broken": "***", "number": 7},
    }))
    .expect("readable");
    assert_eq!(data.secret_type(), Some("repository"));
    assert_eq!(data.get("password").map(SecretText::expose), Some("hunter2"));
    let mut unreadable = unreadable;
    unreadable.sort();
    assert_eq!(unreadable, ["binary", "broken", "number"]);
    assert!(!format!("{data:?}").contains("hunter2"));
    assert!(SecretData::read(&json!("soup")).is_err());
}

#[test]
fn repositories() {
    let repository = Repository::read(&secret(&[
        ("url", "https://git.example.com/org/repo.git\n"),
        ("username", "bot"),
        ("password", "hunter2"),
        ("insecure", "true"),
        ("proxy", "http://user:hunter2@proxy"),
        ("githubAppID", "7"),
        ("githubAppPrivateKey", "hunter2"),
        ("project", "team"),
    ]))
    .expect("readable");
    assert_eq!(repository.url, "https://git.example.com/org/repo.git");
    assert_eq!(repository.kind, RepositoryKind::Git);
    assert!(repository.insecure && !repository.credentials.is_empty());
    assert_eq!(repository.credentials.github_app.as_ref().map(|app| app.id), Some(7));
    assert!(!format!("{repository:?}").contains("hunter2"));
    let kind = |values: &[(&str, &str)]| Repository::read(&secret(values)).map(|repository| repository.kind);
    assert_eq!(kind(&[("url", "oci://registry.example.com/org")]), Ok(RepositoryKind::Oci));
    let helm = kind(&[("url", "registry.example.com/org"), ("type", "helm"), ("enableOCI", "true")]);
    assert_eq!(helm, Ok(RepositoryKind::Helm { oci: true }));
    assert_eq!(kind(&[]), Err("url: missing".to_owned()));
    assert_eq!(
        kind(&[("url", "u"), ("insecure", "hunter2")]),
        Err("insecure: expected true or false".to_owned())
    );
    assert_eq!(kind(&[("url", "u"), ("depth", "hunter2")]), Err("depth: expected a whole number".to_owned()));
    assert_eq!(kind(&[("url", "u"), ("type", "svn")]), Err("type: expected git, helm or oci".to_owned()));
}

#[test]
fn which_credentials_are_used() {
    let read = |values: &[(&str, &str)]| Repository::read(&secret(values)).expect("readable");
    let repositories = Repositories {
        repositories: vec![
            read(&[("url", "https://git.example.com/org/a"), ("username", "shared")]),
            read(&[("url", "https://git.example.com/org/a.git"), ("username", "team"), ("project", "team")]),
            read(&[("url", "https://git.example.com/org/b"), ("insecure", "true")]),
            read(&[("url", "https://git.example.com/org/c"), ("username", "other"), ("project", "other")]),
        ],
        templates: vec![
            read(&[("url", "https://git.example.com"), ("username", "host")]),
            read(&[("url", "https://git.example.com/org"), ("username", "org")]),
            read(&[("url", "git@github.com:org"), ("sshPrivateKey", "k"), ("username", "git")]),
        ],
    };
    let user = |url: &str, project: &str| {
        repositories.find(url, project).and_then(|repository| repository.credentials.username)
    };
    let user = |url: &str, project: &str| user(url, project).unwrap_or_default();
    assert_eq!(user("https://git.example.com/org/A.git", "team"), "team", "the project's own first");
    assert_eq!(user("https://git.example.com/org/a", "default"), "shared");
    assert_eq!(user("https://git.example.com/org/b", "default"), "org", "from the template");
    assert!(
        repositories.find("https://git.example.com/org/b", "default").is_some_and(|found| found.insecure)
    );
    assert_eq!(user("https://git.example.com/org/c", "default"), "org", "another project's is not used");
    assert_eq!(user("https://git.example.com/else/x", "default"), "host");
    assert_eq!(user("ssh://git@github.com/org/x.git", "default"), "git");
    for url in [
        "https://git.example.com/org/.\t./else",
        "https://git.example.com/else/%2e%2e/org/a",
        "https://git.example.com?x/org/a",
        "https://git.example.com\\@evil.example.com/org/a",
    ] {
        assert_eq!(user(url, "default"), "", "{url}: clients read it in two ways");
    }
    assert_eq!(repositories.urls("team").count(), 6, "without those of other projects");
    assert_eq!(user("https://git.example.com.evil.com/org/x", "default"), "", "credentials stay at home");
    assert_eq!(user("https://git.example.com:8443/org/x", "default"), "", "another port is another host");
    assert_eq!(user("http://git.example.com/org/x", "default"), "", "not in the clear");
    assert_eq!(repositories.find("https://elsewhere/x", "default"), None);
}

#[test]
fn only_the_operator_declares_an_address() {
    let read = |values: &[(&str, &str)]| Repository::read(&secret(values)).expect("readable");
    let repositories = Repositories {
        repositories: vec![
            read(&[("url", "http://localhost:3000/x"), ("project", "team")]),
            read(&[("url", "http://localhost:4000/x"), ("project", "team"), (DECLARES_ADDRESS, "false")]),
        ],
        templates: Vec::new(),
    };
    assert_eq!(repositories.urls("team").collect::<Vec<_>>(), ["http://localhost:3000/x"]);
    assert!(repositories.find("http://localhost:4000/x", "team").is_some(), "it is registered all the same");
}

#[test]
fn stored_credentials_do_not_go_the_way_that_a_caller_names() {
    let read = |values: &[(&str, &str)]| Repository::read(&secret(values)).expect("readable");
    let evil = [("proxy", "http://evil"), ("noProxy", "x"), ("insecure", "true")];
    let evil: Vec<_> = evil.into_iter().chain([("insecureIgnoreHostKey", "true")]).collect();
    let evil: Vec<_> = evil.into_iter().chain([("insecureOCIForceHttp", "true")]).collect();
    let asked = |url: &'static str, project: &'static str| {
        let own = [("url", url), ("project", project)];
        read(&own.into_iter().filter(|(_, value)| !value.is_empty()).chain(evil.clone()).collect::<Vec<_>>())
    };
    let (shared, below) = ("https://git.example.com/platform/prod", "https://git.example.com/team/x");
    let repositories = Repositories {
        repositories: vec![
            read(&[("url", shared), ("password", "p"), ("proxy", "http://operator")]),
            asked(below, "team"),
        ],
        templates: vec![read(&[("url", "https://git.example.com/team"), ("password", "t")])],
    };
    let is_led = |found: &Repository| {
        let proxy = found.proxy.as_ref().map(SecretText::expose);
        proxy == Some("http://evil")
            || found.no_proxy.is_some()
            || found.insecure
            || found.insecure_ignore_host_key
            || found.insecure_oci_force_http
    };
    let password = |found: &Repository| {
        found.credentials.password.as_ref().map(|password| password.expose().to_owned()).unwrap_or_default()
    };
    for project in ["team", ""] {
        let found = repositories.complete(asked(shared, project));
        assert_eq!(password(&found), "p", "{project}");
        assert!(!is_led(&found), "{project}: credentials of a repository that others registered");
        assert_eq!(found.proxy.as_ref().map(SecretText::expose), Some("http://operator"));
    }
    let found = repositories.complete(asked(below, "team"));
    assert_eq!(password(&found), "t");
    assert!(!is_led(&found), "credentials of a template");
    let found = repositories.find(below, "team").expect("registered");
    assert_eq!(password(&found), "t");
    assert!(!is_led(&found), "registered for the project without credentials");

    // An operator's repository for all projects has a proxy of its own, as in Argo CD.
    assert!(is_led(&repositories.complete(asked(below, ""))));
    // A caller's own credentials go where the caller says.
    let mut own = asked(shared, "team");
    own.credentials.username = Some("me".to_owned());
    assert_eq!(repositories.complete(own.clone()), own);
}

#[test]
fn clusters() {
    let config = json!({
        "bearerToken": "hunter2",
        "tlsClientConfig": {"insecure": false, "caData": "Q0E=", "keyData": "hunter2", "serverName": "prod"},
        "execProviderConfig": {"command": "aws", "args": ["eks"], "env": {"A": "1"}},
        "proxyUrl": "http://user:hunter2@proxy",
    });
    let cluster = ClusterSecret::read(&secret(&[
        ("server", "https://prod.example.com/"),
        ("config", &config.to_string()),
        ("namespaces", "a, b,,"),
        ("clusterResources", "true"),
    ]))
    .expect("readable");
    assert_eq!(cluster.server, "https://prod.example.com");
    assert_eq!(cluster.name, "https://prod.example.com", "the address where there is no name");
    assert_eq!(cluster.namespaces, ["a", "b"]);
    assert!(cluster.cluster_resources);
    assert_eq!(cluster.auth.bearer_token.as_ref().map(SecretText::expose), Some("hunter2"));
    assert_eq!(cluster.auth.exec.as_ref().map(|exec| exec.command.as_str()), Some("aws"));
    assert_eq!(cluster.tls.server_name.as_deref(), Some("prod"));
    assert!(!format!("{cluster:?}").contains("hunter2"));
}

#[test]
fn a_broken_cluster_says_where_and_not_what() {
    let error = |config: &str| {
        ClusterSecret::read(&secret(&[("server", "https://a"), ("config", config)])).expect_err("refused")
    };
    assert_eq!(error("{\"bearerToken\": hunter2}"), "config: not JSON at line 1 column 17");
    assert_eq!(error("[]"), "config: expected a map, found a list");
    assert_eq!(
        error("{\"tlsClientConfig\": {\"insecure\": \"hunter2\"}}"),
        "config: tlsClientConfig.insecure: expected true or false, found a string"
    );
    assert_eq!(ClusterSecret::read(&secret(&[])), Err("server: missing".to_owned()));
}

#[test]
fn any_text_in_any_key_is_survived() {
    let soup = [
        "",
        "\u{0}",
        "{",
        "[[[",
        "- - -",
        "&a [*a]",
        "a: &x [*x]",
        "!!binary x",
        "1e999",
        "'",
        "---\n---\n",
        "{a: 1, a: 2}",
    ];
    let keys = [
        "application.resourceTrackingMethod",
        "timeout.reconciliation",
        "resource.exclusions",
        "resource.customizations",
        "resource.customizations.",
        "resource.customizations.health",
        "resource.customizations.health.",
        "resource.customizations.health._",
        "resource.customizations.ignoreDifferences.apps_Deployment",
        "resource.customizations.knownTypeFields.apps_Deployment",
        "resource.compareoptions",
        "globalProjects",
        "kustomize.path.",
        "helm.valuesFileSchemes",
        "application.namespaces",
        "controller.self.heal.backoff.factor",
        "reposerver.max.combined.directory.manifests.size",
        "reposerver.allowed.addresses",
        "reposerver.denied.addresses",
    ];
    for text in soup {
        let everything = data(&keys.map(|key| (key, text)));
        Settings::read(&everything, &everything);
        for key in ["url", "config", "server", "githubAppID", "insecure", "type"] {
            let broken = secret(&[("url", "u"), ("server", "s"), (key, text)]);
            let _ = (Repository::read(&broken), ClusterSecret::read(&broken));
        }
    }
    assert!(SecretData::read(&Value::Null).is_err());
}

#[test]
fn the_body_of_a_webhook_is_bounded() {
    let limit = |text: &str| {
        let (settings, problems) =
            Settings::read(&data(&[("webhook.maxPayloadSizeMB", text)]), &ConfigData::new());
        (settings.webhook.max_bytes >> 20, problems.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!((limit("0"), limit("7")), ((0, vec![]), (7, vec![])));
    let problem = "argocd-cm webhook.maxPayloadSizeMB: larger than 10; 10 is used";
    assert_eq!(limit("50"), (10, vec![problem.to_owned()]));
}

#[test]
fn names_of_secrets_are_those_of_argo_cd() {
    // The published test vectors of FNV-1a.
    assert_eq!(name_hash(&[""]), 0x811c_9dc5);
    assert_eq!(name_hash(&["a"]), 0xe40c_292c);
    assert_eq!(name_hash(&["foo", "bar"]), 0xbf9c_f968);
}
