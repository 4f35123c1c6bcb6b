//! One bare mirror per repository on disk.
//!
//! Many callers for one repository share one fetch. A caller that comes while a fetch runs waits for the next
//! one, since the running one may have read the refs too early, unless the caller names a time after which a
//! result is new enough. A fetch first reads the server's refs (`ls-remote`) and continues only if they
//! changed. If a fetch fails, the last good state stays readable.

mod options;
mod error;
mod advertised;
mod contained;
mod readable;
mod stamp;
mod disk;
mod slot;
mod mirrors;
mod run;
mod space;
mod fetch;
mod ancestry;

pub use ancestry::Relation;
pub(crate) use disk::{make_private, remove};
pub use error::{FetchError, ResolveOrFetchError};
pub use mirrors::Mirrors;
pub use options::{GitOptions, GitRequest, LocalAccess, RequestCounts, RequestObserver};
pub(crate) use readable::AnnotatedTag;
pub use readable::{CommitDetails, Fetched, Mirror};
