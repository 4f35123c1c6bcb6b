//! What the Secrets of clusters and repositories ask for.

use super::facts::{Finding, Level, Registration, finding};

struct Rule {
    key: &'static str,
    level: Level,
    what: &'static str,
    next: &'static str,
}

const TOKEN: &str = "use a token (`username` and `password`) or a deploy key (`sshPrivateKey`)";

/// By the keys of [`Registration::keys`]. Other keys work.
const RULES: [Rule; 8] = [
    Rule {
        key: "awsAuthConfig",
        level: Level::Missing,
        what: "logs in with awsAuthConfig, which plumb does not have",
        next: "use a token, or `execProviderConfig` with a program in plumb's image",
    },
    Rule {
        key: "proxyUrl",
        level: Level::Missing,
        what: "is reached through a proxy (proxyUrl), which plumb does not use for clusters",
        next: "let plumb reach it directly",
    },
    Rule {
        key: "execProviderConfig",
        level: Level::Step,
        what: "a program logs in (execProviderConfig), which plumb starts only if allowed",
        next: "start plumb with `--cluster-exec-plugins`, in an image that has the program",
    },
    Rule {
        key: "githubAppPrivateKey",
        level: Level::Missing,
        what: "logs in as a GitHub App, which plumb cannot do for repositories",
        next: TOKEN,
    },
    Rule {
        key: "gcpServiceAccountKey",
        level: Level::Missing,
        what: "logs in with the key of a Google service account, which plumb cannot use",
        next: TOKEN,
    },
    Rule {
        key: "useAzureWorkloadIdentity",
        level: Level::Missing,
        what: "logs in with an Azure workload identity, which plumb cannot use",
        next: TOKEN,
    },
    Rule {
        key: "enableLfs",
        level: Level::Differs,
        what: "has large files (enableLfs), which plumb does not fetch",
        next: "keep the files that apps render out of Git LFS",
    },
    Rule {
        key: "oci",
        level: Level::Differs,
        what: "is an OCI registry, from which plumb reads charts and no other artifacts",
        next: "keep plain manifests in Git or in a chart",
    },
];

pub(super) fn registrations(registrations: &[Registration]) -> Vec<Finding> {
    let found = |registration: &Registration| {
        let asked = RULES.iter().filter(|rule| registration.keys.contains(rule.key));
        let found = asked.map(|rule| finding(rule.level, &registration.of, rule.what, rule.next));
        found.collect::<Vec<_>>()
    };
    registrations.iter().flat_map(found).collect()
}
