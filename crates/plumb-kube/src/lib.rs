//! The only crate that calls the API server.
//!
//! - [`Connection`] and [`ClusterClient`]: the address of a cluster, the credentials, and requests that change
//!   nothing: reads, lists, logs, dry runs, [`watch_objects`](ClusterClient::watch_objects).
//! - [`Catalog`]: which kinds a cluster serves, and the hashes of their schemas.
//! - [`LiveStore`]: the live objects of a cluster, kept up to date by watches, in little memory.
//! - [`Gate`]: the only way to write. Requests that change something are private to this crate.
//! - [`LeaseKeeper`]: leader election.
//! - [`Witness`]: the admission webhook that records who changes tracked objects.
//!
//! This crate decides nothing about apps: which objects belong to an app, what differs and what to do about it is
//! decided in `plumb-core`.
//!
//! # What of the `kube` crate is used
//!
//! The configuration: kubeconfig files, the service account of a pod, TLS, and credentials with their refresh and exec
//! plugins (`kube::Config` and `kube::client::ConfigExt`); and for commands on a user's machine the connections to ports
//! of pods (`kube::Api::portforward`). The rest is written here:
//!
//! - `kube::Client` has one HTTP client and no limit. Here watches have their own connections, so that watch data does
//!   not delay an apply, and the number of requests in flight follows the response time of the server.
//! - `kube::discovery` sends no entity tags. Here discovery runs again after every change of a CRD, and an unchanged
//!   answer costs a `304`.
//! - `kube::runtime` (`watcher`, `reflector`) keeps parsed objects in one store per kind. Here one store holds all
//!   kinds, compressed, with owners, children and references indexed across them.
//! - `kube::Api` can write. Here every write passes [`Gate`]. Objects are JSON, because their kinds are not known at
//!   compile time.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

mod backoff;
mod fault_log;
mod packed;
mod error;
mod catalog;
mod transport;
mod limit;
mod request_log;
mod redact_refusals;
mod client;
mod connect;
mod port_forward;
mod discovery;
mod read;
mod table;
mod service_proxy;
mod write;
mod dry_run;
mod feed;
mod live;
mod lease;
mod gate;
mod witness;
mod witness_probe;

pub use backoff::Backoff;
pub use catalog::{Catalog, Resource, ServedKind, ServedVersion, ServerVersion, Verbs};
pub use client::{ClusterClient, Impersonation};
pub use connect::{Connection, ExecPlugins, RegisteredCluster};
pub use discovery::SchemaDocument;
pub use error::{ApiError, Cause, ConnectError, PortForwardError, Reason, Retry, Status};
pub use fault_log::{FaultLog, FaultLogs};
pub use feed::{Marks, ObjectEvent, ObjectStream};
pub use gate::{
    DeletePermit, DeletionGround, Gate, OwnWrite, Ownership, PUSHES_CONFIG_MAP, ProjectAnswer, Refusal,
    STATE_CONFIG_MAP, TOMBSTONE_PREFIX, TOMBSTONE_TYPE, TombstoneKept, WriteError, WriteFacts, WritePermit,
};
pub use lease::{Fence, FenceLost, Leadership, LeaseKeeper, LeaseOptions, LeaseReleaser};
pub use live::{
    AllListed, Change, Changes, LiveOptions, LiveStore, Node, Origin, OwnerOf, Role, Snapshot, StoreSize,
    Touched, Uid, never_watched, owner_by,
};
pub use packed::PackedJson;
pub use port_forward::PodPort;
pub use read::{LogOptions, LogStream, Selection};
pub use request_log::{RequestObserver, RequestRecord};
pub use service_proxy::ServicePort;
pub use table::{Table, TableRow};
pub use transport::{AnswerBody, Lane, Protocol, RequestBody, Transport};
pub use witness::{IsOwn, Witness, WitnessError, WitnessServer};
pub use witness_probe::WitnessProbe;
pub use write::{
    Applied, ApplyOptions, DeleteOptions, Deleted, FieldValidation, Patch, PatchOptions, Target,
};
