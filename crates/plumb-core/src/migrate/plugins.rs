//! Config management plugins.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::{Finding, Installation, Level, finding};
use super::parts::{all_sources, is_set, list, workloads};

/// The program that Argo CD starts in the sidecar of a plugin.
const PROGRAM: &str = "argocd-cmp-server";
/// Where that program finds its plugin.
const DIRECTORY: &str = "/home/argocd/cmp-server";

/// Plugins in sidecars of the repo server, and those that sources use.
pub(super) fn plugins(installation: &Installation) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_known = |plugin: &str| installation.plugins.iter().any(|known| known == plugin);
    let servers = workloads(installation, "repo-server");
    let containers = servers.flat_map(|server| list(server, "/spec/template/spec/containers"));
    for sidecar in containers.filter(|container| runs_plugin(container)) {
        let plugin = sidecar["name"].as_str().unwrap_or_default();
        let subject = format!("plugin {plugin}");
        found.push(if is_known(plugin) {
            let what = "declared in the ConfigMap `plumb-plugins`";
            finding(Level::Works, &subject, what, "plumb runs it without the sidecar of the repo server")
        } else {
            let what = "runs in a sidecar of the repo server, which plumb does not use";
            let next = "copy its plugin.yaml into the ConfigMap `plumb-plugins`, and its programs into plumb's image";
            finding(Level::Missing, &subject, what, next)
        });
    }
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for source in installation.applications.iter().flat_map(all_sources) {
        if let Some(plugin) = source.get("plugin").filter(|plugin| is_set(plugin)) {
            let plugin = plugin["name"].as_str().unwrap_or("found by its files");
            *used.entry(plugin.to_owned()).or_default() += 1;
        }
    }
    for (plugin, n_sources) in used {
        let (level, next) = if is_known(&plugin) {
            (Level::Works, "its programs must be in plumb's image")
        } else {
            (Level::Missing, "declare it in the ConfigMap `plumb-plugins`")
        };
        let what = format!("sources that use it: {n_sources}");
        found.push(finding(level, &format!("plugin {plugin}"), what, next));
    }
    found
}

/// Other containers, such as the proxy of a service mesh, are no plugins.
fn runs_plugin(container: &Value) -> bool {
    let words = ["/command", "/args"].into_iter().flat_map(|place| list(container, place));
    let is_program = |word: &str| word.rsplit('/').next() == Some(PROGRAM);
    let mounts = list(container, "/volumeMounts").iter();
    words.filter_map(Value::as_str).any(is_program)
        || mounts.filter_map(|mount| mount["mountPath"].as_str()).any(|path| path.starts_with(DIRECTORY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_is_a_plugin_by_its_program_or_its_directory() {
        for (container, expected) in [
            (json!({"name": "avp", "command": ["/var/run/argocd/argocd-cmp-server"]}), true),
            (json!({"name": "avp", "args": ["argocd-cmp-server", "--loglevel=debug"]}), true),
            (
                json!({"name": "avp", "volumeMounts": [{"mountPath": "/home/argocd/cmp-server/plugins"}]}),
                true,
            ),
            (json!({"name": "repo-server", "args": ["/usr/local/bin/argocd-repo-server"]}), false),
            (json!({"name": "istio-proxy", "args": ["proxy", "sidecar"]}), false),
            (json!({"name": "x", "volumeMounts": [{"mountPath": "/home/argocd"}]}), false),
        ] {
            assert_eq!(runs_plugin(&container), expected, "{container}");
        }
    }
}
