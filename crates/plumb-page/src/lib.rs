//! The page: what it shows, and its script and style.
//!
//! The first part decides: which rows and troubles there are, what changed since a token, what a verb would do. It has no
//! clock and no I/O. The second part ([`assets`]) is the bundle that the build embeds.
//!
//! A module uses only modules that are listed above it.

mod assets;
mod object_ref;
mod trouble;
mod row;
mod view;
mod timeline;
mod lists;
mod home;
mod detail;
mod git_facts;
mod plan;

pub use assets::{Asset, asset, index_html};
pub use detail::{detail, sentences};
pub use git_facts::{GitFacts, PlanSources};
pub use home::{Home, home};
pub use lists::{activity, doctor, failures, orphans};
pub use plan::{Plan, PlanRequest, Verb, plan};
pub use row::{Row, columns};
pub use timeline::timeline;
pub use view::{Changes, Token, View};
