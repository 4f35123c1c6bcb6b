//! One cluster's client: how a request is sent, limited, retried and its answer checked.

mod call;
mod answer;
mod cluster_client;

pub(crate) use answer::{Answer, broken};
pub(crate) use call::Call;
pub use cluster_client::{ClusterClient, Impersonation};
