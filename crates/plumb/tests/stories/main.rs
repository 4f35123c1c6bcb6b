//! Whole stories on a real cluster: Git, an Application, other actors, and plumb between them.
//!
//! Each story has a namespace of its own, which is both the control plane's and the destination's, and a plumb
//! of its own that looks at nothing else.

mod app_of_apps;
mod apply;
mod appset_kill;
mod appsets;
mod borders;
mod caches;
mod canaries;
mod canary;
mod changing_kinds;
mod classes;
mod commands;
mod compare_options;
mod cost;
mod doctor;
mod doctor_here;
mod drift;
mod external;
mod fleet;
mod forged;
mod health;
mod install;
mod interrupted;
mod kill;
mod least_rights;
mod leaving;
mod left_alone;
mod migration;
mod monitoring;
mod namespaces;
mod orphans;
mod others_trouble;
mod outside;
mod plain_secrets;
mod poison;
mod reports;
mod residuals;
mod restart;
mod safety;
mod sealed;
mod server;
mod settings;
mod sources;
mod stage;
mod standby;
mod sync;
mod time_travel;
mod tombstones;
mod waiting;
mod windows;
