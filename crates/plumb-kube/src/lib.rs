//! The only crate that calls the API server.
//!
//! - [`Connection`] and [`ClusterClient`]: where a cluster is, who we are there, and requests that change
//!   nothing: reads, lists, logs, dry runs, [`watch_objects`](ClusterClient::watch_objects).
//! - [`Catalog`]: which kinds a cluster serves, and the hashes of their schemas.
//! - [`LiveStore`]: what the cluster holds, always up to date, small.
//! - [`Gate`]: the only way to write. Requests that change something are private to this crate.
//! - [`LeaseKeeper`]: who may write.
//! - [`Witness`]: whom the API server tells who else wrote.
//!
//! It judges nothing: which objects are ours, what differs and what to do about it is decided elsewhere.

mod backoff;
mod packed;
mod error;
mod catalog;
mod transport;
mod limit;
mod request_log;
mod redact_refusals;
mod client;
mod connect;
mod discovery;
mod read;
mod table;
mod write;
mod dry_run;
mod feed;
mod live;
mod lease;
mod gate;
mod witness;

pub use backoff::Backoff;
pub use catalog::{Catalog, Resource, ServedKind, ServedVersion, ServerVersion, Verbs};
pub use client::{ClusterClient, Impersonation};
pub use connect::{Connection, ExecPlugins, RegisteredCluster};
pub use discovery::SchemaDocument;
pub use error::{ApiError, Cause, ConnectError, Reason, Retry, Status};
pub use feed::{Marks, ObjectEvent, ObjectStream};
pub use gate::{
    DeletePermit, DeletionGround, Gate, OwnWrite, Ownership, ProjectAnswer, Refusal, TOMBSTONE_PREFIX,
    TOMBSTONE_TYPE, TombstoneKept, WriteError, WriteFacts, WritePermit,
};
pub use lease::{Fence, FenceLost, Leadership, LeaseKeeper, LeaseOptions};
pub use live::{
    AllListed, Change, Changes, LiveOptions, LiveStore, Node, Origin, OwnerOf, Role, Snapshot, StoreSize,
    Touched, Uid, never_watched, owner_by,
};
pub use packed::PackedJson;
pub use read::{LogOptions, LogStream, Selection};
pub use request_log::{RequestObserver, RequestRecord};
pub use table::{Table, TableRow};
pub use transport::{AnswerBody, Lane, Protocol, RequestBody, Transport};
pub use witness::{Witness, WitnessError};
pub use write::{
    Applied, ApplyOptions, DeleteOptions, Deleted, FieldValidation, Patch, PatchOptions, Target,
};
