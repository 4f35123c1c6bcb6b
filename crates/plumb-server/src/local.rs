//! The calls of the API for a user with credentials of the cluster: the same handlers, without a login. Kubernetes decides
//! what the user may do.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use plumb_api::{Code, NoRoute, Status, Tables};
use plumb_engine::Handle;
use plumb_kube::ClusterClient;
use serde_json::Value;

use crate::app_feed::AppFeed;
use crate::audit::AuditEvents;
use crate::backend::Backend;
use crate::call::{Answer, Call, Shared};
use crate::connections::Connections;
use crate::handlers::{Access, find};
use crate::session::{Identity, Sessions};
use crate::set_feed::SetFeed;
use crate::state::State;

/// The calls that need what the server follows: keys, accounts, projects. The others read what they need.
const NEED_STATE: [&str; 3] =
    ["project.ProjectService/", "account.AccountService/", "session.SessionService/"];

/// The API in this process.
#[derive(Clone)]
pub struct LocalApi {
    shared: Arc<Shared>,
}

impl LocalApi {
    /// The API of the control plane in a namespace. Calls that need a running engine are not available.
    pub fn new(client: ClusterClient, namespace: &str) -> Self {
        let backend = Backend::new(client);
        let state = State::new(backend.clone(), namespace.to_owned());
        let handle = Handle::default();
        let shared = Shared {
            sessions: Sessions::new(state.clone(), backend.clone()),
            feed: Arc::new(AppFeed::new(handle.clone())),
            sets: SetFeed::new(backend.clone()),
            audit: AuditEvents::new(backend.clone()),
            connections: Connections::default(),
            handle,
            backend,
            state,
            version: String::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Answers one request of REST. The path is percent-encoded.
    pub async fn call(&self, verb: &str, path: &str, query: &str, body: &[u8]) -> Result<Value, Status> {
        let tables = Tables::get();
        let routed = tables.route(verb, path).map_err(|missing| match missing {
            NoRoute::Path => Status::not_found("Not Found"),
            NoRoute::Verb => Status::new(Code::Unimplemented, "Method Not Allowed"),
        })?;
        let path = &routed.method.path;
        let unknown = || Status::new(Code::Unimplemented, format!("{path} is not supported by plumb"));
        let handler = find(path).ok_or_else(unknown)?;
        if matches!(handler.access, Access::App(_) | Access::AppThen(_)) {
            return Err(Status::unavailable("this call needs a server: `plumb login`"));
        }
        if NEED_STATE.iter().any(|service| path.starts_with(service)) {
            self.shared.state.ready().await?;
        }
        let call = Call {
            shared: Arc::clone(&self.shared),
            identity: Some(Identity::with_cluster()),
            request: routed.request(tables, query, body)?,
            fields: None,
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            forwarded: String::new(),
            app: None,
            asked: parking_lot::Mutex::default(),
            written: parking_lot::Mutex::default(),
            granted: parking_lot::Mutex::default(),
        };
        match (handler.run)(Arc::new(call)).await? {
            Answer::One(value) => Ok(value),
            Answer::Chosen(text) => serde_json::from_str(&text)
                .map_err(|_| Status::new(Code::Internal, "the answer cannot be read")),
            Answer::Stream(_) => {
                Err(Status::new(Code::Unimplemented, "streams need a server: `plumb login`"))
            }
        }
    }
}
