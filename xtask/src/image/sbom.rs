//! The list of components (`CycloneDX`): crates of plumb, Go modules of the tools, packages of Debian. The same files give
//! the same list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::builder::{Checked as _, VERSION};

/// A component: its package URL names it in every list.
type Components = BTreeMap<String, Value>;

/// The components of the image whose folder this is.
pub(super) fn of_image(root: &Path, context: &Path) -> Result<String> {
    let mut components = crates(root)?;
    for tool in ["helm", "kustomize"] {
        components.extend(go_modules(&context.join("bin").join(tool))?);
    }
    let status = Command::new("tar")
        .args(["--extract", "--to-stdout", "--wildcards", "--file"])
        .arg(context.join("root.tar"))
        .arg("*var/lib/dpkg/status")
        .checked()?;
    components.extend(debian_packages(&status));
    document(components)
}

/// The components of the plumb program alone.
pub(crate) fn cargo_components(root: &Path) -> Result<String> {
    document(crates(root)?)
}

fn document(components: Components) -> Result<String> {
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "plumb", "version": VERSION}},
        "components": components.into_values().collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&document).context("cannot write the list of components")
}

fn component(components: &mut Components, kind: &str, name: &str, version: &str, licence: Option<&str>) {
    let url = format!("pkg:{kind}/{}@{version}", name.replace('+', "%2B"));
    let mut component = json!({"type": "library", "name": name, "version": version, "purl": url});
    if let Some(licence) = licence {
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    components.insert(url, component);
}

/// The crates that plumb is linked with, without those of its tests and of its build.
fn crates(root: &Path) -> Result<Components> {
    let text = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root)
        .stdin(Stdio::null())
        .checked()?;
    let metadata: Value = serde_json::from_str(&text).context("cannot read cargo's answer")?;
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .filter_map(|node| Some((node["id"].as_str()?.to_owned(), node)))
        .collect();
    let packages = list(&metadata["packages"]);
    let first = packages.iter().find(|package| package["name"] == "plumb").context("no crate plumb")?;
    let mut open = vec![first["id"].as_str().unwrap_or_default().to_owned()];
    let mut used = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !used.insert(id.clone()) {
            continue;
        }
        for needed in nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default() {
            let is_normal = list(&needed["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            open.extend(needed["pkg"].as_str().filter(|_| is_normal).map(str::to_owned));
        }
    }
    let mut components = Components::new();
    for package in
        packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)))
    {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        component(&mut components, "cargo", text("name"), text("version"), package["license"].as_str());
    }
    Ok(components)
}

/// The modules that a Go program says it was built from.
fn go_modules(program: &Path) -> Result<Components> {
    let text = Command::new("go").args(["version", "-m"]).arg(program).stdin(Stdio::null()).checked()?;
    Ok(read_go_modules(&text))
}

fn read_go_modules(text: &str) -> Components {
    let mut components = Components::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["dep" | "mod", name, version, ..] = words.as_slice()
            && *version != "(devel)"
        {
            component(&mut components, "golang", name, version, None);
        }
    }
    components
}

fn debian_packages(status: &str) -> Components {
    let mut components = Components::new();
    for paragraph in status.split("\n\n") {
        let field =
            |name: &str| paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        if let (Some(name), Some(version)) = (field("Package"), field("Version")) {
            component(&mut components, "deb/debian", name, version, None);
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_modules_and_debian_packages_are_named_as_scanners_expect() {
        let go = read_go_modules(
            "helm: go1.26\n\tmod\thelm.sh/helm/v4\tv4.0.0\th1:x\n\tdep\ta.io/b\tv1.2.0\th1:y\n",
        );
        assert_eq!(
            go.keys().collect::<Vec<_>>(),
            ["pkg:golang/a.io/b@v1.2.0", "pkg:golang/helm.sh/helm/v4@v4.0.0"]
        );
        let debian =
            debian_packages("Package: libc6\nVersion: 2.36-9\n\nPackage: libstdc++6\nVersion: 12.2\n");
        assert_eq!(
            debian.keys().collect::<Vec<_>>(),
            ["pkg:deb/debian/libc6@2.36-9", "pkg:deb/debian/libstdc%2B%2B6@12.2"]
        );
    }
}
