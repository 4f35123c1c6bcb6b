//! Options of mirrors, and the observer of requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::GitLimits;
use crate::url::RepoUrl;

/// Options of mirrors.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// The git program.
    pub program: PathBuf,
    /// Limits of one command.
    pub limits: GitLimits,
    /// Which repositories on the local disk may be read.
    pub local: LocalAccess,
    /// Called for every request to a server.
    pub observer: Option<RequestObserver>,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self {
            program: PathBuf::from("git"),
            limits: GitLimits::default(),
            local: LocalAccess::Anywhere,
            observer: None,
        }
    }
}

/// One request to a server that has ended, for metrics.
#[derive(Clone, Copy, Debug)]
pub struct GitRequest<'a> {
    /// Which repository; its address holds no credentials.
    pub repository: &'a RepoUrl,
    /// `ls-remote` or `fetch`, as Argo CD's metrics call them.
    pub kind: &'static str,
    /// How long it took.
    pub took: Duration,
    /// True if it succeeded.
    pub succeeded: bool,
}

/// Called for every request to a server. It must be fast.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&GitRequest<'_>) + Send + Sync>);

impl RequestObserver {
    /// An observer from a function.
    pub fn new(observer: impl Fn(&GitRequest<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }

    pub(super) fn call(&self, request: &GitRequest<'_>) {
        (self.0)(request);
    }
}

impl std::fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestObserver")
    }
}

/// Which repositories on the local disk (`file://`, absolute paths) may be read. The mirrors themselves never
/// may: their path would bypass credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAccess {
    /// None.
    Denied,
    /// Those below these directories.
    Below(Vec<PathBuf>),
    /// All that the process can read.
    Anywhere,
}

/// Number of requests to servers since the start, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCounts {
    /// Requests for refs.
    pub ls_remote: u64,
    /// Requests for objects.
    pub fetch: u64,
}
