//! Argo CD's API over a running engine.
//!
//! One set of handlers (JSON in, JSON out) behind three doors: gRPC, gRPC-Web and REST. Every handler names the
//! permission that it needs in one table ([`handlers`]), and [`Api::answer`] checks it before the handler runs. Reads come
//! from the engine's memory; writes go through the gate with the name of the user.
//!
//! A module uses only modules that are listed above it.

mod random;
mod transport;
mod self_signed;
mod open_pgp;
mod call_rates;
mod heavy_calls;
mod jwt;
mod accounts;
mod body;
mod compression;
mod backend;
mod audit;
mod role_tokens;
mod state;
mod oidc;
mod token_fuzzing;
mod session;
mod replica;
mod certificate;
mod connections;
mod client_name;
mod app_feed;
mod set_feed;
mod call;
mod handlers;
mod local;
mod page;
mod doors;
mod request_body;
mod stream_guard;
mod write_log;
mod judged_call;
mod api;

pub use api::{Api, ApiOptions};
pub use body::AnswerBody;
pub use local::LocalApi;
pub use page::PageMode;
pub use token_fuzzing::{accepts_token, check_signed_claims};
pub use transport::Transport;
