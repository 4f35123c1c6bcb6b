//! Argo CD's API, for users without credentials of the cluster: the file with logins, and requests.

mod local_config;
mod api;

pub(crate) use api::{Api, Flags};
pub(crate) use local_config::KnownServer;
