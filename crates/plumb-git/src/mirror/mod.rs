//! One bare mirror per repository on disk, and who may fetch it when.
//!
//! Many callers for one repository share one fetch. A caller that comes while a fetch runs waits for the next one,
//! since the running one may have asked the server too early, unless it says since when an answer is new enough. A
//! fetch first asks the server for its refs (`ls-remote`) and goes on only if they changed. Whatever fails, the last
//! good state stays readable.

mod options;
mod error;
mod advertised;
mod readable;
mod disk;
mod slot;
mod mirrors;
mod run;
mod fetch;

pub(crate) use disk::make_private;
pub use error::{FetchError, ResolveOrFetchError};
pub use mirrors::Mirrors;
pub use options::{GitOptions, GitRequest, LocalAccess, RequestCounts, RequestObserver};
pub use readable::{Fetched, Mirror};
