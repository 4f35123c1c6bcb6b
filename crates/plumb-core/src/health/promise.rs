//! Operators that promise a Secret: is it there, and is it theirs? Only the Secret's metadata is ever asked for.

use serde_json::Value;

use super::read::{find, find_text};
use super::{Health, HealthStatus};
use crate::object::{Manifest, ObjectKey};

/// The Secret that an object promises to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Which Secret.
    pub secret: ObjectKey,
    /// Whose it must be.
    pub ownership: Ownership,
}

/// Whose a promised Secret must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The object is among its owners.
    Owned {
        /// Kind of the owner.
        kind: String,
        /// Name of the owner.
        name: String,
        /// Uid of the owner, if it is known.
        uid: Option<String>,
    },
    /// It carries this annotation.
    Annotated {
        /// Which one.
        key: &'static str,
        /// With which text.
        text: String,
    },
    /// It may belong to someone else: the object only adds to it, or lets it go.
    Shared,
}

/// Is a promise kept?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The Secret is there and theirs.
    Yes,
    /// There is no such Secret.
    Missing,
    /// It is there, but somebody else's.
    NotTheirs {
        /// Whose, if it says so.
        owner: Option<String>,
    },
}

/// The Secret that this object promises, for `SealedSecret`, `ExternalSecret`, `OnePasswordItem` and `Certificate`.
/// `None` for other kinds (a `SecretStore` promises nothing) and where it is told to make none.
pub fn promised_secret(object: &Manifest) -> Option<Promise> {
    let value = object.value();
    let own_name = object.name()?;
    let owned = || Ownership::Owned {
        kind: object.kind().to_owned(),
        name: own_name.to_owned(),
        uid: object.uid().map(str::to_owned),
    };
    let (name, ownership) = match (object.group(), object.kind()) {
        ("bitnami.com", "SealedSecret") => {
            let annotations = find(value, "spec.template.metadata.annotations");
            let says =
                |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_str) == Some("true");
            // Both ask the controller not to make the Secret its own.
            let is_shared = says("sealedsecrets.bitnami.com/skip-set-owner-references")
                || says("sealedsecrets.bitnami.com/patch");
            let name = find_text(value, "spec.template.metadata.name").unwrap_or(own_name);
            (name, if is_shared { Ownership::Shared } else { owned() })
        }
        ("external-secrets.io", "ExternalSecret") => {
            let name = find_text(value, "spec.target.name").unwrap_or(own_name);
            match find_text(value, "spec.target.creationPolicy").unwrap_or("Owner") {
                "None" => return None,
                "Owner" => (name, owned()),
                _ => (name, Ownership::Shared),
            }
        }
        ("kubernetes-client.io", "ExternalSecret") | ("onepassword.com", "OnePasswordItem") => {
            (own_name, owned())
        }
        ("cert-manager.io", "Certificate") => {
            let key = "cert-manager.io/certificate-name";
            (find_text(value, "spec.secretName")?, Ownership::Annotated { key, text: own_name.to_owned() })
        }
        _ => return None,
    };
    let secret = ObjectKey::new("", "Secret", object.namespace().map(str::to_owned), name);
    Some(Promise { secret, ownership })
}

impl Promise {
    /// Is it kept, given the `metadata` of the Secret, or nothing if there is none?
    pub fn kept(&self, metadata: Option<&Value>) -> Kept {
        let Some(metadata) = metadata else { return Kept::Missing };
        let owners = metadata.get("ownerReferences").and_then(Value::as_array);
        let owner = || {
            let first = owners.and_then(|owners| owners.first())?;
            Some(format!("{} {}", find_text(first, "kind")?, find_text(first, "name")?))
        };
        let is_theirs = match &self.ownership {
            Ownership::Shared => true,
            Ownership::Owned { kind, name, uid } => owners.into_iter().flatten().any(|owner| {
                let is = |field: &str, text: &str| find_text(owner, field) == Some(text);
                match uid {
                    Some(uid) if find(owner, "uid").is_some() => is("uid", uid),
                    Some(_) | None => is("kind", kind) && is("name", name),
                }
            }),
            Ownership::Annotated { key, text } => {
                metadata
                    .get("annotations")
                    .and_then(|annotations| annotations.get(*key))
                    .and_then(Value::as_str)
                    == Some(text)
            }
        };
        if is_theirs { Kept::Yes } else { Kept::NotTheirs { owner: owner() } }
    }
}

/// The judgement on an object that promises a Secret, with the Secret taken into account. An object that says that
/// all is well while its Secret is gone or somebody else's is not well.
pub fn with_promise(health: Health, promise: &Promise, kept: &Kept) -> Health {
    if health.status != HealthStatus::Healthy {
        return health;
    }
    let secret = &promise.secret;
    match kept {
        Kept::Yes => health,
        Kept::Missing => Health::degraded(format!("it says that it is ready, but {secret} does not exist")),
        Kept::NotTheirs { owner: Some(owner) } => Health::degraded(format!("{secret} belongs to {owner}")),
        Kept::NotTheirs { owner: None } => {
            Health::degraded(format!("{secret} exists, but it did not make it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check(api_version: &str, kind: &str, spec: &Value, metadata: &Value, expected: &Expect) {
        let object = Manifest::new(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "db", "namespace": "shop", "uid": "u1"}, "spec": spec,
        }))
        .expect("an object");
        let told = match promised_secret(&object) {
            None => "no promise".to_owned(),
            Some(promise) => {
                let kept = promise.kept(Some(metadata).filter(|metadata| !metadata.is_null()));
                let health = with_promise(Health::healthy(""), &promise, &kept);
                format!("{}: {health}", promise.secret)
            }
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn a_secret_that_is_there_and_theirs_keeps_the_promise() {
        let owned =
            |kind: &str, uid: &str| json!({"ownerReferences": [{"kind": kind, "name": "db", "uid": uid}]});
        check(
            "bitnami.com/v1alpha1",
            "SealedSecret",
            &json!({}),
            &owned("SealedSecret", "u1"),
            &expect!["Secret shop/db: Healthy"],
        );
        check(
            "bitnami.com/v1alpha1",
            "SealedSecret",
            &json!({}),
            &owned("SealedSecret", "u2"),
            &expect!["Secret shop/db: Degraded: Secret shop/db belongs to SealedSecret db"],
        );
        check(
            "bitnami.com/v1alpha1",
            "SealedSecret",
            &json!({}),
            &Value::Null,
            &expect!["Secret shop/db: Degraded: it says that it is ready, but Secret shop/db does not exist"],
        );
        check(
            "external-secrets.io/v1",
            "ExternalSecret",
            &json!({"target": {"name": "login"}}),
            &json!({}),
            &expect!["Secret shop/login: Degraded: Secret shop/login exists, but it did not make it"],
        );
        let merged = json!({"target": {"creationPolicy": "Merge"}});
        check(
            "external-secrets.io/v1",
            "ExternalSecret",
            &merged,
            &json!({}),
            &expect!["Secret shop/db: Healthy"],
        );
        let silent = json!({"target": {"creationPolicy": "None"}});
        check("external-secrets.io/v1", "ExternalSecret", &silent, &Value::Null, &expect!["no promise"]);
        check("external-secrets.io/v1", "SecretStore", &json!({}), &Value::Null, &expect!["no promise"]);
        check(
            "cert-manager.io/v1",
            "Certificate",
            &json!({"secretName": "tls"}),
            &json!({"annotations": {"cert-manager.io/certificate-name": "db"}}),
            &expect!["Secret shop/tls: Healthy"],
        );
    }

    #[test]
    fn an_object_that_is_not_well_says_so_itself() {
        let promise =
            Promise { secret: ObjectKey::new("", "Secret", None, "x"), ownership: Ownership::Shared };
        let health = Health::degraded("no key could decrypt it");
        assert_eq!(with_promise(health.clone(), &promise, &Kept::Missing), health);
    }
}
