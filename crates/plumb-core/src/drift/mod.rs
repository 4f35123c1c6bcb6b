//! What a difference means: from evidence to a verdict, one class per difference, each with its fix.

mod api_failure;
mod case;
mod class;
mod classes;
mod evidence;
mod explained;
mod facts;
mod finding;
mod findings;
mod fix_patch;
mod ignore_rules;
mod judge;
mod question;
mod random_names;
mod rules;
mod time_text;
mod verdict;
mod verdict_key;

#[cfg(test)]
mod tests;

pub use api_failure::{ApiFailure, FailureCause};
pub use class::DriftClass;
pub(crate) use classes::{is_dropped_by_argo_cd, is_same_as_absent};
pub use evidence::Evidence;
pub use facts::{
    Attempt, Autoscaler, Claim, Extraneous, Facts, FinishedRun, HealLimit, HealRecord, LiveOwner, Mutator,
    Previous,
};
pub use finding::{Finding, Fix, FixKind};
pub use judge::{is_large, judge};
pub use question::{Answers, DryRun, Question, SecondRender};
pub use random_names::{has_same_content, renamed};
pub use rules::{RuleGroup, RuleInfo, rule_groups};
pub use verdict::{ApplyAdvice, NotCompared, Outcome, Verdict, VerdictStatus};
pub use verdict_key::VerdictKey;
