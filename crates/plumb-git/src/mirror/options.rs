//! How mirrors are kept, and who is told of requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::command::GitLimits;
use crate::url::RepoUrl;

/// How mirrors are kept.
#[derive(Clone, Debug)]
pub struct GitOptions {
    /// The git program.
    pub program: PathBuf,
    /// What one command may cost.
    pub limits: GitLimits,
    /// May repositories be read from this machine's disk?
    pub local: LocalAccess,
    /// Is told of every request to a server.
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
    /// Did it end well?
    pub succeeded: bool,
}

/// Is told of every request to a server. It must be quick.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(&GitRequest<'_>) + Send + Sync>);

impl RequestObserver {
    /// An observer from a function.
    pub fn new(tell: impl Fn(&GitRequest<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, request: &GitRequest<'_>) {
        (self.0)(request);
    }
}

impl std::fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestObserver")
    }
}

/// Which repositories of this machine's disk (`file://`, absolute paths) may be read. The mirrors themselves
/// never may: their address would be a way around credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAccess {
    /// None.
    Denied,
    /// Those below these directories.
    Below(Vec<PathBuf>),
    /// All that the process can read.
    Anywhere,
}

/// How often servers were asked since the start, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCounts {
    /// For their refs.
    pub ls_remote: u64,
    /// For objects.
    pub fetch: u64,
}
