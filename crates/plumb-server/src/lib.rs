//! Argo CD's API over a running engine.
//!
//! One set of handlers (JSON in, JSON out) behind three doors: gRPC, gRPC-Web and REST. Every handler names the
//! permission that it needs in one table ([`handlers`]), and [`Api::answer`] checks it before the handler runs. Reads come
//! from the engine's memory; writes go through the gate with the name of the user.
//!
//! A module uses only modules that are listed above it.

mod random;
mod transport;
mod open_pgp;
mod call_rates;
mod jwt;
mod accounts;
mod body;
mod backend;
mod audit;
mod state;
mod oidc;
mod session;
mod replica;
mod certificate;
mod app_feed;
mod set_feed;
mod call;
mod handlers;
mod doors;
mod api;

pub use api::{Api, ApiOptions};
pub use body::AnswerBody;
pub use transport::Transport;

/// Tries a token that nobody signed, with the code for both kinds of tokens. For fuzzing: it is always false.
#[doc(hidden)]
pub fn accepts_token(token: &str) -> bool {
    oidc::accepts(token) || jwt::verify(b"a key that nobody knows", token, 0).is_ok()
}
