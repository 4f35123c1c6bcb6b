//! The health of objects.
//!
//! [`assess`] judges one object from what it says about itself; [`aggregate()`] folds the judgements on an
//! app's objects into one. Nothing here reads a cluster or a clock, or keeps state: every input is an
//! argument.
//!
//! In this order: a pending deletion, the user's own script (through [`assess_with`]), the code for built-in
//! kinds of Kubernetes ([`builtin`]), a rule written as data, the general reading of conditions and state fields. The
//! first that returns a result decides.

mod aggregate;
mod assess;
mod builtin;
mod cause;
mod general;
mod expected_secret;
mod read;
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
