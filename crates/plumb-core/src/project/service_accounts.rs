//! The service account that plumb acts as in a destination.

use super::{ProjectProblem, ServiceAccountRule};
use crate::glob::Glob;

#[derive(Clone, Debug)]
pub(super) struct ServiceAccount {
    server: Glob,
    namespace: Glob,
    account: String,
}

/// An invalid rule is reported and skipped. The account that it meant is unknown, and without an account there is no
/// sync where accounts are enforced.
pub(super) fn compile(
    rules: &[ServiceAccountRule],
    problems: &mut Vec<ProjectProblem>,
) -> Vec<ServiceAccount> {
    let mut accounts = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let field = format!("destinationServiceAccounts[{index}]");
        let is_name = !rule.account.trim().is_empty()
            && !rule.account.contains(['!', '*', '[', ']', '{', '}', '\\', '/']);
        if !is_name {
            let reason = format!("defaultServiceAccount has an invalid format, '{}'", rule.account);
            problems.push(ProjectProblem { field, reason });
            continue;
        }
        match (Glob::plain(&rule.server), Glob::plain(&rule.namespace)) {
            (Ok(server), Ok(namespace)) => {
                accounts.push(ServiceAccount { server, namespace, account: rule.account.clone() });
            }
            (Err(error), _) | (_, Err(error)) => {
                problems.push(ProjectProblem { field, reason: error.to_string() });
            }
        }
    }
    accounts
}

/// The user of the first rule that matches, `system:serviceaccount:<namespace>:<name>`.
pub(super) fn user_for(
    accounts: &[ServiceAccount],
    server: &str,
    destination_namespace: Option<&str>,
    app_namespace: &str,
) -> Option<String> {
    let namespace = destination_namespace.unwrap_or_default();
    let rule =
        accounts.iter().find(|rule| rule.server.matches(server) && rule.namespace.matches(namespace))?;
    Some(if rule.account.contains(':') {
        format!("system:serviceaccount:{}", rule.account)
    } else {
        format!("system:serviceaccount:{}:{}", destination_namespace.unwrap_or(app_namespace), rule.account)
    })
}
