//! Git for plumb: one bare mirror per repository, fetched once however many apps use it.
//!
//! The git program does what needs the network. Reading is done in process from the object database: there is
//! no work tree, no lock and no symbolic link that the operating system would follow. URLs, revisions and
//! everything inside a repository are hostile input.
//!
//! Every error has `retry()`, which classifies it as transient or permanent, and `category()` for metrics.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

mod retry;
mod secret;
mod url;
mod access;
mod command;
mod guard;
mod advice;
mod refs;
mod objects;
mod tree;
mod signature;
mod mirror;
mod submodule;
mod verify;
mod working_copy;

pub use access::{RepoAccess, SshAccess, TlsAccess};
pub use command::{CommandError, GitLimits};
pub use mirror::{
    CommitDetails, FetchError, Fetched, GitOptions, GitRequest, LocalAccess, Mirror, Mirrors, Relation,
    RequestCounts, RequestObserver, ResolveOrFetchError,
};
pub use refs::{HashRule, ResolveError, RevisionSpec};
pub use retry::Retry;
pub use secret::Secret;
pub use signature::Signature;
pub use submodule::{SubmoduleAccess, SubmoduleError, TreeWithSubmodules};
pub use tree::{SourceTree, checked_out};
pub use url::{BadUrl, RepoUrl, Transport};
pub use verify::{Keyring, SignatureError, SignaturePolicy, SyncedRevision};
pub use working_copy::{NewCommit, WorkingCopy, WorkingCopyError};
