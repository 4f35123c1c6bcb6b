//! The parts of a project in columns.

use plumb_crd::project::{AppProjectSpec, OrphanedResources};

pub(crate) fn destinations(spec: &AppProjectSpec) -> Vec<String> {
    let place = |cluster: &str, namespace: &str| format!("{cluster},{namespace}");
    spec.destinations
        .iter()
        .map(|one| place(if one.server.is_empty() { &one.name } else { &one.server }, &one.namespace))
        .collect()
}

pub(crate) fn allowed_cluster_kinds(spec: &AppProjectSpec) -> Vec<String> {
    spec.cluster_resource_whitelist.iter().map(|one| format!("{}/{}", one.group, one.kind)).collect()
}

pub(crate) fn service_accounts(spec: &AppProjectSpec) -> Vec<String> {
    let place = |one: &plumb_crd::project::DestinationServiceAccount| {
        format!("{},{},{}", one.server, one.namespace, one.default_service_account)
    };
    spec.destination_service_accounts.iter().map(place).collect()
}

pub(crate) fn orphans(rules: Option<&OrphanedResources>) -> String {
    match rules {
        None => "disabled".to_owned(),
        Some(rules) => {
            let warn = rules.warn.unwrap_or(true);
            let ignored = match rules.ignore.len() {
                0 => String::new(),
                n => format!(", ignored {n}"),
            };
            format!("enabled (warn={warn}{ignored})")
        }
    }
}
