//! Clusters, repositories and templates of credentials, in the form of the Secrets that register them. The server shows
//! no credentials, so these Secrets have none; they can be written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use plumb_core::object::json_patch;
use plumb_crd::settings::{SECRET_TYPE, name_hash};
use serde_json::{Map, Value, json};

use super::answer::{Answer, Failure};
use super::asked::Asked;
use super::discovery::text;
use super::state::Door;
use crate::remote::query;

/// What a Secret registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Cluster,
    Repository,
    Credentials,
}

const SORTS: [Sort; 3] = [Sort::Cluster, Sort::Repository, Sort::Credentials];

impl Sort {
    fn label(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Repository => "repository",
            Self::Credentials => "repo-creds",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Cluster => "/api/v1/clusters",
            Self::Repository => "/api/v1/repositories",
            Self::Credentials => "/api/v1/repocreds",
        }
    }

    /// The field of the API that holds the address.
    fn address(self) -> &'static str {
        match self {
            Self::Cluster => "server",
            Self::Repository => "repo",
            Self::Credentials => "url",
        }
    }

    /// The name of the Secret, as Argo CD and plumb make it.
    fn secret_name(self, item: &Value) -> String {
        let address = text(item, self.address());
        match self {
            Self::Cluster => {
                let host = address.split_once("://").map_or(address, |(_, rest)| rest);
                let host = host.split(['/', ':']).next().unwrap_or_default().to_ascii_lowercase();
                format!("cluster-{host}-{}", name_hash(&[address]))
            }
            Self::Repository => format!("repo-{}", name_hash(&[address, text(item, "project")])),
            Self::Credentials => format!("creds-{}", name_hash(&[address])),
        }
    }
}

impl Door {
    pub(super) async fn secret(&self, asked: &Asked) -> Result<Answer, Failure> {
        if asked.is_watch() {
            return Err(Failure::new(404, "the server streams no registrations: leave out --watch"));
        }
        match (&asked.method, asked.name.as_str()) {
            (&Method::GET, "") => {
                let sort = SORTS
                    .into_iter()
                    .find(|sort| asked.query("labelSelector") == format!("{SECRET_TYPE}={}", sort.label()));
                let sort = sort.ok_or_else(|| Failure::unknown("Secrets"))?;
                let items = self.registered(sort).await?;
                Ok(Answer::Json(
                    json!({"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": items}),
                ))
            }
            (&Method::GET, name) => match self.find_registration(name).await? {
                Some((_, secret)) => Ok(Answer::Json(secret)),
                None => Err(Failure::missing(name)),
            },
            (&Method::POST, _) => self.register(&asked.body, false).await,
            (&Method::PATCH, name) => {
                let found = self.find_registration(name).await?;
                let (_, mut secret) = found.ok_or_else(|| Failure::missing(name))?;
                json_patch(&mut secret, &asked.body).map_err(|why| Failure::new(422, why))?;
                self.register(&secret, true).await
            }
            (&Method::DELETE, name) => {
                let found = self.find_registration(name).await?;
                let (sort, secret) = found.ok_or_else(|| Failure::missing(name))?;
                let data = decoded(&secret);
                let address = if sort == Sort::Cluster { "server" } else { "url" };
                let address = data.get(address).and_then(Value::as_str).unwrap_or_default();
                let project = data.get("project").and_then(Value::as_str).unwrap_or_default();
                let path = format!("{}/{}", sort.path(), query::part(address));
                self.api()
                    .patient(Method::DELETE, &query::with(&path, &[("appProject", project)]), None)
                    .await?;
                Ok(Answer::Json(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})))
            }
            _ => Err(Failure::new(405, "the server does not offer this")),
        }
    }

    async fn registered(&self, sort: Sort) -> Result<Vec<Value>, Failure> {
        let found = self.api().get_raw(sort.path()).await?;
        let items = found["items"].as_array().cloned().unwrap_or_default();
        Ok(items.iter().map(|item| secret(sort, item, self.home())).collect())
    }

    async fn find_registration(&self, name: &str) -> Result<Option<(Sort, Value)>, Failure> {
        for sort in SORTS {
            let found = self.registered(sort).await?;
            let found = found.into_iter().find(|secret| secret["metadata"]["name"] == name);
            if let Some(found) = found {
                return Ok(Some((sort, found)));
            }
        }
        Ok(None)
    }

    async fn register(&self, secret: &Value, upsert: bool) -> Result<Answer, Failure> {
        let label = secret["metadata"]["labels"].get(SECRET_TYPE).and_then(Value::as_str).unwrap_or_default();
        let sort = SORTS.into_iter().find(|sort| sort.label() == label);
        let sort = sort.ok_or_else(|| Failure::new(403, "the server writes no other Secrets"))?;
        let item = item(sort, secret)?;
        // Repositories are tested by the server when an app needs them, as with credentials of the cluster.
        let pairs = [("upsert", if upsert { "true" } else { "false" }), ("credsOnly", "true")];
        let pairs = if sort == Sort::Repository { pairs.as_slice() } else { &pairs[..1] };
        self.api().patient(Method::POST, &query::with(sort.path(), pairs), Some(&item)).await?;
        Ok(Answer::Json(self::secret(sort, &item, self.home())))
    }
}

/// True for Secrets that register something. Other Secrets may be objects of an Application.
pub(super) fn is_registration(asked: &Asked) -> bool {
    let is_named = ["cluster-", "repo-", "creds-"].iter().any(|start| asked.name.starts_with(start));
    is_named || asked.method == Method::POST || asked.query("labelSelector").starts_with(SECRET_TYPE)
}

/// The fields that are true or false.
const SWITCHES: [&str; 8] = [
    "insecure",
    "insecureIgnoreHostKey",
    "enableLfs",
    "enableOCI",
    "insecureOCIForceHttp",
    "forceHttpBasicAuth",
    "useAzureWorkloadIdentity",
    "clusterResources",
];
/// The fields of a cluster that its Secret does not hold as plain text.
const CLUSTER_FIELDS: [&str; 4] = ["config", "namespaces", "clusterResources", "shard"];

/// A registration as a Secret.
fn secret(sort: Sort, item: &Value, namespace: &str) -> Value {
    let mut data = Map::new();
    let mut set = |name: &str, text: &str| {
        if !text.is_empty() {
            data.insert(name.to_owned(), json!(STANDARD.encode(text)));
        }
    };
    for (field, value) in item.as_object().into_iter().flatten() {
        let key = if sort == Sort::Repository && field == "repo" { "url" } else { field.as_str() };
        match value {
            Value::String(text) if field != "serverVersion" => set(key, text),
            Value::Bool(on) if *on || CLUSTER_FIELDS.contains(&key) => set(key, &on.to_string()),
            Value::Array(texts) if key == "namespaces" => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                set(key, &texts.join(","));
            }
            Value::Object(_) if key == "config" => set(key, &value.to_string()),
            _ => {}
        }
    }
    let mut labels = item["labels"].as_object().cloned().unwrap_or_default();
    labels.insert(SECRET_TYPE.to_owned(), json!(sort.label()));
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": {
            "name": sort.secret_name(item), "namespace": namespace, "labels": labels,
            "annotations": item.get("annotations").cloned().unwrap_or_else(|| json!({})),
            // A deletion names the object that was seen. The API deletes by address.
            "uid": sort.secret_name(item), "resourceVersion": "0",
        },
    });
    if let Some(state) = item.pointer("/info/connectionState").or_else(|| item.get("connectionState")) {
        secret["connectionState"] = state.clone();
        secret["serverVersion"] = item.get("serverVersion").cloned().unwrap_or_default();
    }
    secret
}

fn decoded(secret: &Value) -> Map<String, Value> {
    let data = secret["data"].as_object().into_iter().flatten();
    let mut texts: Map<String, Value> = data
        .filter_map(|(key, value)| {
            let bytes = STANDARD.decode(value.as_str()?).ok()?;
            Some((key.clone(), json!(String::from_utf8(bytes).ok()?)))
        })
        .collect();
    let plain = secret["stringData"].as_object().into_iter().flatten();
    texts.extend(plain.map(|(key, value)| (key.clone(), value.clone())));
    texts
}

/// A Secret as a registration.
fn item(sort: Sort, secret: &Value) -> Result<Value, Failure> {
    let mut item = Value::Object(Map::new());
    for (key, value) in decoded(secret) {
        let text = value.as_str().unwrap_or_default();
        let field = if sort == Sort::Repository && key == "url" { "repo" } else { key.as_str() };
        item[field] = match (sort, field) {
            (Sort::Cluster, "config") => serde_json::from_str(text)
                .map_err(|_| Failure::new(422, "the credentials of the cluster are not JSON"))?,
            (Sort::Cluster, "namespaces") => text.split(',').map(|name| json!(name)).collect(),
            (_, field) if SWITCHES.contains(&field) => json!(text == "true"),
            (_, field) if field.ends_with("ID") => text.parse::<i64>().map_or(value, |number| json!(number)),
            _ => value,
        };
    }
    if sort == Sort::Cluster {
        for field in ["labels", "annotations"] {
            let own = secret["metadata"][field].as_object().into_iter().flatten();
            let own: Map<String, Value> = own
                .filter(|(key, _)| *key != SECRET_TYPE && *key != "managed-by")
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            if !own.is_empty() {
                item[field] = Value::Object(own);
            }
        }
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sort: Sort, registered: &Value) {
        let secret = secret(sort, registered, "argocd");
        assert_eq!(item(sort, &secret).unwrap(), *registered);
    }

    #[test]
    fn a_registration_is_a_secret_and_back() {
        check(
            Sort::Cluster,
            &json!({"server": "https://east:6443", "name": "east", "namespaces": ["a", "b"],
                "clusterResources": false, "config": {"tlsClientConfig": {"insecure": true}},
                "labels": {"tier": "one"}, "project": "p"}),
        );
        check(Sort::Repository, &json!({"repo": "https://r/x.git", "type": "git", "enableLfs": true}));
        check(Sort::Credentials, &json!({"url": "https://r/", "username": "u", "password": "p"}));
    }
}
