//! Rules written as data, for kinds where the general reading is not enough.
//!
//! One file an API group, in this folder. A rule is a kind and a few sentences, read from the top; the first that
//! holds decides:
//!
//! ```text
//! group core.humio.com
//! kind HumioCluster
//!   Healthy when status.state is Running
//!   Progressing when status.state is Restarting | Upgrading
//!   Degraded when status.state is ConfigError
//!   otherwise Unknown
//! ```
//!
//! A kind that has a rule is known to report about itself: without a status it is `Progressing`, and likewise while
//! its controller has not seen the newest spec (`ignore generation` switches that off, `strict generation` does not
//! believe a controller that says nothing of it; `absent S` and `empty S` name another status for no status and for
//! `{}`). `first S when …` is asked before both. Without `otherwise`
//! the general reading decides. The grammar is in `parse`.

mod parse;
mod predicate;
mod rule;

pub(super) use rule::judge;
