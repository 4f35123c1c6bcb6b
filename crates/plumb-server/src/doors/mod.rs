//! The doors: gRPC, gRPC-Web and REST. Each turns bytes into a call and an answer into bytes.

mod badge;
mod cookie;
mod grpc;
mod logout;
mod rest;
mod sso;
mod stream;

pub(crate) use badge::answer as answer_badge;
pub(crate) use cookie::{CookieRules, renew};
pub(crate) use grpc::{
    Dialect, answer as answer_grpc, error as grpc_error, messages, unimplemented, uploaded,
};
pub(crate) use logout::answer as answer_logout;
pub(crate) use rest::{answer as answer_rest, error as rest_error, may_be_a_form, text};
pub(crate) use sso::{begin as begin_sso, end as end_sso};
