//! Which crate may use which, and what the core may depend on.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::reading::Tree;
use super::violation::Violation;

/// Crate → the crates of this workspace that it may use. Dev-dependencies may also use the test kit.
const ARROWS: &[(&str, &[&str])] = &[
    ("plumb-core", &[]),
    ("plumb-crd", &["plumb-core"]),
    ("plumb-gotemplate", &["plumb-core"]),
    ("plumb-appset", &["plumb-core", "plumb-crd", "plumb-gotemplate"]),
    ("plumb-git", &["plumb-core"]),
    ("plumb-render", &["plumb-core"]),
    ("plumb-kube", &["plumb-core"]),
    ("plumb-lua", &["plumb-core"]),
    ("plumb-heap", &[]),
    ("plumb-seal", &[]),
    ("plumb-traces", &[]),
    (
        "plumb-engine",
        &[
            "plumb-core",
            "plumb-crd",
            "plumb-git",
            "plumb-render",
            "plumb-kube",
            "plumb-lua",
            "plumb-heap",
            "plumb-gotemplate",
            "plumb-appset",
        ],
    ),
    ("plumb-api", &[]),
    ("plumb-page", &["plumb-core", "plumb-crd"]),
    (
        "plumb-server",
        &[
            "plumb-api",
            "plumb-core",
            "plumb-crd",
            "plumb-engine",
            "plumb-gotemplate",
            "plumb-kube",
            "plumb-lua",
            "plumb-page",
        ],
    ),
    (
        "plumb-web",
        &[
            "plumb-core",
            "plumb-crd",
            "plumb-engine",
            "plumb-kube",
            "plumb-server",
            "plumb-gotemplate",
            "plumb-appset",
        ],
    ),
    (
        "plumb",
        &[
            "plumb-core",
            "plumb-crd",
            "plumb-git",
            "plumb-render",
            "plumb-kube",
            "plumb-lua",
            "plumb-gotemplate",
            "plumb-appset",
            "plumb-engine",
            // Tests speak the API's own protocol.
            "plumb-api",
            "plumb-page",
            "plumb-seal",
            "plumb-traces",
            "plumb-web",
        ],
    ),
    ("plumb-testkit", &[]),
    ("plumb-cluster-tests", &["plumb-testkit", "plumb-core", "plumb-crd"]),
    ("xtask", &["plumb-testkit", "plumb-crd"]),
];

/// What the core may depend on: parsers and containers, no crate that does I/O.
const CORE_DEPENDENCIES: &[&str] = &[
    "base64",
    "compact_str",
    "jaq-core",
    "jiff",
    "regex",
    "regex-bites",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
];

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(tree.root())
        .output()
        .context("cannot run cargo metadata")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")?;
    Ok(violations(&metadata))
}

fn violations(metadata: &Value) -> Vec<Violation> {
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(allowed) = arrows.get(name) else {
            found.push(Violation::new(name, "has no line in xtask/src/tidy/arrows.rs: add what it may use"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let is_dev = dependency["kind"].as_str() == Some("dev");
            let is_ours = arrows.contains_key(used);
            if is_ours && !allowed.contains(&used) && !(is_dev && used == "plumb-testkit") && used != name {
                found.push(Violation::new(name, format!("must not use {used}")));
            }
            if name == "plumb-core" && !is_dev && !is_ours && !CORE_DEPENDENCIES.contains(&used) {
                found.push(Violation::new(
                    name,
                    format!("must not depend on {used}: the core does no I/O (see CORE_DEPENDENCIES)"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dependency_that_is_not_allowed_is_reported() {
        let metadata = json!({"packages": [
            {"name": "plumb-core", "dependencies": [{"name": "tokio", "kind": null}, {"name": "plumb-kube", "kind": null}]},
            {"name": "plumb-kube", "dependencies": [{"name": "plumb-core", "kind": null}, {"name": "plumb-testkit", "kind": "dev"}]},
            {"name": "newcomer", "dependencies": []},
        ]});
        let found: Vec<String> =
            violations(&metadata).iter().map(|one| format!("{}: {}", one.place, one.what)).collect();
        assert_eq!(
            found,
            [
                "plumb-core: must not depend on tokio: the core does no I/O (see CORE_DEPENDENCIES)",
                "plumb-core: must not use plumb-kube",
                "newcomer: has no line in xtask/src/tidy/arrows.rs: add what it may use",
            ]
        );
    }
}
