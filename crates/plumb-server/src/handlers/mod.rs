//! The handlers: one function per call, JSON in and JSON out, and the table that names the permission of each.

mod account;
mod action;
mod app_read;
mod app_set;
mod app_write;
mod certificate;
mod cluster;
mod config_map;
mod general;
mod gpg_key;
mod links;
mod logs;
mod mask;
mod notification;
mod operation;
mod project;
mod project_check;
mod registration;
mod report;
mod repository;
mod resource;
mod revision;
mod rotation;
mod selector;
mod server_settings;
mod server_side_diff;
mod sync_request;
mod table;
mod tree;
mod watch;

pub(crate) use table::{Access, Handler, find};
