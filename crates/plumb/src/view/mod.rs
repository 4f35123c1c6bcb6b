//! What commands show: the columns, lines and trees of Applications, their objects and their drift.

pub(crate) mod columns;
pub(crate) mod describe;
pub(crate) mod finding;
pub(crate) mod plan_table;
pub(crate) mod problem;
pub(crate) mod progress;
pub(crate) mod project;
pub(crate) mod rows;
pub(crate) mod tree;
pub(crate) mod unhealthy;
pub(crate) mod watch;
