//! A small ssh server on 127.0.0.1 that gives out Git repositories: one host key, one key that may enter, and
//! `git upload-pack` behind it. The real client speaks to it, so what it says about wrong keys and unknown hosts is
//! what users see.
//!
//! It speaks one algorithm of each sort, never exchanges keys a second time, and sends no more than fits into a
//! client's first window: enough for repositories of a few files.

mod transport;
mod server;

pub use server::SshServer;
