//! The URLs of an app: those of its Ingresses, and those in annotations.

use std::collections::{BTreeMap, BTreeSet};

use plumb_core::object::Manifest;
use plumb_crd::annotations::LINK_PREFIX;
use serde_json::Value;

const IGNORE_DEFAULT: &str = "argocd.argoproj.io/ignore-default-links";

/// All URLs, sorted, without duplicates.
pub(super) fn external_urls<'a>(
    annotations: &BTreeMap<String, String>,
    live: impl Iterator<Item = &'a Manifest>,
) -> Vec<String> {
    let own = annotations.iter().filter(|(key, _)| key.starts_with(LINK_PREFIX));
    let mut urls: BTreeSet<String> = own.filter_map(|(_, value)| link(value)).collect();
    for object in live {
        urls.extend(annotated(object));
        let is_ingress = object.kind() == "Ingress"
            && matches!(object.group(), "networking.k8s.io" | "extensions")
            && !matches!(object.annotation(IGNORE_DEFAULT), Some("true" | "1" | "t" | "T" | "TRUE" | "True"));
        if is_ingress {
            urls.extend(of_ingress(object.value()));
        }
    }
    urls.into_iter().collect()
}

fn annotated(object: &Manifest) -> Vec<String> {
    let annotations = object.value().pointer("/metadata/annotations").and_then(Value::as_object);
    let links = annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(LINK_PREFIX));
    links.filter_map(|(_, value)| link(value.as_str()?)).collect()
}

/// `url` or `title|url`; only `http` and `https`, so that a link cannot run a script in a browser.
fn link(text: &str) -> Option<String> {
    let url = text.split_once('|').map_or(text, |(_, url)| url).trim();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let is_clean = !url.chars().any(|c| c.is_control() || c.is_whitespace());
    (!rest.is_empty() && is_clean).then(|| text.trim().to_owned())
}

fn of_ingress(ingress: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let spec = &ingress["spec"];
    let addresses = list(&ingress["status"]["loadBalancer"]["ingress"]);
    let address = addresses.iter().find_map(|entry| {
        ["hostname", "ip"].iter().find_map(|field| entry[*field].as_str()).filter(|host| !host.is_empty())
    });
    let tls = list(&spec["tls"]);
    let mut urls = Vec::new();
    for rule in list(&spec["rules"]) {
        let host = rule["host"].as_str().filter(|host| !host.is_empty()).or(address);
        let Some(host) = host else { continue };
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        // A TLS entry without hosts covers all hosts.
        let is_secure = tls.iter().any(|entry| {
            let hosts = list(&entry["hosts"]);
            hosts.is_empty() || hosts.iter().any(|covered| covered == host)
        });
        let scheme = if is_secure { "https" } else { "http" };
        for path in list(&rule["http"]["paths"]) {
            let path = path["path"].as_str().unwrap_or_default().trim_end_matches('*');
            urls.push(format!("{scheme}://{shown}{path}"));
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ingress(annotations: &Value) -> Manifest {
        Manifest::new(json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {
                "tls": [{"hosts": ["a.example.com"], "secretName": "s"}],
                "rules": [
                    {"host": "a.example.com", "http": {"paths": [{"path": "/"}, {"path": "/api/*"}]}},
                    {"host": "b.example.com", "http": {"paths": [{}]}},
                    {"http": {"paths": [{"path": "/x"}]}},
                ],
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}},
        }))
        .unwrap()
    }

    #[test]
    fn urls_come_from_ingresses_and_annotations() {
        let own = BTreeMap::from([
            ("link.argocd.argoproj.io/wiki".to_owned(), "Wiki|https://wiki.example.com".to_owned()),
            ("link.argocd.argoproj.io/bad".to_owned(), "javascript:alert(1)".to_owned()),
            ("other".to_owned(), "https://other.example.com".to_owned()),
        ]);
        let object = ingress(&json!({"link.argocd.argoproj.io/logs": "https://logs.example.com"}));
        assert_eq!(
            external_urls(&own, [&object].into_iter()),
            [
                "Wiki|https://wiki.example.com",
                "http://192.0.2.7/x",
                "http://b.example.com",
                "https://a.example.com/",
                "https://a.example.com/api/",
                "https://logs.example.com",
            ]
        );
    }

    #[test]
    fn an_address_of_version_6_is_in_brackets() {
        let mut object = ingress(&json!({})).value().clone();
        object["status"]["loadBalancer"]["ingress"] = json!([{"ip": "2001:db8::1"}]);
        let object = Manifest::new(object).unwrap();
        let urls = external_urls(&BTreeMap::new(), [&object].into_iter());
        assert!(urls.contains(&"http://[2001:db8::1]/x".to_owned()), "{urls:?}");
    }

    #[test]
    fn an_ingress_can_disable_its_urls() {
        let object = ingress(&json!({IGNORE_DEFAULT: "true"}));
        assert!(external_urls(&BTreeMap::new(), [&object].into_iter()).is_empty());
    }
}
