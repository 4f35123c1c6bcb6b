//! Several replicas: one leads and has the Applications, the others pass requests on to it.
//!
//! All replicas know the key that signs tokens. From it they derive one key pair for TLS between them, and the key of the
//! marks that say who the client of a passed request is. What is published in the cluster is signed, too: who may write a
//! `ConfigMap` cannot lead requests, and the tokens in them, elsewhere.

mod keys;
mod tls;
mod leader;
mod forward;

pub(crate) use forward::{FORWARDED, Forwarder, Passed};
pub(crate) use keys::ReplicaKeys;
pub(crate) use leader::{find_leader, publish};
pub(crate) use tls::{ReplicaResolver, server_config as replica_server_config};
