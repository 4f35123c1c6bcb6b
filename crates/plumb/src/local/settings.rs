//! The settings of a control plane, from `argocd-cm` and from the marks of its objects.

use std::collections::BTreeSet;

use plumb_core::dump::LiveDump;
use plumb_core::object::{Manifest, ObjectKey};
use plumb_core::tracking::{installation_by_marks, method_by_marks};
use plumb_crd::settings::{ConfigData, Settings, TRACKING_METHOD};

/// What `argocd-cm` says; without it, the defaults.
pub(crate) fn settings_of(argocd_cm: Option<&Manifest>) -> Settings {
    Settings::read(&data_of(argocd_cm), &ConfigData::new()).0
}

/// What the `argocd-cm` of a dump says. What it leaves open about marks, or all of that in a dump without it, the marks on
/// the objects of these apps tell.
pub(super) fn settings_of_dump(live: &LiveDump, namespace: &str, apps: &BTreeSet<String>) -> Settings {
    let argocd_cm = live.get(&ObjectKey::new("", "ConfigMap", Some(namespace.to_owned()), "argocd-cm"));
    let mut settings = settings_of(argocd_cm);
    let is_app = |name: &str| apps.contains(name);
    if !data_of(argocd_cm).contains_key(TRACKING_METHOD) {
        settings.tracking.method = method_by_marks(live.values(), &settings.tracking.label_key, is_app);
    }
    if argocd_cm.is_none() {
        settings.tracking.installation_id = installation_by_marks(live.values(), is_app);
    }
    settings
}

fn data_of(argocd_cm: Option<&Manifest>) -> ConfigData {
    let entries = argocd_cm.and_then(|map| map.value().get("data")?.as_object()).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use plumb_core::dump::read_dump;
    use plumb_core::tracking::TrackingMethod;

    use super::*;

    const LABELLED: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: team, labels: {app.kubernetes.io/instance: shop}}
";

    fn method(more: &str) -> TrackingMethod {
        let mut live = LiveDump::new();
        read_dump(format!("{LABELLED}---\n{more}").as_bytes(), &mut live).unwrap();
        settings_of_dump(&live, "argocd", &BTreeSet::from(["shop".to_owned()])).tracking.method
    }

    #[test]
    fn the_setting_comes_before_the_marks() {
        let argocd_cm = |data: &str| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: argocd-cm, namespace: argocd}}, data: {data}}}"
            )
        };
        assert_eq!(method(""), TrackingMethod::Label);
        assert_eq!(method(&argocd_cm("{}")), TrackingMethod::Label);
        let set = argocd_cm("{application.resourceTrackingMethod: annotation+label}");
        assert_eq!(method(&set), TrackingMethod::AnnotationAndLabel);
    }
}
