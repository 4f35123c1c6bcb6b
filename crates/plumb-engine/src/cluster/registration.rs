//! The registered clusters, and which one a destination means.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use plumb_core::app::ClusterRef;
use plumb_crd::annotations::REFRESH;
use plumb_crd::settings::{ClusterSecret, SecretData};
use plumb_kube::RegisteredCluster;

/// One cluster as its Secret describes it. It contains credentials, so `Debug` shows only the address.
#[derive(PartialEq)]
pub(crate) struct Registration {
    pub(crate) server: Arc<str>,
    pub(crate) name: String,
    /// The only project that may use it, if the Secret names one.
    pub(crate) project: Option<String>,
    /// The namespaces that plumb reads; empty means all.
    pub(crate) namespaces: Vec<String>,
    /// True if plumb also reads cluster-scoped kinds although `namespaces` is set.
    pub(crate) cluster_resources: bool,
    /// True if its apps are not reconciled.
    pub(crate) skip_reconcile: bool,
    /// The refresh annotation. A new value requests that all objects are read again.
    pub(crate) refresh: Option<String>,
    config: Vec<u8>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Registration {
    fn read(secret: &SecretData) -> Result<Self, String> {
        let cluster = ClusterSecret::read(secret)?;
        Ok(Self {
            server: cluster.server.into(),
            name: cluster.name,
            project: cluster.project.filter(|project| !project.is_empty()),
            namespaces: cluster.namespaces,
            cluster_resources: cluster.cluster_resources,
            skip_reconcile: cluster.skip_reconcile,
            refresh: secret.metadata.annotations.get(REFRESH).cloned(),
            config: secret.get("config").map(|text| text.expose().as_bytes().to_vec()).unwrap_or_default(),
        })
    }

    pub(super) fn is_home(&self) -> bool {
        *self.server == *ClusterRef::IN_CLUSTER_SERVER
    }

    /// Address and credentials for a connection.
    pub(crate) fn access(&self) -> RegisteredCluster {
        RegisteredCluster { server: self.server.to_string(), config: self.config.clone() }
    }
}

/// A cluster Secret. If it is invalid, the fields that could still be read.
#[derive(Debug, PartialEq)]
enum SecretEntry {
    Read(Arc<Registration>),
    Unreadable { server: Option<String>, name: Option<String>, reason: String },
}

/// Which cluster a destination means.
#[derive(Debug, PartialEq)]
pub(super) enum ClusterLookup {
    /// The home cluster, with its registration if it has a Secret.
    Home(Option<Arc<Registration>>),
    Other(Arc<Registration>),
    /// No registered cluster, with the message for the user.
    None(String),
    /// The registration is ambiguous or invalid, with the reason. A user has to correct that.
    Unclear(String),
}

/// All cluster Secrets by their names.
#[derive(Debug, Default)]
pub(super) struct Registered {
    entries: BTreeMap<String, SecretEntry>,
    /// The labels of each Secret. A changed label is not a change of the cluster.
    labels: BTreeMap<String, Labels>,
}

/// Labels of a Secret.
pub(crate) type Labels = BTreeMap<String, String>;

impl Registered {
    /// Notes a Secret, or its deletion with `None`. Returns true if a registration changed.
    pub(super) fn note(&mut self, secret_name: &str, secret: Option<&SecretData>) -> bool {
        let Some(secret) = secret else {
            self.labels.remove(secret_name);
            return self.entries.remove(secret_name).is_some();
        };
        self.labels.insert(secret_name.to_owned(), secret.metadata.labels.clone());
        let entry = match Registration::read(secret) {
            Ok(registration) => SecretEntry::Read(Arc::new(registration)),
            Err(reason) => {
                let text =
                    |key: &str| secret.get(key).map(|text| text.expose().trim_end_matches('/').to_owned());
                tracing::warn!(secret = secret_name, reason, "cannot read cluster Secret");
                let reason = format!("Secret {secret_name} cannot be read: {reason}");
                SecretEntry::Unreadable { server: text("server"), name: text("name"), reason }
            }
        };
        if self.entries.get(secret_name) == Some(&entry) {
            return false;
        }
        self.entries.insert(secret_name.to_owned(), entry);
        true
    }

    /// The cluster with this address. If several Secrets have it, the first one is used.
    pub(super) fn by_server(&self, server: &str) -> Option<&Arc<Registration>> {
        self.valid().find(|registration| *registration.server == *server)
    }

    /// The labels of the Secret that is used for this address.
    pub(super) fn labels(&self, server: &str) -> Option<&Labels> {
        let is_match = |entry: &SecretEntry| match entry {
            SecretEntry::Read(registration) => *registration.server == *server,
            SecretEntry::Unreadable { .. } => false,
        };
        let (secret, _) = self.entries.iter().find(|(_, entry)| is_match(entry))?;
        self.labels.get(secret)
    }

    /// Which cluster a destination means.
    pub(super) fn find(&self, destination: &ClusterRef) -> ClusterLookup {
        match destination {
            ClusterRef::Server(server) => self.find_server(server.trim_end_matches('/')),
            ClusterRef::Name(name) => self.find_name(name),
        }
    }

    fn find_server(&self, server: &str) -> ClusterLookup {
        let found = self.by_server(server);
        if server == ClusterRef::IN_CLUSTER_SERVER {
            return ClusterLookup::Home(found.cloned());
        }
        match (found, self.unreadable(|entry_server, _| entry_server == Some(server))) {
            (Some(found), _) => ClusterLookup::Other(Arc::clone(found)),
            (None, Some(reason)) => {
                ClusterLookup::Unclear(format!("error getting cluster by server \"{server}\": {reason}"))
            }
            (None, None) => ClusterLookup::None(format!(
                "error getting cluster by server \"{server}\": cluster \"{server}\" not found"
            )),
        }
    }

    fn find_name(&self, name: &str) -> ClusterLookup {
        let found: Vec<&Arc<Registration>> =
            self.valid().filter(|registration| registration.name == name).collect();
        match found.as_slice() {
            [one] if one.is_home() => ClusterLookup::Home(Some(Arc::clone(one))),
            [one] => ClusterLookup::Other(Arc::clone(one)),
            [] if name == ClusterRef::IN_CLUSTER_NAME => {
                ClusterLookup::Home(self.by_server(ClusterRef::IN_CLUSTER_SERVER).cloned())
            }
            [] => match self.unreadable(|_, entry_name| entry_name == Some(name)) {
                Some(reason) => ClusterLookup::Unclear(format!("cluster {name}: {reason}")),
                None => ClusterLookup::None(format!("there are no clusters with this name: {name}")),
            },
            many => {
                let servers: Vec<&str> = many.iter().map(|registration| &*registration.server).collect();
                ClusterLookup::Unclear(format!(
                    "there are {} clusters with the same name: [{}]",
                    many.len(),
                    servers.join(" ")
                ))
            }
        }
    }

    fn valid(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.entries.values().filter_map(|entry| match entry {
            SecretEntry::Read(registration) => Some(registration),
            SecretEntry::Unreadable { .. } => None,
        })
    }

    fn unreadable(&self, is_match: impl Fn(Option<&str>, Option<&str>) -> bool) -> Option<&str> {
        self.entries.values().find_map(|entry| match entry {
            SecretEntry::Unreadable { server, name, reason }
                if is_match(server.as_deref(), name.as_deref()) =>
            {
                Some(reason.as_str())
            }
            SecretEntry::Unreadable { .. } | SecretEntry::Read(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret(fields: &[(&str, &str)]) -> SecretData {
        use base64::Engine as _;
        let data: serde_json::Map<String, serde_json::Value> = fields
            .iter()
            .map(|(key, text)| {
                ((*key).to_owned(), json!(base64::engine::general_purpose::STANDARD.encode(text)))
            })
            .collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "data": data,
            "metadata": {"name": "s", "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        });
        SecretData::read(&object).unwrap().0
    }

    fn registered(secrets: &[(&str, &[(&str, &str)])]) -> Registered {
        let mut registered = Registered::default();
        for (name, fields) in secrets {
            assert!(registered.note(name, Some(&secret(fields))));
        }
        registered
    }

    fn server(text: &str) -> ClusterRef {
        ClusterRef::Server(text.into())
    }

    fn name(text: &str) -> ClusterRef {
        ClusterRef::Name(text.into())
    }

    #[test]
    fn a_cluster_is_found_by_address_and_by_name() {
        let clusters = registered(&[("a", &[("server", "https://a:6443/"), ("name", "east")])]);
        for destination in [server("https://a:6443"), server("https://a:6443/"), name("east")] {
            assert!(
                matches!(clusters.find(&destination), ClusterLookup::Other(found) if found.name == "east")
            );
        }
        assert!(
            matches!(clusters.find(&server("https://b")), ClusterLookup::None(why) if why.contains("\"https://b\" not found"))
        );
        assert!(
            matches!(clusters.find(&name("west")), ClusterLookup::None(why) if why == "there are no clusters with this name: west")
        );
    }

    #[test]
    fn the_home_cluster_is_found_with_and_without_a_secret() {
        let none = Registered::default();
        assert_eq!(none.find(&name("in-cluster")), ClusterLookup::Home(None));
        assert_eq!(none.find(&server("https://kubernetes.default.svc")), ClusterLookup::Home(None));
        let renamed = registered(&[("h", &[("server", "https://kubernetes.default.svc"), ("name", "here")])]);
        for destination in [name("here"), name("in-cluster"), server("https://kubernetes.default.svc")] {
            assert!(
                matches!(renamed.find(&destination), ClusterLookup::Home(Some(found)) if found.name == "here")
            );
        }
    }

    #[test]
    fn two_clusters_with_the_same_name_are_ambiguous() {
        let clusters = registered(&[
            ("a", &[("server", "https://a"), ("name", "x")]),
            ("b", &[("server", "https://b"), ("name", "x")]),
        ]);
        let ClusterLookup::Unclear(why) = clusters.find(&name("x")) else {
            panic!("the name must be ambiguous")
        };
        assert_eq!(why, "there are 2 clusters with the same name: [https://a https://b]");
        assert!(matches!(clusters.find(&server("https://b")), ClusterLookup::Other(_)));
    }

    #[test]
    fn an_invalid_secret_is_reported_without_its_values() {
        let clusters = registered(&[
            ("bad", &[("server", "https://a"), ("name", "x"), ("config", "{\"bearerToken\": s3cr3t}")]),
            ("good", &[("server", "https://b"), ("name", "y")]),
        ]);
        for destination in [server("https://a"), name("x")] {
            let ClusterLookup::Unclear(why) = clusters.find(&destination) else {
                panic!("the Secret must be invalid")
            };
            assert!(why.contains("Secret bad cannot be read: config: not JSON"), "{why}");
            assert!(!why.contains("s3cr3t"));
        }
        assert!(matches!(clusters.find(&name("y")), ClusterLookup::Other(_)));
    }

    #[test]
    fn a_refresh_request_is_a_change_and_a_label_is_not() {
        let mut clusters = registered(&[("a", &[("server", "https://a")])]);
        let mut labelled = secret(&[("server", "https://a")]);
        labelled.metadata.labels.insert("team".to_owned(), "blue".to_owned());
        assert!(!clusters.note("a", Some(&labelled)));
        assert_eq!(clusters.labels("https://a").and_then(|labels| labels.get("team")).unwrap(), "blue");
        assert_eq!(clusters.labels("https://b"), None);
        let with_refresh = |at: &str| {
            let mut secret = labelled.clone();
            secret.metadata.annotations.insert(REFRESH.to_owned(), at.to_owned());
            secret
        };
        assert!(clusters.note("a", Some(&with_refresh("2026-11-16T10:00:00Z"))));
        assert!(!clusters.note("a", Some(&with_refresh("2026-11-16T10:00:00Z"))));
        assert!(clusters.note("a", Some(&with_refresh("2026-11-16T11:00:00Z"))));
    }

    #[test]
    fn the_same_secret_again_is_not_a_change() {
        let mut clusters = registered(&[("a", &[("server", "https://a")])]);
        assert!(!clusters.note("a", Some(&secret(&[("server", "https://a")]))));
        assert!(clusters.note("a", Some(&secret(&[("server", "https://a"), ("namespaces", "x")]))));
        assert!(clusters.note("a", None));
        assert!(!clusters.note("a", None));
    }
}
