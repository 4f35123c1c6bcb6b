//! The handlers: one function per call, JSON in and JSON out, and the table that names the permission of each.

mod account;
mod app_read;
mod app_write;
mod cluster;
mod general;
mod logs;
mod mask;
mod operation;
mod project;
mod registration;
mod repository;
mod resource;
mod selector;
mod sync_request;
mod table;
mod tree;
mod watch;

pub(crate) use table::{Access, Handler, find};
