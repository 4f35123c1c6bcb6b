//! Which settings are set, where, and which of them plumb does not use.

use std::collections::BTreeMap;

use plumb_api::Status;
use plumb_crd::settings::{ConfigData, Settings, SettingsProblem, without_effect};
use serde_json::{Value, json};

use super::caller::PageCaller;
use crate::backend::Known;

const CONFIG: &str = "argocd-cm";
const PARAMETERS: &str = "argocd-cmd-params-cm";

/// The settings, without their values: some hold secrets. They are for those who may see clusters.
pub(super) async fn list(caller: &PageCaller) -> Result<Value, Status> {
    let state = &caller.shared.state;
    if !state.allows(&caller.identity.access, "clusters", "get", "*") {
        return Ok(
            json!({"refusal": "you may not see what is set: `clusters, get, *` is missing in argocd-rbac-cm"}),
        );
    }
    let found = caller.shared.backend.get(Known::ConfigMap, state.namespace(), PARAMETERS).await?;
    let data = found.as_ref().and_then(|object| object.value().get("data")).and_then(Value::as_object);
    let texts = data.into_iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)));
    let parameters: ConfigData = texts.map(|(key, text)| (key.clone(), text.to_owned())).collect();
    Ok(json!({"settings": shown(&state.config(), &parameters)}))
}

/// One entry per key that is set. Accounts have a permission of their own.
fn shown(config: &ConfigData, parameters: &ConfigData) -> Vec<Value> {
    let (_, invalid) = Settings::read(config, parameters);
    let by_place = |problems: Vec<SettingsProblem>| -> BTreeMap<String, String> {
        problems.into_iter().map(|problem| (problem.place, problem.reason)).collect()
    };
    let (unused, invalid) = (by_place(without_effect(config, parameters)), by_place(invalid));
    let keys = config.keys().map(|key| (CONFIG, key)).chain(parameters.keys().map(|key| (PARAMETERS, key)));
    let entry = |(object, key): (&str, &String)| {
        let place = format!("{object} {key}");
        // The reason may quote the value.
        let invalid =
            invalid.contains_key(&place).then(|| "its value cannot be read; the log says why".to_owned());
        json!({"object": object, "key": key, "unused": invalid.or_else(|| unused.get(&place).cloned())})
    };
    keys.filter(|(_, key)| !key.starts_with("accounts.")).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_and_values_are_not() {
        let data = |entries: &[(&str, &str)]| -> ConfigData {
            entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let config = data(&[
            ("accounts.alice", "login"),
            ("oidc.config", "clientSecret: canary"),
            ("timeout.reconciliation", "canary"),
        ]);
        let entries = shown(&config, &data(&[("controller.k8s.client.qps", "50")]));
        let text = json!(entries).to_string();
        assert!(!text.contains("canary") && !text.contains("alice"), "{text}");
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} {} {}", entry["object"], entry["key"], entry["unused"].is_string()))
            .collect();
        assert_eq!(
            lines,
            [
                "\"argocd-cm\" \"oidc.config\" false",
                "\"argocd-cm\" \"timeout.reconciliation\" true",
                "\"argocd-cmd-params-cm\" \"controller.k8s.client.qps\" true",
            ]
        );
    }
}
