//! Requests for metrics: verb, resource and result. No names, no bodies.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use http::Method;

use crate::limit::{Place, Sort};

/// One request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRecord<'a> {
    /// `Get`, `List`, `Create`, `Update`, `Patch`, `Delete`, as client-go's metrics call them.
    pub verb: &'static str,
    /// The plural name of the resource; empty for paths without one, such as discovery.
    pub resource: &'a str,
    /// The namespace; empty for requests without one.
    pub namespace: &'a str,
    /// The answer's code; `None` if there was no answer.
    pub code: Option<u16>,
    /// True for a dry run.
    pub dry_run: bool,
    /// From the first byte sent to the last one read.
    pub took: Duration,
}

/// Called for every request that has ended. It must be fast.
pub type RequestObserver = Arc<dyn Fn(&RequestRecord<'_>) + Send + Sync>;

impl<'a> RequestRecord<'a> {
    pub(crate) fn of(method: &Method, path: &'a str, query: &str, code: Option<u16>, took: Duration) -> Self {
        let place = RequestPath::of(path);
        let verb = match (method.as_str(), place.is_named) {
            ("GET", true) => "Get",
            ("GET", false) => "List",
            ("POST", _) => "Create",
            ("PUT", _) => "Update",
            ("PATCH", _) => "Patch",
            ("DELETE", _) => "Delete",
            _ => "Unknown",
        };
        Self {
            verb,
            resource: place.resource,
            namespace: place.namespace,
            code,
            dry_run: query.contains("dryRun=All"),
            took,
        }
    }

    /// Where a request goes, if it can be told from others that it is slow. A list may be long, and discovery is of no
    /// namespace.
    pub(crate) fn place(method: &Method, path: &str) -> Option<Place> {
        let place = RequestPath::of(path);
        let is_read = method == Method::GET;
        if place.resource.is_empty() || (is_read && !place.is_named) {
            return None;
        }
        let (resource, namespace) = (place.resource.to_owned(), place.namespace.to_owned());
        Some(Place { is_write: !is_read, resource, namespace })
    }

    /// Requests of the same sort are about the same work. `None` if the work is not known, as for a list.
    pub(crate) fn sort(&self) -> Option<Sort> {
        if self.verb == "List" || self.resource.is_empty() {
            return None;
        }
        Some(Sort(BuildHasherDefault::<DefaultHasher>::default().hash_one((
            self.verb,
            self.resource,
            self.dry_run,
        ))))
    }
}

/// The resource, namespace and name in a URL path of the API server.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestPath<'a> {
    resource: &'a str,
    namespace: &'a str,
    is_named: bool,
}

impl<'a> RequestPath<'a> {
    fn of(path: &'a str) -> Self {
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let rest = match steps.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        match rest {
            ["namespaces", namespace, resource, named @ ..] => {
                Self { resource, namespace, is_named: !named.is_empty() }
            }
            [resource, named @ ..] => Self { resource, namespace: "", is_named: !named.is_empty() },
            // Discovery and schema documents.
            [] => Self { is_named: true, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, path: &str, expected: (&str, &str, &str)) {
        let record = RequestRecord::of(method, path, "", Some(200), Duration::ZERO);
        assert_eq!((record.verb, record.resource, record.namespace), expected, "{path}");
    }

    #[test]
    fn a_path_says_what_a_request_is_about() {
        check(&Method::GET, "/api/v1/namespaces/web/pods", ("List", "pods", "web"));
        check(&Method::GET, "/api/v1/namespaces/web/pods/a", ("Get", "pods", "web"));
        check(&Method::GET, "/api/v1/namespaces/web", ("Get", "namespaces", ""));
        check(&Method::GET, "/api/v1/pods", ("List", "pods", ""));
        check(
            &Method::PATCH,
            "/apis/apps/v1/namespaces/web/deployments/a/status",
            ("Patch", "deployments", "web"),
        );
        check(
            &Method::POST,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            ("Create", "clusterroles", ""),
        );
        check(&Method::GET, "/openapi/v3", ("Get", "", ""));
        check(&Method::GET, "/", ("Get", "", ""));
    }

    #[test]
    fn a_dry_run_is_told_from_a_write() {
        let record =
            RequestRecord::of(&Method::PATCH, "/api/v1/pods", "force=true&dryRun=All", None, Duration::ZERO);
        assert!(record.dry_run);
    }
}
