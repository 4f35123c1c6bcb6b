//! Clusters.

use std::sync::Arc;

use plumb_api::{Status, query_pairs};
use plumb_core::app::ClusterRef;
use plumb_core::object::Manifest;
use plumb_core::text::without_logins;
use plumb_crd::settings::ClusterSecret;
use plumb_engine::ClusterNews;
use serde_json::{Map, Value, json};

use super::registration::{self, fnv1a, object};
use super::rotation;
use crate::call::{Answer, Call};

/// A cluster, and the Secret that registers it. The cluster that plumb runs in needs none.
struct Found {
    shown: Value,
    server: String,
    name: String,
    project: Option<String>,
    secret: Option<Manifest>,
}

impl Found {
    fn object(&self) -> String {
        object(self.project.as_deref(), &self.server)
    }
}

async fn all(call: &Call) -> Result<Vec<Found>, Status> {
    let mut found = Vec::new();
    for (data, secret) in registration::list(call, "cluster").await? {
        let Ok(cluster) = ClusterSecret::read(&data) else { continue };
        let shard = data.get("shard").and_then(|shard| shard.expose().trim().parse().ok());
        found.push(Found {
            shown: shown(&cluster, shard),
            server: cluster.server.clone(),
            name: cluster.name.clone(),
            project: cluster.project.clone(),
            secret: Some(secret),
        });
    }
    if !found.iter().any(|cluster| cluster.server == ClusterRef::IN_CLUSTER_SERVER) {
        found.push(Found {
            shown: json!({"server": ClusterRef::IN_CLUSTER_SERVER, "name": ClusterRef::IN_CLUSTER_NAME,
                "config": {"tlsClientConfig": {"insecure": false}}}),
            server: ClusterRef::IN_CLUSTER_SERVER.to_owned(),
            name: ClusterRef::IN_CLUSTER_NAME.to_owned(),
            project: None,
            secret: None,
        });
    }
    found.sort_by(|one, other| (&one.name, &one.server).cmp(&(&other.name, &other.server)));
    add_info(call, &mut found);
    Ok(found)
}

/// The cluster of an Application without credentials and state; `None` if it is not registered.
pub(super) async fn for_links(call: &Call, app: &Value) -> Result<Option<Value>, Status> {
    let destination = |field: &str| {
        let value = app.pointer(&format!("/spec/destination/{field}")).and_then(Value::as_str);
        value.unwrap_or_default().trim_end_matches('/').to_owned()
    };
    let (server, name) = (destination("server"), destination("name"));
    let is_meant = |cluster: &Found| {
        if server.is_empty() { cluster.name == name } else { cluster.server == server }
    };
    let mut found = all(call).await?.into_iter().filter(is_meant);
    let Some(cluster) = found.next() else { return Ok(None) };
    let mut shown = cluster.shown;
    if let Some(fields) = shown.as_object_mut() {
        for field in ["config", "info", "connectionState", "serverVersion", "clusterResources"] {
            fields.remove(field);
        }
    }
    Ok(Some(shown))
}

/// A cluster without its credentials.
fn shown(cluster: &ClusterSecret, shard: Option<i64>) -> Value {
    let mut tls = json!({"insecure": cluster.tls.insecure});
    if let Some(name) = &cluster.tls.server_name {
        tls["serverName"] = json!(name);
    }
    let mut shown =
        json!({"server": cluster.server, "name": cluster.name, "config": {"tlsClientConfig": tls}});
    let config = &mut shown["config"];
    if let Some(proxy) = &cluster.proxy_url {
        config["proxyUrl"] = json!(without_logins(proxy.expose()));
    }
    if let Some(aws) = &cluster.auth.aws {
        config["awsAuthConfig"] = ["clusterName", "roleARN", "profile"]
            .into_iter()
            .filter_map(|field| Some((field.to_owned(), json!(aws.get(field)?.as_str()?))))
            .collect::<Map<String, Value>>()
            .into();
    }
    if cluster.disable_compression {
        config["disableCompression"] = json!(true);
    }
    if let Some(shard) = shard {
        shown["shard"] = json!(shard);
    }
    if !cluster.namespaces.is_empty() {
        shown["namespaces"] = json!(cluster.namespaces);
        shown["clusterResources"] = json!(cluster.cluster_resources);
    }
    if let Some(project) = &cluster.project {
        shown["project"] = json!(project);
    }
    for (field, map) in [("labels", &cluster.labels), ("annotations", &cluster.annotations)] {
        let own = map.iter().filter(|(key, _)| !registration::is_kept(field, key));
        let own: Map<String, Value> = own.map(|(key, value)| (key.clone(), json!(value))).collect();
        if !own.is_empty() {
            shown[field] = Value::Object(own);
        }
    }
    shown
}

/// The state of the connections, as the engine has them.
fn add_info(call: &Call, found: &mut [Found]) {
    let Ok(leader) = call.leader() else { return };
    let connected = leader.clusters();
    let mut counts: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
    for app in leader.apps() {
        *counts.entry(leader.server_of(&app)).or_default() += 1;
    }
    for cluster in found {
        let (state, facts) = match connected.get(&cluster.server) {
            Some(ClusterNews::Connected(facts)) => (("Successful", String::new()), Some(facts)),
            // The error of a server may quote an address with a login.
            Some(ClusterNews::Away(why)) => (("Failed", without_logins(why).into_owned()), None),
            None => (("Unknown", String::new()), None),
        };
        let state = json!({"status": state.0, "message": state.1});
        let version = facts.map(|facts| facts.version.clone()).unwrap_or_default();
        let mut info = json!({
            "connectionState": state, "serverVersion": version,
            "applicationsCount": counts.get(&cluster.server).copied().unwrap_or_default(),
        });
        if let Some(facts) = facts {
            info["apiVersions"] = json!(facts.api_versions.iter().collect::<Vec<_>>());
            info["cacheInfo"] = json!({"resourcesCount": facts.n_objects, "apisCount": facts.n_kinds});
        }
        cluster.shown["info"] = info;
        cluster.shown["connectionState"] = state;
        cluster.shown["serverVersion"] = json!(version);
    }
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let (server, name) = (call.text("server").to_owned(), call.text("name").to_owned());
    let found = all(&call).await?;
    let id = ClusterId::of(&call);
    let seen = found.into_iter().filter(|cluster| {
        (server.is_empty() || cluster.server == server)
            && (name.is_empty() || cluster.name == name)
            && (id.value.is_empty() || id.is_of(cluster))
            && call.allows("clusters", "get", &cluster.object())
    });
    let items: Vec<Value> = seen.map(|cluster| cluster.shown).collect();
    Ok(Answer::One(json!({"metadata": {}, "items": items})))
}

/// How a request names a cluster: `id.type` and `id.value`.
struct ClusterId<'c> {
    kind: &'c str,
    /// Empty if the request has none.
    value: &'c str,
}

impl<'c> ClusterId<'c> {
    fn of(call: &'c Call) -> Self {
        let text = |path: &str| call.request.pointer(path).and_then(Value::as_str).unwrap_or_default();
        Self { kind: text("/id/type"), value: text("/id/value") }
    }

    fn is_of(&self, cluster: &Found) -> bool {
        let unescaped = || query_pairs(&format!("v={}", self.value)).next().map(|(_, value)| value);
        match self.kind {
            "name" => cluster.name == self.value,
            "name_escaped" => unescaped().is_some_and(|value| cluster.name == value),
            _ => cluster.server == self.value.trim_end_matches('/'),
        }
    }
}

/// The clusters that the request means. A cluster that does not exist and one that the caller may not use look the same.
async fn asked(call: &Call, action: &str) -> Result<Vec<Found>, Status> {
    named(call, action, (call.text("server"), call.text("name"))).await
}

/// The same for a server and a name that count where the request has no id.
async fn named(call: &Call, action: &str, (server, name): (&str, &str)) -> Result<Vec<Found>, Status> {
    let id = ClusterId::of(call);
    let found: Vec<Found> = all(call)
        .await?
        .into_iter()
        .filter(|cluster| match id.value {
            "" if !server.is_empty() => cluster.server == server.trim_end_matches('/'),
            "" => !name.is_empty() && cluster.name == name,
            _ => id.is_of(cluster),
        })
        .collect();
    if found.is_empty() {
        return Err(Status::denied());
    }
    for cluster in &found {
        // Each by its own project: a name may stand for clusters of several.
        call.require("clusters", action, &cluster.object())?;
    }
    Ok(found)
}

pub(super) async fn get(call: Arc<Call>) -> Result<Answer, Status> {
    let found = asked(&call, "get").await?;
    found.into_iter().next().map(|cluster| Answer::One(cluster.shown)).ok_or_else(Status::denied)
}

/// True if a cluster is registered with just these values. With a password it would tell a caller whether a guess is right.
fn is_same(stored: &Map<String, Value>, sent: &Map<String, Value>) -> bool {
    let read = |values: &Map<String, Value>| {
        let mut values = values.clone();
        let config = values.remove("config");
        let config = config.and_then(|config| serde_json::from_str::<Value>(config.as_str()?).ok());
        values.retain(|_, value| *value != "");
        (config, values)
    };
    let (config, values) = read(stored);
    let has_password = config.as_ref().is_some_and(|config| config.get("password").is_some());
    !has_password && (config, values) == read(sent)
}

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = call.request.get("cluster").ok_or_else(|| Status::invalid("cluster is required"))?;
    let text = |field: &str| sent.get(field).and_then(Value::as_str).unwrap_or_default();
    let server = text("server").trim_end_matches('/').to_owned();
    let host = host_of(&server);
    if host.is_empty() {
        return Err(Status::invalid(format!("cluster server {server:?} is not a URL")));
    }
    call.require("clusters", "create", &object(Some(text("project")), &server))?;
    let existing =
        all(&call).await?.into_iter().find(|cluster| cluster.server == server && cluster.secret.is_some());
    if let Some(existing) = &existing {
        let known = existing.secret.as_ref().map(registration::texts).unwrap_or_default();
        if is_same(&known, &values(sent, &server)) {
            return stored(&call, &server).await;
        }
        if call.flag("upsert") != Some(true) {
            return Err(Status::invalid(
                "existing cluster spec is different; use upsert flag to force update",
            ));
        }
        call.require("clusters", "update", &existing.object())?;
    }
    for touched in touched(&all(&call).await?, &server, text("name")) {
        call.require("clusters", "update", &touched)?;
    }
    let name = format!("cluster-{host}-{}", fnv1a(&[&server]));
    let secret = existing.as_ref().and_then(|cluster| cluster.secret.as_ref());
    registration::write(&call, secret, &name, "cluster", values(sent, &server)).await?;
    registration::write_metadata(&call, &server, sent, |_| true).await?;
    stored(&call, &server).await
}

/// The clusters of others that a registration under this address and name would change or replace, as permissions name
/// them: the cluster that plumb runs in has no Secret until somebody registers it, and Applications may name a cluster by
/// its name alone.
fn touched(found: &[Found], server: &str, name: &str) -> Vec<String> {
    let address = |server: &str| {
        let lower = server.to_lowercase();
        let lower = lower.trim_end_matches('/');
        lower.strip_suffix(":443").unwrap_or(lower).to_owned()
    };
    let name = if name.is_empty() { server } else { name };
    let is_home = address(server) == address(ClusterRef::IN_CLUSTER_SERVER);
    let mut touched: Vec<String> = found
        .iter()
        .filter(|known| known.server != server)
        .filter(|known| known.name == name || address(&known.server) == address(server))
        .map(Found::object)
        .collect();
    if is_home || name == ClusterRef::IN_CLUSTER_NAME {
        touched.push(ClusterRef::IN_CLUSTER_SERVER.to_owned());
    }
    touched
}

/// The host of an address, as names of objects may have it.
fn host_of(server: &str) -> String {
    let rest = server.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    let host = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((ip, _)) => ip.replace(':', "-").trim_matches('-').to_owned(),
        None => rest.split(':').next().unwrap_or_default().to_owned(),
    };
    host.to_lowercase()
}

/// The stored values with the chosen ones of the new values.
fn chosen(mut stored: Map<String, Value>, new: &Map<String, Value>, fields: &[String]) -> Map<String, Value> {
    for field in ["name", "namespaces", "config", "shard", "clusterResources", "project"] {
        if fields.iter().any(|chosen| chosen == field) {
            stored.remove(field);
            stored.extend(new.get(field).map(|value| (field.to_owned(), value.clone())));
        }
    }
    stored
}

/// The clusters that are registered for one project, as far as the caller may see them.
pub(super) async fn of_project(call: &Call, project: &str) -> Result<Vec<Value>, Status> {
    let own = all(call).await?.into_iter().filter(|cluster| cluster.project.as_deref() == Some(project));
    let seen = own.filter(|cluster| call.allows("clusters", "get", &cluster.object()));
    Ok(seen.map(|cluster| cluster.shown).collect())
}

/// Compares all Applications of a cluster again. plumb follows its objects, so there is no cache to empty.
pub(super) async fn invalidate_cache(call: Arc<Call>) -> Result<Answer, Status> {
    let found = asked(&call, "update").await?;
    let cluster = found.into_iter().next().ok_or_else(Status::denied)?;
    call.leader()?.refresh_cluster(&cluster.server);
    Ok(Answer::One(cluster.shown))
}

/// Replaces the token of a service account by a new one.
pub(super) async fn rotate_auth(call: Arc<Call>) -> Result<Answer, Status> {
    for cluster in asked(&call, "update").await? {
        let secret = cluster.secret.as_ref();
        let secret =
            secret.ok_or_else(|| Status::invalid("the cluster has no credentials that could be replaced"))?;
        let mut values = registration::texts(secret);
        let config = values.get("config").and_then(Value::as_str).unwrap_or("{}");
        let mut config: Value = serde_json::from_str(config)
            .map_err(|_| Status::precondition("the credentials cannot be read"))?;
        let token = config.get("bearerToken").and_then(Value::as_str).unwrap_or_default().to_owned();
        if token.is_empty() {
            return Err(Status::invalid("only the credentials of a service account can be replaced"));
        }
        let away = || Status::unavailable("the cluster is not connected");
        let (client, runtime) = call.leader()?.client_of_server(&cluster.server).ok_or_else(away)?;
        let (new, old) = rotation::new_token(&client, &runtime, &token).await?;
        config["bearerToken"] = json!(new);
        values.insert("config".to_owned(), json!(config.to_string()));
        registration::write(&call, Some(secret), "", "cluster", values).await?;
        // Only after the new token is stored.
        rotation::remove(&client, &runtime, old).await?;
    }
    Ok(Answer::One(json!({})))
}

pub(super) async fn update(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = call.request.get("cluster").ok_or_else(|| Status::invalid("cluster is required"))?;
    let sent_text = |field: &str| sent.get(field).and_then(Value::as_str).unwrap_or_default();
    let found = named(&call, "update", (sent_text("server"), sent_text("name"))).await?;
    let [cluster] = found.as_slice() else { return Err(Status::invalid("several clusters have this name")) };
    let project = sent.get("project").and_then(Value::as_str);
    // The rights on the stored cluster were checked; those on the new identity are checked here.
    call.require("clusters", "update", &object(project, &cluster.server))?;
    let fields = call.texts("updatedFields");
    let new_name = sent_text("name");
    let is_renamed =
        new_name != cluster.name && (fields.is_empty() || fields.iter().any(|field| field == "name"));
    if is_renamed {
        for touched in touched(&all(&call).await?, &cluster.server, new_name) {
            call.require("clusters", "update", &touched)?;
        }
    }
    let values = if fields.is_empty() {
        values(sent, &cluster.server)
    } else {
        let mut stored = cluster.secret.as_ref().map(registration::texts).unwrap_or_default();
        stored.entry("name").or_insert_with(|| json!(cluster.name));
        stored.insert("server".to_owned(), json!(cluster.server));
        chosen(stored, &values(sent, &cluster.server), &fields)
    };
    // The cluster that plumb runs in gets a Secret with its first change.
    let name = format!("cluster-{}-{}", host_of(&cluster.server), fnv1a(&[&cluster.server]));
    registration::write(&call, cluster.secret.as_ref(), &name, "cluster", values).await?;
    let is_chosen = |field: &str| fields.is_empty() || fields.iter().any(|chosen| chosen == field);
    registration::write_metadata(&call, &cluster.server, sent, is_chosen).await?;
    stored(&call, &cluster.server).await
}

fn values(sent: &Value, server: &str) -> Map<String, Value> {
    let text = |field: &str| sent.get(field).and_then(Value::as_str).unwrap_or_default();
    let namespaces = sent.get("namespaces").and_then(Value::as_array).into_iter().flatten();
    let namespaces: Vec<&str> = namespaces.filter_map(Value::as_str).collect();
    let name = if text("name").is_empty() { server } else { text("name") };
    let mut values = Map::new();
    values.insert("name".to_owned(), json!(name));
    values.insert("server".to_owned(), json!(server));
    values.insert("project".to_owned(), json!(text("project")));
    values.insert("config".to_owned(), json!(sent.get("config").cloned().unwrap_or(json!({})).to_string()));
    if let Some(shard) = sent.get("shard").and_then(Value::as_i64) {
        values.insert("shard".to_owned(), json!(shard.to_string()));
    }
    if !namespaces.is_empty() {
        values.insert("namespaces".to_owned(), json!(namespaces.join(",")));
        let all = sent.get("clusterResources").and_then(Value::as_bool).unwrap_or_default();
        values.insert("clusterResources".to_owned(), json!(all.to_string()));
    }
    values
}

/// The cluster after a write.
async fn stored(call: &Call, server: &str) -> Result<Answer, Status> {
    let found = all(call).await?.into_iter().find(|cluster| cluster.server == server);
    found.map(|cluster| Answer::One(cluster.shown)).ok_or_else(Status::denied)
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    for cluster in asked(&call, "delete").await? {
        let Some(secret) = &cluster.secret else {
            return Err(Status::invalid("the in-cluster cluster cannot be removed"));
        };
        call.shared.backend.delete(secret).await?;
    }
    Ok(Answer::One(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_cluster_again_changes_nothing_unless_it_has_a_password() {
        let values = |config: &str, project: &str| {
            json!({"name": "a", "server": "https://a", "config": config, "project": project})
                .as_object()
                .cloned()
                .unwrap_or_default()
        };
        let plain = values(r#"{"tlsClientConfig": {"insecure": false}}"#, "");
        let mut stored = plain.clone();
        stored.remove("project");
        assert!(is_same(&stored, &plain), "an empty value is not stored");
        assert!(!is_same(&stored, &values("{}", "")));
        assert!(!is_same(&stored, &values(r#"{"tlsClientConfig": {"insecure": false}}"#, "team")));
        let secret = values(r#"{"password": "x"}"#, "");
        assert!(!is_same(&secret, &secret));
    }

    #[test]
    fn a_registration_needs_the_right_to_every_cluster_that_it_touches() {
        let found = |server: &str, name: &str, project: Option<&str>| Found {
            shown: json!({}),
            server: server.to_owned(),
            name: name.to_owned(),
            project: project.map(str::to_owned),
            secret: None,
        };
        let home = ClusterRef::IN_CLUSTER_SERVER;
        let known = [
            found(home, "in-cluster", None),
            found("https://prod", "prod", None),
            found("https://b", "b", Some("b")),
        ];
        let check = |server: &str, name: &str, expected: &[&str]| {
            assert_eq!(touched(&known, server, name), expected, "{server} {name}");
        };
        check("https://new", "new", &[]);
        check(home, "mine", &[home]);
        check("https://KUBERNETES.default.svc:443", "mine", &[home, home]);
        check("https://new", "in-cluster", &[home, home]);
        check("https://new", "prod", &["https://prod"]);
        check("https://new", "b", &["b/https://b"]);
        check("https://prod", "prod", &[]);
        check("https://PROD", "other", &["https://prod"]);
        check("https://new", "", &[]);
    }

    #[test]
    fn a_cluster_has_three_ids() {
        let found = Found {
            shown: json!({}),
            server: "https://far".to_owned(),
            name: "far away".to_owned(),
            project: None,
            secret: None,
        };
        for (kind, value, expected) in [
            ("", "https://far/", true),
            ("server", "https://far", true),
            ("server", "far away", false),
            ("name", "far away", true),
            ("name", "https://far", false),
            ("name_escaped", "far%20away", true),
        ] {
            assert_eq!(ClusterId { kind, value }.is_of(&found), expected, "{kind} {value}");
        }
    }

    #[test]
    fn the_host_is_part_of_a_name() {
        for (server, host) in [
            ("https://A.example.com:6443/x", "a.example.com"),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://[2001:DB8::1]:6443", "2001-db8--1"),
            ("https://[::1]", "1"),
            ("no address", ""),
        ] {
            assert_eq!(host_of(server), host, "{server}");
        }
    }

    #[test]
    fn a_cluster_is_shown_without_credentials() {
        let config = json!({
            "bearerToken": "s3cr3t", "password": "s3cr3t", "username": "u", "disableCompression": true,
            "proxyUrl": "http://u:s3cr3t@proxy:3128", "tlsClientConfig": {"insecure": true},
            "awsAuthConfig": {"clusterName": "c", "roleARN": "r", "profile": 5, "other": "s3cr3t"},
        });
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "stringData": {
            "name": "c", "server": "https://c", "config": config.to_string()}});
        let (data, _) =
            plumb_crd::settings::SecretData::read(&plumb_core::secrets::as_stored(secret)).unwrap();
        let shown = shown(&ClusterSecret::read(&data).unwrap(), Some(2));
        assert!(!shown.to_string().contains("s3cr3t"), "{shown}");
        assert_eq!((&shown["shard"], &shown["config"]["disableCompression"]), (&json!(2), &json!(true)));
        assert_eq!(shown["config"]["awsAuthConfig"], json!({"clusterName": "c", "roleARN": "r"}));
        assert!(shown["config"]["proxyUrl"].as_str().is_some_and(|url| url.ends_with("@proxy:3128")));
    }

    #[test]
    fn only_the_chosen_fields_change() {
        let map = |value: Value| value.as_object().cloned().unwrap_or_default();
        let stored =
            map(json!({"name": "a", "server": "https://a", "config": "{secret}", "namespaces": "x"}));
        let new = map(json!({"name": "b", "server": "https://a", "config": "{}"}));
        let after = chosen(stored, &new, &["name".to_owned(), "namespaces".to_owned()]);
        assert_eq!(Value::Object(after), json!({"name": "b", "server": "https://a", "config": "{secret}"}));
    }
}
