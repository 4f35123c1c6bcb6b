//! Every flag of argocd: it works, or it is refused with a reason. None is accepted and then ignored.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::golden::Said;

/// How plumb treats a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It works as in argocd; other tests check that.
    Works,
    /// It works, and makes the command look for a server.
    Remote,
    /// The command fails with exit code 2 and a reason.
    Refused,
}

use Fate::{Refused, Remote, Works};

/// Flags of every command.
const GLOBAL: &[(&str, Fate)] = &[
    ("--core", Works),
    ("--kube-context x", Works),
    ("--server 127.0.0.1:1", Remote),
    ("--auth-token x", Remote),
    ("--grpc-web", Works),
    ("--grpc-web-root-path x", Works),
    ("--insecure", Works),
    ("--plaintext", Works),
    ("--port-forward", Works),
    ("--port-forward-namespace x", Works),
    ("--argocd-context x", Remote),
    ("--config x", Works),
    ("--header a:b", Works),
    ("-H a:b", Works),
    ("--http-retry-max 3", Refused),
    ("--client-crt x", Works),
    ("--client-crt-key x", Works),
    ("--server-crt x", Works),
    ("--server-name x", Refused),
    ("--controller-name x", Refused),
    ("--repo-server-name x", Refused),
    ("--redis-name x", Refused),
    ("--redis-haproxy-name x", Refused),
    ("--redis-compress gzip", Refused),
    ("--prompts-enabled=false", Refused),
    ("--logformat json", Refused),
    ("--loglevel debug", Refused),
];

/// Flags of `app create`, `app set` and, but for the policy, `app add-source`.
const SOURCE: &[(&str, Fate)] = &[
    ("--repo x", Works),
    ("--path x", Works),
    ("--revision x", Works),
    ("--tag-prefix x", Works),
    ("--helm-chart x", Works),
    ("-p a=b", Works),
    ("--parameter a=b", Works),
    ("--values x", Works),
    ("--release-name x", Works),
    ("--helm-set a=b", Works),
    ("--helm-set-string a=b", Works),
    ("--helm-set-file a=b", Works),
    ("--helm-version v3", Works),
    ("--helm-skip-crds", Works),
    ("--helm-skip-tests", Works),
    ("--helm-skip-schema-validation", Works),
    ("--helm-namespace x", Works),
    ("--helm-kube-version 1.30", Works),
    ("--helm-api-versions v1", Works),
    ("--helm-pass-credentials", Works),
    ("--ignore-missing-value-files", Works),
    ("--nameprefix x", Works),
    ("--namesuffix x", Works),
    ("--kustomize-image x", Works),
    ("--kustomize-replica x=1", Works),
    ("--kustomize-namespace x", Works),
    ("--kustomize-version x", Works),
    ("--kustomize-common-label a=b", Works),
    ("--kustomize-common-annotation a=b", Works),
    ("--kustomize-force-common-label", Works),
    ("--kustomize-force-common-annotation", Works),
    ("--kustomize-label-without-selector", Works),
    ("--kustomize-label-include-templates", Works),
    ("--ignore-missing-components", Works),
    ("--directory-recurse", Works),
    ("--directory-include x", Works),
    ("--directory-exclude x", Works),
    ("--directory-disable-extension-filter", Works),
    ("--jsonnet-tla-str a=b", Works),
    ("--jsonnet-tla-code a=b", Works),
    ("--jsonnet-ext-var-str a=b", Works),
    ("--jsonnet-ext-var-code a=b", Works),
    ("--jsonnet-libs x", Works),
    ("--config-management-plugin x", Works),
    ("--plugin-env a=b", Works),
    ("--ref x", Works),
    ("--path y --source-name x", Works),
    ("--dry-source-repo x", Refused),
    ("--dry-source-revision x", Refused),
    ("--dry-source-path x", Refused),
    ("--sync-source-branch x", Refused),
    ("--sync-source-path x", Refused),
    ("--hydrate-to-branch x", Refused),
];

const POLICY: &[(&str, Fate)] = &[
    ("--dest-server x", Works),
    ("--dest-name x", Works),
    ("--dest-namespace x", Works),
    ("--project x", Works),
    ("--sync-policy none", Works),
    ("--sync-policy automated", Works),
    ("--sync-policy automated --auto-prune", Works),
    ("--sync-policy automated --self-heal", Works),
    ("--sync-policy automated --allow-empty", Works),
    ("--sync-option a=b", Works),
    ("--sync-option !a=b", Works),
    ("--sync-retry-limit 3", Works),
    ("--sync-retry-backoff-duration 5s", Works),
    ("--sync-retry-backoff-max-duration 5s", Works),
    ("--sync-retry-backoff-factor 2", Works),
    ("--sync-retry-refresh", Works),
    ("--revision-history-limit 3", Works),
];

/// Command, its own flags.
const COMMANDS: &[(&str, &[(&str, Fate)])] = &[
    (
        "app list",
        &[
            ("-o wide", Works),
            ("-o name", Works),
            ("-o json", Works),
            ("-o yaml", Works),
            ("-l a=b", Works),
            ("-p x", Works),
            ("-r x", Works),
            ("-c x", Works),
            ("-P x", Works),
            ("-N x", Works),
            ("--watch", Works),
        ],
    ),
    (
        "app get x",
        &[
            ("-o wide", Works),
            ("-o json", Works),
            ("-o yaml", Works),
            ("-o tree", Works),
            ("-o tree=detailed", Works),
            ("--refresh", Works),
            ("--hard-refresh", Works),
            ("--show-operation", Works),
            ("--show-params", Works),
            ("--source-position 1", Works),
            ("--source-name x", Works),
            ("--timeout 3", Works),
        ],
    ),
    (
        "app diff x",
        &[
            ("--refresh", Works),
            ("--hard-refresh", Works),
            ("--exit-code=false", Works),
            ("--diff-exit-code 3", Works),
            ("--revision x", Works),
            ("--revisions x --source-positions 1", Works),
            ("--revisions x --source-names x", Works),
            ("--local .", Works),
            ("--local . --local-repo-root .", Works),
            ("--local-include *.yaml", Refused),
            ("--server-side-generate", Refused),
            ("--server-side-diff", Refused),
            ("--server-side-diff=false", Refused),
            ("--server-side-diff-concurrency -1", Refused),
            ("--server-side-diff-max-batch-kb 250", Refused),
            ("--ignore-normalizer-jq-execution-timeout 1s", Refused),
        ],
    ),
    (
        "app sync x",
        &[
            ("--prune", Works),
            ("--prune=true", Works),
            ("--prune=false", Works),
            ("--dry-run", Works),
            ("--revision x", Works),
            ("--revisions x --source-positions 1", Works),
            ("--revisions x --source-names x", Works),
            ("--resource apps:Deployment:web", Works),
            ("--resource !*:Service:*", Works),
            ("--label a=b", Works),
            ("--strategy apply", Works),
            ("--strategy hook", Works),
            ("--force", Works),
            ("--replace", Works),
            ("--server-side", Works),
            ("--apply-out-of-sync-only", Works),
            ("--async", Works),
            ("--info a=b", Works),
            ("--retry-limit 3", Works),
            ("--retry-refresh", Works),
            ("--retry-backoff-duration 5s", Works),
            ("--retry-backoff-max-duration 5s", Works),
            ("--retry-backoff-factor 2", Works),
            ("--timeout 3", Works),
            ("-o json", Works),
            ("--local .", Refused),
            ("--local-repo-root .", Refused),
            ("--preview-changes", Refused),
            ("--assumeYes", Refused),
        ],
    ),
    ("app sync", &[("-l a=b", Works), ("--project x", Works)]),
    (
        "app wait x",
        &[
            ("--sync", Works),
            ("--health", Works),
            ("--operation", Works),
            ("--suspended", Works),
            ("--degraded", Works),
            ("--delete", Works),
            ("--hydrated", Refused),
            ("--resource apps:Deployment:web", Works),
            ("--timeout 3", Works),
            ("-o json", Works),
        ],
    ),
    ("app wait", &[("-l a=b", Works)]),
    ("app history x", &[("-o wide", Works), ("-o id", Works)]),
    ("app rollback x 1", &[("--prune", Works), ("--timeout 3", Works), ("-o json", Works)]),
    (
        "app resources x",
        &[
            ("--orphaned", Works),
            ("--output tree", Works),
            ("--output tree=detailed", Works),
            ("--project x", Works),
            ("--watch", Works),
        ],
    ),
    (
        "app manifests x",
        &[
            ("--source git", Works),
            ("--source live", Works),
            ("--revision x", Works),
            ("--revisions x --source-positions 1", Works),
            ("--local .", Works),
        ],
    ),
    (
        "app create x",
        &[
            ("--upsert", Works),
            ("-f x", Works),
            ("--set-finalizer", Works),
            ("--validate=false", Works),
            ("--label a=b", Works),
            ("--annotations a=b", Works),
        ],
    ),
    ("app set x --path y", &[("--source-position 1", Works)]),
    ("app patch x", &[("--patch [] --type json", Works), ("--patch {} --type merge", Works)]),
    (
        "app delete x",
        &[
            ("--cascade=false", Works),
            ("-p foreground", Works),
            ("-p background", Works),
            ("-y", Works),
            ("--wait", Works),
        ],
    ),
    ("app delete", &[("-l a=b", Works)]),
    (
        "app actions run x restart",
        &[
            ("--kind x", Works),
            ("--group x", Works),
            ("--namespace x", Works),
            ("--resource-name x", Works),
            ("--all", Works),
        ],
    ),
    ("app delete-resource x --kind y", &[("--force", Works), ("--orphan", Works), ("--all", Works)]),
    (
        "app logs x",
        &[
            ("--kind x", Works),
            ("--group x", Works),
            ("--namespace x", Works),
            ("--name x", Works),
            ("-f", Works),
            ("--tail 3", Works),
            ("--since-seconds 3", Works),
            ("--until-time 2026-01-01T00:00:00Z", Works),
            ("--filter x", Works),
            ("-c x", Works),
            ("-p", Works),
            ("-m", Works),
        ],
    ),
    ("proj list", &[("-o name", Works), ("--watch", Works)]),
    (
        "appset list",
        &[("-o name", Works), ("-p x", Works), ("-l a=b", Works), ("--appset-namespace x", Works)],
    ),
    ("appset get x", &[("-o json", Works), ("--appset-namespace x", Works), ("--show-params", Works)]),
    ("appset delete x", &[("--yes", Works), ("--appset-namespace x", Works), ("--wait", Works)]),
    ("appset create x", &[("--upsert", Works), ("--dry-run", Works), ("--wait", Works), ("-o json", Works)]),
    ("appset generate x", &[("-o json", Works), ("--appset-namespace x", Works)]),
    ("proj windows list x", &[("-o json", Works), ("--watch", Works)]),
    ("cluster list", &[("-o server", Works), ("--watch", Works)]),
    ("repo list", &[("-o url", Works), ("--watch", Works), ("--refresh hard", Refused)]),
];

#[test]
fn every_flag_works_or_is_refused_with_a_reason() -> Result<()> {
    let mut wrong = Vec::new();
    let mut check = |command: &str, flag: &str, fate: Fate| -> Result<()> {
        let line = format!("{command} {flag}");
        let said = without_cluster(&line)?;
        // With a flag that works, the command fails only because it finds no cluster.
        let is_as_told = match fate {
            Works => said.code == 20 && said.stderr.contains("no kubeconfig found") || is_about_files(&said),
            Remote => {
                let reasons = ["no server is known", "cannot ask https://127.0.0.1:1"];
                said.code == 20 && reasons.iter().any(|reason| said.stderr.contains(reason))
            }
            Refused => said.code == 2 && said.stderr.contains(" is not accepted: "),
        };
        if !is_as_told {
            wrong.push(format!("{line} ({fate:?}): exit {}, {}", said.code, said.stderr));
        }
        Ok(())
    };
    for (flag, fate) in GLOBAL {
        check("app list", flag, *fate)?;
    }
    for command in ["app create x", "app set x", "app add-source x --repo y"] {
        let source =
            SOURCE.iter().filter(|(flag, _)| !command.contains("--repo") || !flag.starts_with("--repo"));
        let policy = POLICY.iter().filter(|_| !command.starts_with("app add-source"));
        for (flag, fate) in source.chain(policy) {
            check(command, flag, *fate)?;
        }
    }
    for (command, flags) in COMMANDS {
        for (flag, fate) in *flags {
            check(command, flag, *fate)?;
        }
    }
    ensure!(wrong.is_empty(), "{} flags are not as told:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

/// True if the command failed on the file or the spec that the flags name.
fn is_about_files(said: &Said) -> bool {
    said.code == 20 && said.stderr.contains("read x: ")
        || said.code == 2 && said.stderr.contains("an Application needs")
}

#[test]
fn unsupported_commands_say_what_to_use_instead() -> Result<()> {
    for line in ["relogin", "configure --prompts-enabled=true", "relogin --help"] {
        let said = without_cluster(line)?;
        let is_plain = said.stderr.starts_with("error: command ") && said.stderr.contains("\nhint: ");
        assert!(said.code == 2 && is_plain, "{line}: exit {}, {}", said.code, said.stderr);
    }
    Ok(())
}

/// Runs plumb without a kubeconfig.
fn without_cluster(line: &str) -> Result<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(line.split(' '))
        .env_clear()
        .output()
        .with_context(|| format!("run {line}"))?;
    Ok(Said {
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
        code: output.status.code().context("a signal ended it")?,
    })
}
