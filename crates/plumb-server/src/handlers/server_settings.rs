//! The settings that clients ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use plumb_api::Status;
use plumb_crd::settings::{ConfigData, Customization, Impersonation, Settings, StatusScope};
use serde_json::{Map, Value, json};

use crate::call::{Answer, Call};
use crate::session::Identity;
use crate::state::yaml_texts;

/// The settings that clients need. Without a login only the reduced set of Argo CD.
pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let state = &call.shared.state;
    let config = state.config();
    let (read, _) = Settings::read(&config, &ConfigData::new());
    let text = |key: &str| config.get(key).map(String::as_str).unwrap_or_default();
    let or = |key: &str, default: &str| if text(key).is_empty() { default } else { text(key) }.to_owned();
    let any_login = state.accounts().values().any(|account| account.is_enabled && account.can_login);
    let mut settings = json!({
        "url": text("url"),
        "additionalUrls": yaml_texts(text("additionalUrls")),
        "appLabelKey": or("application.instanceLabelKey", "app.kubernetes.io/instance"),
        "trackingMethod": or("application.resourceTrackingMethod", "annotation"),
        "installationID": text("installationID"),
        "statusBadgeEnabled": text("statusbadge.enabled") == "true",
        "statusBadgeRootUrl": text("statusbadge.url"),
        "userLoginsDisabled": !any_login,
        "execEnabled": false,
        "syncWithReplaceAllowed": true,
        "impersonationEnabled": read.impersonation != Impersonation::Off,
        "help": {
            "chatUrl": text("help.chatUrl"), "chatText": text("help.chatText"),
            "binaryUrls": named(&config, &["help.download."]),
        },
        "googleAnalytics": {},
        "kustomizeOptions": {"BuildOptions": text("kustomize.buildOptions")},
        "kustomizeVersions": named(&config, &["kustomize.version.", "kustomize.path."]).keys().collect::<Vec<_>>(),
        "uiCssURL": text("ui.cssurl"),
        "appsInAnyNamespaceEnabled":
            call.leader().is_ok_and(|leader| leader.permits_other_namespaces()),
    });
    if let Some(oidc) = call.shared.sessions.sso().config() {
        settings["oidcConfig"] = json!({
            "name": oidc.name, "issuer": oidc.issuer, "clientID": oidc.client_id, "cliClientID": oidc.cli_client_id,
            "scopes": oidc.scopes, "enablePKCEAuthentication": true,
        });
        if oidc.claims.is_object() {
            settings["oidcConfig"]["idTokenClaims"] = claims(&oidc.claims);
        }
    }
    if call.identity.as_ref().is_some_and(Identity::is_logged_in) {
        settings["controllerNamespace"] = json!(call.namespace());
        settings["passwordPattern"] = json!(super::account::password_pattern(text("passwordPattern")));
        settings["uiBannerContent"] = json!(text("ui.bannercontent"));
        settings["uiBannerURL"] = json!(text("ui.bannerurl"));
        settings["uiBannerPermanent"] = json!(text("ui.bannerpermanent") == "true");
        settings["uiBannerPosition"] = json!(text("ui.bannerposition"));
        let is_status_set = config.contains_key("resource.compareoptions");
        settings["resourceOverrides"] = overrides(&read, is_status_set);
    }
    Ok(Answer::One(settings))
}

/// `requestedIDTokenClaims` in the form of the API: a value of another type would fail for every client.
fn claims(written: &Value) -> Value {
    let claim = |written: &Value| {
        let values = written.get("values").and_then(Value::as_array).into_iter().flatten();
        json!({
            "essential": written.get("essential").and_then(Value::as_bool).unwrap_or_default(),
            "value": written.get("value").and_then(Value::as_str).unwrap_or_default(),
            "values": values.filter(|value| value.is_string()).collect::<Vec<_>>(),
        })
    };
    let all = written.as_object().into_iter().flatten();
    Value::Object(all.map(|(name, written)| (name.clone(), claim(written))).collect())
}

/// The settings whose keys begin with one of these, by the rest of the key.
fn named<'c>(config: &'c BTreeMap<String, String>, prefixes: &[&str]) -> BTreeMap<&'c str, &'c str> {
    let rest = |key: &'c str| prefixes.iter().find_map(|prefix| key.strip_prefix(prefix));
    config.iter().filter_map(|(key, value)| Some((rest(key)?, value.as_str()))).collect()
}

/// What `resource.customizations` says about kinds. `argocd` compares and judges by itself with them.
fn overrides(settings: &Settings, is_status_set: bool) -> Value {
    let mut overrides = Map::new();
    for (key, customization) in settings.customizations.iter() {
        let kind = &key.kind;
        let name = if key.group.is_empty() { kind.clone() } else { format!("{}/{kind}", key.group) };
        overrides.insert(name, shown(customization));
    }
    // plumb knows by itself which fields only the API server writes; for `argocd` it is its own default.
    let status = match settings.compare.ignore_status {
        StatusScope::Crds => Some("apiextensions.k8s.io/CustomResourceDefinition"),
        StatusScope::None if is_status_set => None,
        StatusScope::All | StatusScope::None => Some("*/*"),
    };
    if let Some(name) = status {
        let entry = overrides.entry(name).or_insert_with(|| json!({}));
        let pointers = entry.pointer("/ignoreDifferences/jsonPointers").and_then(Value::as_array).cloned();
        let mut pointers = pointers.unwrap_or_default();
        pointers.push(json!("/status"));
        entry["ignoreDifferences"]["jsonPointers"] = Value::Array(pointers);
    }
    Value::Object(overrides)
}

fn shown(customization: &Customization) -> Value {
    let fields = |ignored: &plumb_crd::settings::IgnoredFields| {
        json!({
            "jsonPointers": ignored.json_pointers, "jqPathExpressions": ignored.jq_path_expressions,
            "managedFieldsManagers": ignored.managed_fields_managers,
        })
    };
    let types = customization.known_type_fields.iter();
    json!({
        "healthLua": customization.health_lua.clone().unwrap_or_default(),
        "useOpenLibs": customization.use_open_libs,
        "actions": customization.actions.clone().unwrap_or_default(),
        "ignoreDifferences": fields(&customization.ignore_differences),
        "ignoreResourceUpdates": fields(&customization.ignore_resource_updates),
        "knownTypeFields": types.map(|field| json!({"field": field.field, "type": field.type_name})).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn clients_learn_what_the_settings_say_about_kinds() {
        let config = config(&[
            ("resource.customizations.health.example.com_Vault", "return {}"),
            ("resource.customizations.ignoreDifferences.apps_Deployment", "jsonPointers: [/spec/replicas]"),
            ("resource.customizations", "Secret: {health.lua: hs}"),
        ]);
        let read = Settings::read(&config, &ConfigData::new()).0;
        let all = overrides(&read, false);
        assert_eq!(all["example.com/Vault"]["healthLua"], "return {}");
        assert_eq!(all["apps/Deployment"]["ignoreDifferences"]["jsonPointers"], json!(["/spec/replicas"]));
        assert_eq!(all["Secret"]["healthLua"], "hs");
        assert_eq!(all["*/*"], json!({"ignoreDifferences": {"jsonPointers": ["/status"]}}));
        assert_eq!(overrides(&read, true).get("*/*"), None);
    }

    #[test]
    fn claims_have_the_form_of_the_api() {
        let written =
            json!({"groups": {"essential": true, "values": ["a", 1]}, "acr": null, "x": {"value": 5}});
        let empty = json!({"essential": false, "value": "", "values": []});
        let expected =
            json!({"groups": {"essential": true, "value": "", "values": ["a"]}, "acr": empty, "x": empty});
        assert_eq!(claims(&written), expected);
    }

    #[test]
    fn names_are_read_from_the_settings() {
        let config =
            config(&[("kustomize.path.v5", "/a"), ("kustomize.version.v4", "/b"), ("kustomize.x", "c")]);
        let names: Vec<&str> =
            named(&config, &["kustomize.version.", "kustomize.path."]).into_keys().collect();
        assert_eq!(names, ["v4", "v5"]);
    }
}
