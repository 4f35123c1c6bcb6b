//! Is an object well?
//!
//! [`assess`] judges one object from what it says about itself; [`aggregate()`] folds the judgements on an
//! app's objects into one. Nothing here asks a cluster, reads a clock or keeps a state: what is needed comes
//! in as an argument.
//!
//! Who is asked, in this order: a deletion under way, the user's own script (through [`assess_with`]), the
//! code for a kind of Kubernetes itself ([`builtin`]), a rule written as data, the general reading of
//! conditions and words. The first that has an opinion is heard.

mod aggregate;
mod assess;
mod builtin;
mod cause;
mod general;
mod expected_secret;
mod read;
mod redact;
mod rules;
mod since;
mod status;
mod stuck;

pub use aggregate::{Member, Role, aggregate};
pub use assess::{Custom, HOOK_FINALIZER, assess, assess_with, general_reading, pending_deletion, standing};
pub use builtin::webhook::{Backing, assess_webhook, webhook_services};
pub use cause::{Cause, End, Event, LogTail, Node, Symptom, chain, essence, explained, is_bad_wait};
pub use expected_secret::{ExpectedSecret, SecretOwner, SecretState, expected_secret, with_secret};
pub use since::{
    HealthHistory, HealthRecord, KnownFrom, ProgressLimits, Since, in_words, looping_since, since,
};
pub use stuck::{Stuck, stuck};

use status::Answer;
pub use status::{Health, HealthStatus};
