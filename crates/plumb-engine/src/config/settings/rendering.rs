//! What renderers, plugins and Lua scripts are given.

use std::collections::BTreeMap;

use plumb_crd::settings::{self as wire, ConfigData, PluginDeclaration, SettingsProblem};
use plumb_lua::{Limits, Scripts};
use plumb_render::{KustomizeVersion, Plugin, PluginDiscovery, RenderSettings};

fn plugin(declared: PluginDeclaration) -> Plugin {
    let discover = match (declared.file_name, declared.find_glob) {
        (Some(pattern), _) => PluginDiscovery::FileName(pattern),
        (None, Some(pattern)) => PluginDiscovery::Find(pattern),
        (None, None) => PluginDiscovery::Named,
    };
    Plugin { init: declared.init, generate: declared.generate, discover }
}

pub(super) fn render_settings(
    settings: &wire::Settings,
    plugins: BTreeMap<String, PluginDeclaration>,
) -> RenderSettings {
    let tools = &settings.tools;
    let versions = tools.kustomize_versions.iter().map(|(name, version)| {
        let version = KustomizeVersion {
            program: version.path.clone().into(),
            build_options: version.build_options.clone(),
        };
        (name.clone(), version)
    });
    RenderSettings {
        helm: tools.helm,
        kustomize: tools.kustomize,
        jsonnet: tools.jsonnet,
        kustomize_build_options: tools.kustomize_build_options.clone(),
        kustomize_versions: versions.collect(),
        plugins: plugins.into_iter().map(|(name, declared)| (name, plugin(declared))).collect(),
        ..RenderSettings::default()
    }
}

/// Whether plugins may run where the kernel cannot confine them.
pub(super) const UNCONFINED_PLUGINS: &str = "plumb.plugins.allow-unconfined";

/// A value that cannot be read means no.
pub(super) fn allow_unconfined_plugins(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> bool {
    match map.get(UNCONFINED_PLUGINS).map(|text| text.trim()) {
        Some("true") => true,
        None | Some("" | "false") => false,
        Some(text) => {
            problems.push(SettingsProblem {
                place: format!("argocd-cm {UNCONFINED_PLUGINS}"),
                reason: format!("`{text}` is not `true` or `false`"),
            });
            false
        }
    }
}

/// Users' health checks and actions in Lua.
pub(super) fn read_scripts(map: &ConfigData, problems: &mut Vec<SettingsProblem>) -> Scripts {
    let (scripts, found) = Scripts::parse(map, Limits::default());
    for problem in found {
        // The other reader of the same keys may have reported it already.
        if !problems.iter().any(|known| known.place.contains(&problem.key)) {
            let place = format!("argocd-cm {}", problem.key);
            problems.push(SettingsProblem { place, reason: problem.what });
        }
    }
    scripts
}
