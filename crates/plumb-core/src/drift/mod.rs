//! What a difference means: from evidence to a verdict, one class per difference, each with its fix.

mod cache;
mod case;
mod class;
mod classes;
mod edit;
mod evidence;
mod explain;
mod finding;
mod ignored;
mod judge;
mod made_up;
mod renamed;
mod report;
mod verdict;

#[cfg(test)]
mod tests;

pub use cache::VerdictKey;
pub use class::DriftClass;
pub use evidence::{
    Answers, ApiFailure, Attempt, Autoscaler, Claim, DryRun, Evidence, Facts, FailureCause, FinishedRun,
    HealLimit, HealRecord, LiveOwner, Mutator, Previous, Question, SecondRender,
};
pub use finding::{Finding, Fix, FixKind};
pub use judge::judge;
pub use renamed::renamed;
pub use verdict::{ApplyAdvice, NotCompared, Outcome, Verdict, VerdictStatus};
