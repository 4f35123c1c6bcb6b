//! Objects that Git no longer has: who still uses them, for how long nobody has, and in which order they can go.
//!
//! `find` decides, `watch` compares the health before and after a deletion, `text` and `data` print. Nothing here deletes.

mod orphan;
mod cause;
mod unused;
mod order;
mod find;
mod choice;
mod watch;
mod formats;

#[cfg(test)]
mod tests;

pub use cause::{Cause, KnownApp};
pub use choice::{Choice, deletable};
pub use find::find;
pub use formats::{data, text};
pub use order::order;
pub use orphan::{Hold, Orphan, User};
pub use unused::LastSign;
pub use watch::{health_of, worse};
