use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use plumb_core::app::CompareOptions;
use plumb_core::automation::HealLimits;
use plumb_core::drift::HealLimit;
use plumb_core::object::ObjectKey;
use plumb_core::plan::{PruneBudget, TombstoneLimits};
use plumb_core::source::AddressPolicy;
use plumb_crd::settings::{ConfigData, SecretData, SecretText, SettingsProblem};
use plumb_git::Secret;

use super::limits::{
    BUDGET, BUDGET_COUNT, BUDGET_PERCENT, PROTECTED, QUOTE_LOGS, TOMBSTONE_APP_COUNT, TOMBSTONE_APP_MIB,
    TOMBSTONE_DAYS, TOMBSTONE_TOTAL_MIB, TUG_MINUTES, TUG_ROUNDS,
};
use super::rendering::UNCONFINED_PLUGINS;
use super::*;

fn read(pairs: &[(&str, &str)]) -> (Settings, Vec<SettingsProblem>) {
    let data: ConfigData = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let config_maps = BTreeMap::from([("argocd-cm".to_owned(), data)]);
    Settings::read(&SettingsSource { config_maps, ..SettingsSource::default() }, 1)
}

#[test]
fn the_prune_budget_is_a_setting_and_a_typo_keeps_the_default() {
    let budget = |pairs: &[(&str, &str)]| read(pairs).0.prune_budget;
    assert_eq!(budget(&[]), PruneBudget::default());
    assert_eq!(budget(&[(BUDGET, "off")]), PruneBudget::Off);
    let own = PruneBudget::Limited { share_percent: 10, count: 2 };
    assert_eq!(budget(&[(BUDGET_PERCENT, "10%"), (BUDGET_COUNT, "2")]), own);
    let (settings, problems) = read(&[(BUDGET, "of"), (BUDGET_PERCENT, "150"), (BUDGET_COUNT, "-1")]);
    assert_eq!(settings.prune_budget, PruneBudget::default());
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn without_settings_deleted_objects_are_kept_for_a_month() {
    let month = Duration::from_hours(30 * 24);
    assert_eq!(Settings::default().keep_tombstones, month);
    assert_eq!(read(&[]).0.keep_tombstones, month);
    assert_eq!(read(&[(TOMBSTONE_DAYS, "a week")]).0.keep_tombstones, month);
    assert_eq!(read(&[(TOMBSTONE_DAYS, "7")]).0.keep_tombstones, Duration::from_hours(7 * 24));
}

#[test]
fn log_lines_are_quoted_unless_the_settings_say_otherwise() {
    let quoted = |text: &str| read(&[(QUOTE_LOGS, text)]).0.quote_logs;
    assert!(read(&[]).0.quote_logs && quoted("true"));
    assert!(!quoted("false") && !quoted("flase"), "a typo publishes nothing");
}

#[test]
fn tombstones_are_bounded_and_a_typo_keeps_the_default() {
    assert_eq!(read(&[]).0.tombstone_limits, TombstoneLimits::default());
    let pairs = [(TOMBSTONE_APP_COUNT, "5"), (TOMBSTONE_APP_MIB, " 2"), (TOMBSTONE_TOTAL_MIB, "3")];
    let own = TombstoneLimits { app_count: 5, app_bytes: 2 << 20, total_bytes: 3 << 20 };
    assert_eq!(read(&pairs).0.tombstone_limits, own);
    let (settings, problems) = read(&[(TOMBSTONE_APP_COUNT, "0"), (TOMBSTONE_TOTAL_MIB, "1Gi")]);
    assert_eq!(settings.tombstone_limits, TombstoneLimits::default());
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn a_tug_of_war_is_one_after_as_many_rounds_as_the_settings_say() {
    let limit = |pairs: &[(&str, &str)]| read(pairs).0.heal_limit();
    assert_eq!(limit(&[]), HealLimit::default());
    let own = HealLimit { rounds: 3, window: SignedDuration::from_mins(60) };
    assert_eq!(limit(&[(TUG_ROUNDS, "3"), (TUG_MINUTES, " 60")]), own);
    let (settings, problems) = read(&[(TUG_ROUNDS, "0"), (TUG_MINUTES, "an hour")]);
    assert_eq!(settings.heal_limits, HealLimits::default());
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn the_waits_between_heals_are_argo_cds_settings() {
    let waits = |pairs: &[(&str, &str)]| {
        let prefix = "controller.self.heal.";
        let data: ConfigData =
            pairs.iter().map(|(key, value)| (format!("{prefix}{key}"), (*value).into())).collect();
        let config_maps = BTreeMap::from([("argocd-cmd-params-cm".to_owned(), data)]);
        let source = SettingsSource { config_maps, ..SettingsSource::default() };
        let limits = Settings::read(&source, 1).0.heal_limits;
        (limits.backoff.as_secs(), limits.factor, limits.longest.as_secs())
    };
    assert_eq!(waits(&[]), (1, 2, 300), "plumb's own");
    let own = [("backoff.timeout.seconds", "2"), ("backoff.factor", "3"), ("backoff.cap.seconds", "60")];
    assert_eq!(waits(&own), (2, 3, 60));
    assert_eq!(waits(&[("backoff.cap.seconds", "4")]), (1, 2, 4));
    assert_eq!(waits(&[("timeout.seconds", "5")]), (1, 2, 300), "the growing wait is on");
    assert_eq!(waits(&[("timeout.seconds", "5"), ("backoff.timeout.seconds", "0")]), (5, 1, 5));
    assert_eq!(waits(&[("backoff.timeout.seconds", "0")]), (0, 1, 0));
}

#[test]
fn asking_the_server_is_a_setting_and_an_app_has_the_last_word() {
    let options = |value: Option<&str>, annotation: &str| {
        let parameters = value.map(|value| ("controller.diff.server.side".to_owned(), value.to_owned()));
        let parameters: ConfigData = parameters.into_iter().collect();
        let config_maps = BTreeMap::from([("argocd-cmd-params-cm".to_owned(), parameters)]);
        let source = SettingsSource { config_maps, ..SettingsSource::default() };
        CompareOptions::parse(annotation).or(Settings::read(&source, 1).0.compare_options).server_side_diff
    };
    assert_eq!(options(None, ""), Some(false));
    assert_eq!(options(Some("true"), ""), Some(true));
    assert_eq!(options(Some("true"), "ServerSideDiff=false"), Some(false));
    assert_eq!(options(None, "ServerSideDiff=true"), Some(true));
}

#[test]
fn only_a_clear_word_lets_plugins_run_unconfined() {
    let allowed = |text: &str| read(&[(UNCONFINED_PLUGINS, text)]).0.render.allow_unconfined_plugins;
    assert!(allowed("true"));
    assert!(!allowed("false"));
    let (settings, problems) = read(&[(UNCONFINED_PLUGINS, "yes")]);
    assert!(!settings.render.allow_unconfined_plugins);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(!Settings::default().render.allow_unconfined_plugins);
}

fn secret(kind: &str, pairs: &[(&str, &str)]) -> SecretData {
    let labels = [("argocd.argoproj.io/secret-type".to_owned(), kind.to_owned())].into();
    let metadata = plumb_crd::Metadata { labels, ..plumb_crd::Metadata::default() };
    let values = pairs.iter().map(|(key, text)| ((*key).to_owned(), SecretText::new(*text))).collect();
    SecretData::new(metadata, values)
}

/// What Argo CD's Secrets and `ConfigMaps` hold reaches those who speak to servers.
#[test]
fn keys_and_certificates_reach_repositories_and_charts() {
    let config = |pairs: &[(&str, &str)]| -> ConfigData {
        pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    };
    let source = SettingsSource {
        config_maps: BTreeMap::from([
            ("argocd-ssh-known-hosts-cm".to_owned(), config(&[("ssh_known_hosts", "host line")])),
            ("argocd-tls-certs-cm".to_owned(), config(&[("git.example.com", "the authority")])),
        ]),
        secrets: BTreeMap::from([
            (
                "template".to_owned(),
                secret(
                    "repo-creds",
                    &[
                        ("url", "https://git.example.com"),
                        ("tlsClientCertData", "certificate"),
                        ("tlsClientCertKey", "key"),
                        ("proxy", "http://proxy"),
                    ],
                ),
            ),
            (
                "charts".to_owned(),
                secret("repository", &[("url", "https://git.example.com/charts"), ("type", "helm")]),
            ),
            (
                "keys".to_owned(),
                secret("repository", &[("url", "git@ssh.example.com:org/r.git"), ("sshPrivateKey", "pem")]),
            ),
            (
                "careless".to_owned(),
                secret("repository", &[("url", "git@old.example.com:r"), ("insecure", "true")]),
            ),
            (
                "half".to_owned(),
                secret(
                    "repository",
                    &[("url", "https://half.example.com/r"), ("tlsClientCertData", "certificate")],
                ),
            ),
        ]),
    };
    let (settings, problems) = Settings::read(&source, 1);
    let git = settings.access("https://git.example.com/r", "default");
    assert_eq!(git.tls.ca.as_deref(), Some("the authority"));
    assert_eq!(git.tls.client_certificate.as_deref(), Some("certificate"));
    assert_eq!(git.tls.client_key.as_ref().map(Secret::expose), Some("key"));
    assert_eq!(git.ssh.known_hosts, "host line");
    for url in ["https://git.example.com/other", "https://git.example.com/charts"] {
        let charts = settings.chart_repository(url, "default");
        assert_eq!(charts.ca.as_deref(), Some("the authority"), "{url}");
        let client = charts.client.expect(url);
        assert_eq!((client.certificate.as_str(), client.key.as_str()), ("certificate", "key"), "{url}");
        assert_eq!(charts.proxy.as_deref(), Some("http://proxy"), "{url}");
    }
    let ssh = settings.access("ssh://git@ssh.example.com/org/r", "default").ssh;
    assert_eq!((ssh.private_key.as_ref().map(Secret::expose), ssh.ignore_host_key), (Some("pem"), false));
    assert!(settings.access("git@old.example.com:r.git", "default").ssh.ignore_host_key);
    // A certificate without its key would be left out, and the server would say something else.
    let reason = settings.broken_repository("https://half.example.com/r", "default").unwrap();
    assert!(reason.contains("tlsClientCertKey"), "{reason}");
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn an_unreadable_secret_blocks_its_address_for_its_project_only() {
    const URL: &str = "https://git.example.com/r";
    let encode = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    // Name of the Secret, its project, and whether it can be read.
    let blocked = |secrets: &[(&str, &str, bool)], project: &str| {
        let secrets = secrets.iter().map(|(name, project, is_readable)| {
            let mut data = serde_json::json!({"url": encode(URL), "password": encode("hunter2")});
            if !project.is_empty() {
                data["project"] = encode(project).into();
            }
            if !is_readable {
                data["insecure"] = encode("hunter3").into();
            }
            let labels = serde_json::json!({"argocd.argoproj.io/secret-type": "repository"});
            let secret = serde_json::json!({"metadata": {"name": name, "labels": labels}, "data": data});
            ((*name).to_owned(), SecretData::read(&secret).unwrap().0)
        });
        let source = SettingsSource { secrets: secrets.collect(), ..SettingsSource::default() };
        let settings = Settings::read(&source, 1).0;
        assert_eq!(settings.broken_repository("https://git.example.com/other", project), None);
        let reason = settings.broken_repository(URL, project).map(str::to_owned);
        assert!(!reason.as_ref().is_some_and(|reason| reason.contains("hunter")), "{reason:?}");
        reason.map(|reason| reason.split(':').next().unwrap_or_default().to_owned())
    };
    let (broken_a, broken_all) = (("a", "team-a", false), ("all", "", false));
    assert_eq!(blocked(&[broken_a], "team-a").as_deref(), Some("Secret a"));
    assert_eq!(blocked(&[broken_a], "team-b"), None);
    assert_eq!(blocked(&[broken_all], "team-b").as_deref(), Some("Secret all"));
    // A project with a Secret of its own does not need the one for all.
    assert_eq!(blocked(&[broken_all, ("b", "team-b", true)], "team-b"), None);
    assert_eq!(blocked(&[broken_a, ("all", "", true)], "team-a").as_deref(), Some("Secret a"));
    assert_eq!(blocked(&[broken_all, ("second", "", true)], "team-b"), None);
}

#[test]
fn kinds_can_be_protected() {
    let (settings, _) = read(&[(PROTECTED, "Secret, example.com/Database")]);
    let key = |group: &str, kind: &str| ObjectKey::new(group, kind, None, "x");
    assert!(settings.protects(&key("", "Secret")).is_some());
    assert!(settings.protects(&key("example.com", "Database")).is_some());
    assert!(settings.protects(&key("", "ConfigMap")).is_none());
    assert!(settings.protects(&key("", "Database")).is_none());
}

#[test]
fn credentials_that_cannot_be_used_say_so_and_what_can() {
    const URL: &str = "https://git.example.com/r";
    let said = |credentials: &[(&str, &str)]| {
        let mut data = serde_json::json!({"url": "aHR0cHM6Ly9naXQuZXhhbXBsZS5jb20vcg=="});
        for (key, value) in credentials {
            data[*key] = (*value).into();
        }
        let labels = serde_json::json!({"argocd.argoproj.io/secret-type": "repository"});
        let secret = serde_json::json!({"metadata": {"name": "repo", "labels": labels}, "data": data});
        let (secret, _) = SecretData::read(&secret).unwrap();
        let secrets = BTreeMap::from([("repo".to_owned(), secret)]);
        let source = SettingsSource { secrets, ..SettingsSource::default() };
        Settings::read(&source, 1).0.unusable_credentials(URL, "default")
    };
    let (seven, hunter2, yes) = ("Nw==", "aHVudGVyMg==", "dHJ1ZQ==");
    for (credentials, what) in [
        (&[("githubAppID", seven), ("githubAppPrivateKey", hunter2)][..], "a GitHub App"),
        (&[("gcpServiceAccountKey", hunter2)], "the key of a Google service account"),
        (&[("useAzureWorkloadIdentity", yes)], "an Azure workload identity"),
    ] {
        let said = said(credentials).unwrap();
        assert!(said.contains(what) && said.contains("use a token"), "{said}");
        assert!(!said.contains("hunter2") && !said.contains(hunter2), "{said}");
    }
    assert_eq!(said(&[("username", hunter2), ("password", hunter2)]), None);
}

#[test]
fn the_operator_declares_addresses() {
    let parameters = [
        ("reposerver.allowed.addresses", "127.0.0.9, side.example.com:3000, 10.0.0.0/99"),
        ("reposerver.denied.addresses", "10.96.0.0/12"),
    ];
    let parameters: ConfigData =
        parameters.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let source = SettingsSource {
        config_maps: BTreeMap::from([("argocd-cmd-params-cm".to_owned(), parameters)]),
        secrets: BTreeMap::from([
            ("a".to_owned(), secret("repository", &[("url", "http://localhost:3000/x")])),
            (
                "b".to_owned(),
                secret("repository", &[("url", "http://localhost:4000/x"), ("project", "team")]),
            ),
            ("c".to_owned(), secret("repo-creds", &[("url", "http://127.0.0.5/org")])),
        ]),
    };
    let (settings, problems) = Settings::read(&source, 1);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let options = AddressPolicy::cluster([]);
    let permits = |project: &str, host: &str, port: u16, address: &str| {
        settings.addresses(&options, project).permits(host, port, address.parse().unwrap()).is_ok()
    };
    assert!(permits("default", "localhost", 3000, "127.0.0.1"));
    assert!(!permits("default", "localhost", 4000, "127.0.0.1"), "registered for another project");
    assert!(permits("team", "localhost", 4000, "127.0.0.1"));
    assert!(permits("default", "127.0.0.5", 80, "127.0.0.5"));
    assert!(permits("default", "127.0.0.9", 80, "127.0.0.9"));
    assert!(permits("default", "side.example.com", 3000, "127.0.0.1"));
    assert!(!permits("default", "git.example.com", 443, "127.0.0.1"));
    assert!(!permits("default", "git.example.com", 443, "10.100.0.1"), "denied");
    assert!(permits("default", "git.example.com", 443, "10.0.0.1"));
}
