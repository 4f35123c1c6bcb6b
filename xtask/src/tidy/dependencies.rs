//! Every dependency of a crate is named in its sources.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::reading::Tree;
use super::violation::Violation;

/// Dependencies that are there for a feature that they switch on.
const FOR_A_FEATURE: &[(&str, &str)] = &[("plumb-kube", "k8s-openapi")];

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(tree.root())
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cannot read cargo metadata")?;
    let root = tree.root().canonicalize().context("cannot find the repository")?;
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(&root).ok());
        let Some(folder) = folder else { continue };
        let mut sources = String::new();
        for file in tree.with_extension("rs").filter(|file| file.starts_with(folder)) {
            sources.push_str(&tree.text(file)?);
        }
        found.extend(unused(name, package, &sources));
    }
    Ok(found)
}

fn unused(name: &str, package: &Value, sources: &str) -> Vec<Violation> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let names = dependencies.filter_map(|one| one["rename"].as_str().or_else(|| one["name"].as_str()));
    let is_unused = |dependency: &&str| {
        !FOR_A_FEATURE.contains(&(name, *dependency)) && !has_word(sources, &dependency.replace('-', "_"))
    };
    let what = |dependency: &str| format!("does not use its dependency {dependency}");
    names.filter(is_unused).map(|dependency| Violation::new(name, what(dependency))).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dependency_that_no_source_names_is_reported() {
        let package = json!({"dependencies": [
            {"name": "serde-json"}, {"name": "http"}, {"name": "long-name", "rename": "short"}, {"name": "k8s-openapi"},
        ]});
        let found = unused("plumb-kube", &package, "use serde_json::Value; fn http_body() { short::call() }");
        let what: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["does not use its dependency http"]);
    }
}
