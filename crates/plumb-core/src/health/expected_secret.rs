//! Secrets that operators must create: does the Secret exist, and does it belong to the object? Only its metadata is read.

use serde_json::Value;

use super::read::{find, find_text};
use super::{Health, HealthStatus};
use crate::object::{Manifest, ObjectKey};

/// On a Secret: the Sealed Secrets controller adds its values, and does not own it.
const PATCHED: &str = "sealedsecrets.bitnami.com/patch";

/// The Secret that an object must create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedSecret {
    /// Which Secret.
    pub secret: ObjectKey,
    /// Its required owner.
    pub ownership: SecretOwner,
}

/// The required owner of an expected Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretOwner {
    /// The object is among its owners.
    Owned {
        /// Kind of the owner.
        kind: String,
        /// Name of the owner.
        name: String,
        /// Uid of the owner, if it is known.
        uid: Option<String>,
        /// Is a Secret without any owner its own, too, and one that says so?
        or_patched: bool,
    },
    /// It carries this annotation.
    Annotated {
        /// Which one.
        key: &'static str,
        /// With which text.
        text: String,
    },
    /// Any owner: the object only merges into it, or orphans it.
    Shared,
}

/// The state of an expected Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretState {
    /// It exists and has the required owner.
    Present,
    /// It does not exist.
    Missing,
    /// It exists and has another owner.
    OtherOwner {
        /// The owner, if it has one.
        owner: Option<String>,
    },
}

/// The Secret that this object must create, for `SealedSecret`, `ExternalSecret`, `OnePasswordItem` and `Certificate`.
/// `None` for other kinds (a `SecretStore` creates none) and where the spec says not to create one.
pub fn expected_secret(object: &Manifest) -> Option<ExpectedSecret> {
    let value = object.value();
    let own_name = object.name()?;
    let owned = || SecretOwner::Owned {
        kind: object.kind().to_owned(),
        name: own_name.to_owned(),
        uid: object.uid().map(str::to_owned),
        or_patched: object.kind() == "SealedSecret",
    };
    let (name, ownership) = match (object.group(), object.kind()) {
        ("bitnami.com", "SealedSecret") => {
            let annotations = find(value, "spec.template.metadata.annotations");
            let says =
                |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_str) == Some("true");
            let is_shared = says("sealedsecrets.bitnami.com/skip-set-owner-references") || says(PATCHED);
            // The controller ignores the name in the template.
            (own_name, if is_shared { SecretOwner::Shared } else { owned() })
        }
        ("external-secrets.io", "ExternalSecret") => {
            let name = find_text(value, "spec.target.name").unwrap_or(own_name);
            match find_text(value, "spec.target.creationPolicy").unwrap_or("Owner") {
                "None" => return None,
                "Owner" => (name, owned()),
                _ => (name, SecretOwner::Shared),
            }
        }
        ("kubernetes-client.io", "ExternalSecret") | ("onepassword.com", "OnePasswordItem") => {
            (own_name, owned())
        }
        ("cert-manager.io", "Certificate") => {
            let key = "cert-manager.io/certificate-name";
            (find_text(value, "spec.secretName")?, SecretOwner::Annotated { key, text: own_name.to_owned() })
        }
        _ => return None,
    };
    let secret = ObjectKey::new("", "Secret", object.namespace().map(str::to_owned), name);
    Some(ExpectedSecret { secret, ownership })
}

impl ExpectedSecret {
    /// Its state, given the `metadata` of the Secret, or `None` if it does not exist.
    pub fn state(&self, metadata: Option<&Value>) -> SecretState {
        let Some(metadata) = metadata else { return SecretState::Missing };
        let owners = metadata.get("ownerReferences").and_then(Value::as_array);
        let owner = || {
            let first = owners.and_then(|owners| owners.first())?;
            Some(format!("{} {}", find_text(first, "kind")?, find_text(first, "name")?))
        };
        let is_theirs = match &self.ownership {
            SecretOwner::Shared => true,
            SecretOwner::Owned { kind, name, uid, or_patched } => {
                let is_owned = owners.into_iter().flatten().any(|owner| {
                    let is = |field: &str, text: &str| find_text(owner, field) == Some(text);
                    match uid {
                        Some(uid) if find(owner, "uid").is_some() => is("uid", uid),
                        Some(_) | None => is("kind", kind) && is("name", name),
                    }
                });
                // The controller writes into a Secret that asks for it and leaves its owners alone. It refuses other
                // Secrets, and then it does not report that it is done.
                let is_patched = || {
                    let says = metadata.get("annotations").and_then(|annotations| annotations.get(PATCHED));
                    owners.is_none_or(Vec::is_empty) || says.and_then(Value::as_str) == Some("true")
                };
                is_owned || *or_patched && is_patched()
            }
            SecretOwner::Annotated { key, text } => {
                metadata
                    .get("annotations")
                    .and_then(|annotations| annotations.get(*key))
                    .and_then(Value::as_str)
                    == Some(text)
            }
        };
        if is_theirs { SecretState::Present } else { SecretState::OtherOwner { owner: owner() } }
    }
}

/// The health of an object that must create a Secret, with the Secret taken into account. An object that reports ready
/// is `Degraded` while its Secret is missing or has another owner.
pub fn with_secret(health: Health, expected: &ExpectedSecret, state: &SecretState) -> Health {
    if health.status != HealthStatus::Healthy {
        return health;
    }
    let secret = &expected.secret;
    match state {
        SecretState::Present => health,
        SecretState::Missing => Health::degraded(format!("reports ready, but {secret} does not exist")),
        SecretState::OtherOwner { owner: Some(owner) } => {
            Health::degraded(format!("{secret} belongs to {owner}"))
        }
        SecretState::OtherOwner { owner: None } => {
            Health::degraded(format!("{secret} exists, but this object did not create it"))
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
        let shown = match expected_secret(&object) {
            None => "no secret expected".to_owned(),
            Some(expected) => {
                let kept = expected.state(Some(metadata).filter(|metadata| !metadata.is_null()));
                let health = with_secret(Health::healthy(""), &expected, &kept);
                format!("{}: {health}", expected.secret)
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_secret_that_exists_and_has_its_owner_is_healthy() {
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
            &expect!["Secret shop/db: Degraded: reports ready, but Secret shop/db does not exist"],
        );
        check(
            "external-secrets.io/v1",
            "ExternalSecret",
            &json!({"target": {"name": "login"}}),
            &json!({}),
            &expect![
                "Secret shop/login: Degraded: Secret shop/login exists, but this object did not create it"
            ],
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
        check(
            "external-secrets.io/v1",
            "ExternalSecret",
            &silent,
            &Value::Null,
            &expect!["no secret expected"],
        );
        check(
            "external-secrets.io/v1",
            "SecretStore",
            &json!({}),
            &Value::Null,
            &expect!["no secret expected"],
        );
        check(
            "cert-manager.io/v1",
            "Certificate",
            &json!({"secretName": "tls"}),
            &json!({"annotations": {"cert-manager.io/certificate-name": "db"}}),
            &expect!["Secret shop/tls: Healthy"],
        );
    }

    #[test]
    fn a_sealed_secret_makes_the_secret_of_its_own_name() {
        let other = json!({"template": {"metadata": {"name": "other"}}});
        let of_another = json!({"kind": "Deployment", "name": "web"});
        for (metadata, expected) in [
            (
                Value::Null,
                expect!["Secret shop/db: Degraded: reports ready, but Secret shop/db does not exist"],
            ),
            // It reports that it is done, so it wrote into the Secret.
            (json!({}), expect!["Secret shop/db: Healthy"]),
            (
                json!({"annotations": {"sealedsecrets.bitnami.com/patch": "true"}, "ownerReferences": [of_another]}),
                expect!["Secret shop/db: Healthy"],
            ),
            (
                json!({"ownerReferences": [of_another]}),
                expect!["Secret shop/db: Degraded: Secret shop/db belongs to Deployment web"],
            ),
        ] {
            check("bitnami.com/v1alpha1", "SealedSecret", &other, &metadata, &expected);
        }
    }

    #[test]
    fn an_unhealthy_object_keeps_its_own_message() {
        let expected = ExpectedSecret {
            secret: ObjectKey::new("", "Secret", None, "x"),
            ownership: SecretOwner::Shared,
        };
        let health = Health::degraded("no key could decrypt it");
        assert_eq!(with_secret(health.clone(), &expected, &SecretState::Missing), health);
    }
}
