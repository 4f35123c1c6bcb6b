//! What a group of apps may do: sources, destinations, kinds, times.
//!
//! A [`Project`] is compiled once from its [`ProjectRules`] and then queried. Every check is a pure function;
//! the write gate repeats them for each object. A rule that cannot be read permits nothing.

mod checks;
mod cron;
mod kinds;
mod orphans;
mod places;
mod refusal;
mod repository;
mod rules;
mod service_accounts;
mod signature;
mod windows;

#[cfg(test)]
mod tests;

pub use checks::{LOCAL_MANIFESTS_ANNOTATION, PLAIN_SECRETS_ANNOTATION, Project};
pub use cron::{CronSchedule, NotASchedule};
pub use kinds::KindPattern;
pub use orphans::OrphanRules;
pub use places::{DestinationPattern, TargetCluster};
pub use refusal::Refusal;
pub use repository::{normalize_repo_url, repo_label, shown_repo_url};
pub use rules::{
    OrphanPattern, OrphanPatterns, PlainSecrets, ProjectProblem, ProjectRules, ServiceAccountRule,
    WindowKind, WindowRule, WindowTime,
};
pub use signature::{SignatureMode, SignatureRule};
pub use windows::{SyncTrigger, SyncWindow, WindowDecision, WindowSubject};
