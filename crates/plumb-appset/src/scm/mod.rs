//! Repositories and pull requests of SCM providers: which requests to make, and what the answers mean.
//!
//! One file per provider. Nothing here sends a request: [`ScmFacts`] answers, or says that the answer is not there yet.
//! Then the caller sends what was asked and asks again; requests that do not depend on each other are asked together.

mod call;
mod client;
mod filter;
mod github;
mod gitlab;
mod gitea;
mod bitbucket_server;
mod bitbucket;
mod azure;
mod provider;

pub use call::{GithubApp, HttpCall, ScmAnswer, ScmFacts, ScmRules, SetSecret};
pub use provider::{pull_requests, repositories};
