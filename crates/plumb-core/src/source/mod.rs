//! The files of a source, wherever they are kept: a Git tree, an unpacked chart, a local checkout.
//!
//! Paths are data here ([`RepoPath`] cannot name anything outside the source), and symbolic links are followed
//! by [`follow`] inside the source only. Nothing in this module knows how files are stored. [`RepoAddress`] is where a
//! source is, and [`AddressPolicy`] decides which servers may be asked for it.

mod address;
mod address_policy;
mod changes;
mod files;
mod path;

pub use address::{BadAddress, RepoAddress, normal_host};
pub use address_policy::{AddressPolicy, AddressRange, AddressRefused, AddressRule, BadAddressRule};
pub use changes::changed_files;
pub use files::{Entry, EntryKind, MAX_LINKS, SourceError, SourceFiles, follow, read_following};
pub use path::{BadPath, RepoPath};
