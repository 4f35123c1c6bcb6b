//! One kind in one version, and the URL paths of its objects.

use plumb_core::object::GroupVersionKind;

use crate::error::ApiError;

/// A kind in one version, with what its URL paths need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Plural name in URL paths.
    pub plural: String,
    /// True if its objects are namespaced.
    pub namespaced: bool,
}

impl Resource {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        self.gvk.api_version()
    }

    /// Checks that an object of this namespace can be one of this kind. Without this check the path of a cluster-scoped kind
    /// would ignore the namespace.
    pub(crate) fn check_scope(&self, namespace: Option<&str>, name: &str) -> Result<(), ApiError> {
        match namespace {
            Some(namespace) if !self.namespaced => {
                Err(ApiError::OtherScope { what: format!("{} {namespace}/{name}", self.gvk.kind) })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The URL path of this kind's objects, in one namespace or in all.
    pub(crate) fn collection_path(&self, namespace: Option<&str>) -> Result<String, ApiError> {
        let mut path = if self.gvk.group.is_empty() {
            format!("/api/{}", segment(&self.gvk.version)?)
        } else {
            format!("/apis/{}/{}", segment(&self.gvk.group)?, segment(&self.gvk.version)?)
        };
        if let (true, Some(namespace)) = (self.namespaced, namespace) {
            path.push_str("/namespaces/");
            path.push_str(&segment(namespace)?);
        }
        path.push('/');
        path.push_str(&segment(&self.plural)?);
        Ok(path)
    }

    /// The URL path of one object, or of one of its subresources.
    pub(crate) fn object_path(
        &self,
        namespace: Option<&str>,
        name: &str,
        subresource: Option<&str>,
    ) -> Result<String, ApiError> {
        if self.namespaced && namespace.is_none() {
            return Err(ApiError::Malformed {
                what: format!("{} {name}", self.gvk.kind),
                why: "objects of this kind need a namespace and none is given",
            });
        }
        let mut path = self.collection_path(namespace)?;
        path.push('/');
        path.push_str(&segment(name)?);
        if let Some(subresource) = subresource {
            path.push('/');
            path.push_str(&segment(subresource)?);
        }
        Ok(path)
    }
}

/// One segment of a URL path. Names come from Git and may contain anything: a `..` or a `/` must never lead
/// to another object than the one that was checked.
fn segment(text: &str) -> Result<String, ApiError> {
    if text.is_empty() || text == "." || text == ".." {
        return Err(ApiError::Malformed {
            what: format!("the name `{text}`"),
            why: "it is not a valid name",
        });
    }
    Ok(percent_encode(text))
}

/// Encodes all characters except those that RFC 3986 calls unreserved, and `:`, which is common in RBAC
/// names.
pub(crate) fn percent_encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                encoded.push(char::from(byte));
            }
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource {
        Resource {
            gvk: GroupVersionKind::from_api_version("v1", "Pod"),
            plural: "pods".to_owned(),
            namespaced: true,
        }
    }

    #[test]
    fn an_object_of_a_namespace_is_not_sent_as_one_of_the_cluster() {
        let nodes = Resource {
            gvk: GroupVersionKind::from_api_version("v1", "Node"),
            plural: "nodes".to_owned(),
            namespaced: false,
        };
        assert!(pods().check_scope(Some("a"), "x").is_ok() && nodes.check_scope(None, "x").is_ok());
        assert_eq!(
            nodes.check_scope(Some("a"), "x").unwrap_err().to_string(),
            "cannot send Node a/x: the kind is cluster-scoped now, and the object was planned for a namespace"
        );
    }

    #[test]
    fn a_hostile_name_stays_one_step_of_the_path() {
        let path = pods().object_path(Some("a"), "../../secrets/x?y#z%2f", None).unwrap();
        assert_eq!(path, "/api/v1/namespaces/a/pods/..%2F..%2Fsecrets%2Fx%3Fy%23z%252f");
        assert!(pods().object_path(Some(".."), "x", None).is_err());
        assert!(pods().object_path(Some("a"), "", None).is_err());
        assert!(pods().object_path(None, "x", None).is_err());
    }
}
