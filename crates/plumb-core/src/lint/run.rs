//! All rules.

use super::{
    LintApp, LintFinding, claims, defaults, hooks, phantoms, problems, rejected, secrets, shared, spelling,
    unstable, waves,
};
use crate::schema::SchemaSet;

/// Every finding of the checked apps. [`with_lines`](super::with_lines) sorts them.
pub fn lint(apps: &[LintApp<'_>], schemas: &SchemaSet) -> Vec<LintFinding> {
    let mut findings = shared::check(apps);
    findings.extend(secrets::derived(apps));
    for app in apps.iter().filter(|app| app.is_checked) {
        findings.extend(problems::check(app));
        findings.extend(rejected::check(app, schemas));
        findings.extend(secrets::check(app));
        findings.extend(secrets::credentials(app));
        findings.extend(waves::check(app));
        findings.extend(unstable::check(app));
        findings.extend(phantoms::check(app, schemas));
        findings.extend(hooks::check(app));
        findings.extend(defaults::check(app, schemas));
        findings.extend(spelling::check(app, schemas));
        findings.extend(claims::check(app));
    }
    findings
}
