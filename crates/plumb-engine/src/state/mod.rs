//! What the engine keeps about each app in memory.

pub(crate) mod app_records;
pub(crate) mod app_state;
pub(crate) mod bursts;
pub(crate) mod restart;
pub(crate) mod retries;
pub(crate) mod time_travels;
pub(crate) mod tombstone_ledger;
