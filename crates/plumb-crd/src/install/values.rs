//! The values of the chart as options: `plumb install --values` and `helm install --values` make the same objects.

use serde_json::{Value, json};

use super::image::{ImageReference, NotAnImage};
use super::objects::labels;
use super::options::{Gateway, Ingress, InstallOptions, Profile, PullPolicy, ServiceMonitor};
use super::shapes::unknown_key;

/// Why the values of a chart cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// A key that the chart does not have.
    #[error("`{0}` is not a value of the chart")]
    Unknown(String),
    /// A value of the wrong type.
    #[error("`{0}` must be {1}")]
    Wrong(String, &'static str),
    /// Not an image.
    #[error("`image` cannot be used: {0}")]
    Image(NotAnImage),
}

/// Changes the options as the values say. What they do not name stays.
pub fn read_values(values: &Value, mut options: InstallOptions) -> Result<InstallOptions, ValuesError> {
    check_keys(values)?;
    let at = Reader { values };
    options.image = image(&at, &options.image)?;
    if let Some(policy) = at.text("/image/pullPolicy")? {
        options.pull_policy = match policy {
            "Always" => PullPolicy::Always,
            "IfNotPresent" => PullPolicy::IfNotPresent,
            "Never" => PullPolicy::Never,
            _ => return Err(wrong("/image/pullPolicy", "Always, IfNotPresent or Never")),
        };
    }
    if let Some(profile) = at.text("/rbac/profile")? {
        options.profile = match profile {
            "standard" => Profile::Standard,
            "strict" => Profile::Strict,
            _ => return Err(wrong("/rbac/profile", "standard or strict")),
        };
    }
    if let Some(replicas) = at.get("/replicas") {
        let number = replicas.as_u64().and_then(|number| u32::try_from(number).ok());
        options.replicas = number.ok_or_else(|| wrong("/replicas", "a number"))?;
    }
    for (place, flag) in [
        ("/networkPolicy/enabled", &mut options.network_policy),
        ("/crds/install", &mut options.crds),
        ("/crds/argocd", &mut options.argocd_crds),
    ] {
        *flag = at.flag(place)?.unwrap_or(*flag);
    }
    for (place, list) in [
        ("/rbac/impersonateIn", &mut options.impersonate_in),
        ("/networkPolicy/webFrom", &mut options.web_from),
        ("/networkPolicy/metricsFrom", &mut options.metrics_from),
        ("/extraArgs", &mut options.extra_args),
    ] {
        if let Some(texts) = at.texts(place)? {
            *list = texts;
        }
    }
    if let Some(more) = at.get("/extraEnv") {
        options.extra_env = more.as_array().cloned().ok_or_else(|| wrong("/extraEnv", "a list"))?;
    }
    if let Some(resources) = at.get("/resources") {
        options.resources = merged(&options.resources, resources);
    }
    if let Some(configs) = at.get("/configs") {
        check_configs(configs)?;
        options.configs = merged(&options.configs, configs);
    }
    pods(&at, &mut options)?;
    optional_objects(&at, &mut options)?;
    Ok(options)
}

/// Every part of the settings but the styles of the page is a map.
fn check_configs(configs: &Value) -> Result<(), ValuesError> {
    let parts = configs.as_object().ok_or_else(|| wrong("/configs", "a map"))?;
    let no_map =
        |(part, value): &(&String, &Value)| *part != "styles" && !value.is_object() && !value.is_null();
    match parts.iter().find(no_map) {
        Some((part, _)) => Err(wrong(&format!("/configs/{part}"), "a map")),
        None => Ok(()),
    }
}

/// What the cluster asks of pods.
fn pods(at: &Reader<'_>, options: &mut InstallOptions) -> Result<(), ValuesError> {
    let pods = &mut options.pods;
    for (place, list) in
        [("/imagePullSecrets", &mut pods.image_pull_secrets), ("/tolerations", &mut pods.tolerations)]
    {
        if let Some(value) = at.get(place) {
            *list = Some(value.clone()).filter(Value::is_array).ok_or_else(|| wrong(place, "a list"))?;
        }
    }
    for (place, map) in [
        ("/nodeSelector", &mut pods.node_selector),
        ("/affinity", &mut pods.affinity),
        ("/podAnnotations", &mut pods.annotations),
        ("/podLabels", &mut pods.labels),
        ("/serviceAccount/annotations", &mut pods.account_annotations),
    ] {
        if let Some(value) = at.get(place) {
            *map = Some(value.clone()).filter(Value::is_object).ok_or_else(|| wrong(place, "a map"))?;
        }
    }
    let own = labels();
    let taken = pods.labels.as_object().into_iter().flatten().any(|(key, _)| own.get(key).is_some());
    if taken {
        return Err(wrong(
            "/podLabels",
            "labels other than plumb's own (`app.kubernetes.io/name`, `…/part-of`)",
        ));
    }
    if let Some(name) = at.text("/priorityClassName")? {
        name.clone_into(&mut pods.priority_class);
    }
    Ok(())
}

/// Objects that are there only if they are enabled.
fn optional_objects(at: &Reader<'_>, options: &mut InstallOptions) -> Result<(), ValuesError> {
    let text = |place: &str, default: &str| Ok(at.text(place)?.unwrap_or(default).to_owned());
    let object = |place: &str| at.get(place).cloned().unwrap_or_else(|| json!({}));
    if at.flag("/serviceMonitor/enabled")? == Some(true) {
        let (interval, labels) = (text("/serviceMonitor/interval", "30s")?, object("/serviceMonitor/labels"));
        options.service_monitor = Some(ServiceMonitor { interval, labels });
    }
    if at.flag("/prometheusRule/enabled")? == Some(true) {
        options.prometheus_rule = Some(object("/prometheusRule/labels"));
    }
    if at.flag("/ingress/enabled")? == Some(true) {
        options.ingress = Some(Ingress {
            host: text("/ingress/host", "")?,
            class_name: text("/ingress/className", "")?,
            annotations: object("/ingress/annotations"),
            tls: at.get("/ingress/tls").cloned().unwrap_or_else(|| json!([])),
        });
    }
    if at.flag("/gateway/enabled")? == Some(true) {
        options.gateway = Some(Gateway {
            host: text("/gateway/host", "")?,
            name: text("/gateway/name", "")?,
            namespace: text("/gateway/namespace", "")?,
        });
    }
    Ok(())
}

/// The image from its parts; what is not given is that of `before`.
fn image(at: &Reader<'_>, before: &ImageReference) -> Result<ImageReference, ValuesError> {
    if at.get("/image/repository").is_none()
        && at.get("/image/tag").is_none()
        && at.get("/image/digest").is_none()
    {
        return Ok(before.clone());
    }
    let unpublished = ImageReference::unpublished().to_string();
    let (repository, tag) = unpublished.rsplit_once(':').unwrap_or((&unpublished, ""));
    let given = |place: &str| Ok::<_, ValuesError>(at.text(place)?.filter(|text| !text.is_empty()));
    let repository = given("/image/repository")?.unwrap_or(repository);
    let tag = given("/image/tag")?.unwrap_or(tag);
    let digest = given("/image/digest")?.map(|digest| format!("@{digest}")).unwrap_or_default();
    format!("{repository}:{tag}{digest}").parse().map_err(ValuesError::Image)
}

/// Maps are merged, as Helm merges values; everything else is replaced.
fn merged(before: &Value, after: &Value) -> Value {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut all = before.clone();
            for (key, value) in after {
                let value = before.get(key).map_or_else(|| value.clone(), |before| merged(before, value));
                all.insert(key.clone(), value);
            }
            Value::Object(all)
        }
        _ => after.clone(),
    }
}

fn check_keys(values: &Value) -> Result<(), ValuesError> {
    match unknown_key(values) {
        Some(key) => Err(ValuesError::Unknown(key)),
        None if values.is_object() || values.is_null() => Ok(()),
        None => Err(wrong("", "a map")),
    }
}

struct Reader<'a> {
    values: &'a Value,
}

impl<'a> Reader<'a> {
    fn get(&self, place: &str) -> Option<&'a Value> {
        self.values.pointer(place).filter(|value| !value.is_null())
    }

    fn text(&self, place: &str) -> Result<Option<&'a str>, ValuesError> {
        self.get(place).map(|value| value.as_str().ok_or_else(|| wrong(place, "a text"))).transpose()
    }

    fn flag(&self, place: &str) -> Result<Option<bool>, ValuesError> {
        self.get(place).map(|value| value.as_bool().ok_or_else(|| wrong(place, "true or false"))).transpose()
    }

    fn texts(&self, place: &str) -> Result<Option<Vec<String>>, ValuesError> {
        let Some(value) = self.get(place) else { return Ok(None) };
        let all = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        all.map(Some).ok_or_else(|| wrong(place, "a list of texts"))
    }
}

fn wrong(place: &str, expected: &'static str) -> ValuesError {
    ValuesError::Wrong(place.trim_start_matches('/').replace('/', "."), expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_change_what_they_name_and_nothing_else() {
        let values = json!({"replicas": 3, "image": {"repository": "r.example/plumb", "tag": "1"}, "configs": {"cm": {"a": 1}}});
        let options = read_values(&values, InstallOptions::default()).expect("readable");
        let expected = InstallOptions {
            replicas: 3,
            image: "r.example/plumb:1".parse().expect("an image"),
            configs: json!({"cm": {"a": 1}}),
            ..InstallOptions::default()
        };
        assert_eq!(options, expected);
        assert_eq!(read_values(&Value::Null, InstallOptions::default()), Ok(InstallOptions::default()));
    }

    #[test]
    fn a_typo_is_named() {
        for (values, message) in [
            (json!({"replica": 3}), "`replica` is not a value of the chart"),
            (json!({"image": {"name": "x"}}), "`image.name` is not a value of the chart"),
            (json!({"replicas": "3"}), "`replicas` must be a number"),
            (json!({"extraArgs": "x"}), "`extraArgs` must be a list of texts"),
            (json!({"imagePullSecrets": "x"}), "`imagePullSecrets` must be a list"),
            (json!({"nodeSelector": ["x"]}), "`nodeSelector` must be a map"),
            (json!({"podLabels": {"app.kubernetes.io/name": "x"}}), "`podLabels` must be labels other than"),
            (json!({"serviceAccount": {"name": "x"}}), "`serviceAccount.name` is not a value of the chart"),
            (json!({"rbac": {"profile": "none"}}), "`rbac.profile` must be standard or strict"),
            (json!({"image": {"repository": "plumb"}}), "`image` cannot be used: it names no registry"),
            (json!([]), "`` must be a map"),
        ] {
            let error = read_values(&values, InstallOptions::default()).expect_err("refused").to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
