//! Secrets whose values are in Git, objects that make Secrets, and credentials outside of Secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::{LintApp, LintFinding, LintRule, Severity};
use crate::desired::Origin;
use crate::normalize::is_secret;
use crate::object::{FieldPath, Manifest, ObjectKey};
use crate::secrets::{
    ExternalProblem, ExternalProblemKind, external_problems, is_sealed_secret, plain_fields, store_key,
    token_hints,
};
use crate::text::one_line;

pub(super) fn check(app: &LintApp<'_>) -> Vec<LintFinding> {
    let mut findings = Vec::new();
    for item in app.items() {
        let mut fields = plain_fields(item.manifest);
        fields.retain(|field| !is_generated(app, item.key, field, item.manifest));
        if fields.is_empty() {
            continue;
        }
        let n_values = fields.len();
        let values = if n_values == 1 { "1 value".to_owned() } else { format!("{n_values} values") };
        let what = if is_sealed_secret(item.manifest.value()) {
            format!(
                "the SealedSecret has {values} that {} not sealed",
                if n_values == 1 { "is" } else { "are" }
            )
        } else {
            format!("the Secret has {values} in Git")
        };
        let message = format!("{what}, which everyone who can read the repository can read");
        let fix = "encrypt it (`plumb seal`), or fetch it (an ExternalSecret), and change the values: \
                   the history of Git keeps them";
        let finding = LintFinding::new(LintRule::PlainSecret, app.name, message, fix);
        findings.push(finding.of(item.key(), item.origin).at(fields));
    }
    findings
}

/// Does a second render have another value? Then the chart makes it up, and Git does not have it.
fn is_generated(app: &LintApp<'_>, key: Option<&ObjectKey>, field: &FieldPath, manifest: &Manifest) -> bool {
    let again = app.second.zip(key).and_then(|(second, key)| second.objects.get(key));
    let again = again.and_then(|again| field.find(again.manifest.value()));
    again.is_some_and(|again| Some(again) != field.find(manifest.value()))
}

/// Objects that make Secrets: their stores, their keys, and that each Secret has one writer. Apps of one cluster are
/// looked at together, because a store is often in another app.
pub(super) fn derived(apps: &[LintApp<'_>]) -> Vec<LintFinding> {
    let mut clusters: BTreeMap<&str, Vec<&LintApp<'_>>> = BTreeMap::new();
    for app in apps {
        clusters.entry(app.destination).or_default().push(app);
    }
    clusters.into_values().flat_map(|apps| of_cluster(&apps)).collect()
}

fn of_cluster(apps: &[&LintApp<'_>]) -> Vec<LintFinding> {
    let manifests: Vec<&Manifest> =
        apps.iter().flat_map(|app| app.objects()).map(|object| &object.manifest).collect();
    let kinds: BTreeSet<String> =
        manifests.iter().filter_map(|object| store_key(object)).map(|key| key.kind.clone()).collect();
    let problems = external_problems(&manifests, &BTreeSet::new());
    let mut findings = Vec::new();
    for app in apps.iter().filter(|app| app.is_checked) {
        for object in app.objects() {
            let Some(own) = object.manifest.key() else { continue };
            let of_it = problems.iter().filter(|problem| problem.key == own);
            let place = (&object.key, object.origin.as_ref());
            findings.extend(of_it.map(|problem| of_problem(app.name, problem, place, &kinds)));
        }
    }
    findings
}

fn of_problem(
    app: &str,
    problem: &ExternalProblem,
    (key, origin): (&ObjectKey, Option<&Origin>),
    kinds_in_git: &BTreeSet<String>,
) -> LintFinding {
    let what = problem.what.clone();
    let (message, severity, fix) = match &problem.kind {
        // Often the cluster has stores that no repository has. Where this repository has some, the name is likely wrong.
        ExternalProblemKind::UnknownStore(store) => {
            let severity =
                if kinds_in_git.contains(&store.kind) { Severity::Warning } else { Severity::Hint };
            let message = format!("no app of this repository has {} {}", store.kind, store.name);
            (message, severity, "check its name; `plumb doctor --secrets` looks for it in the cluster")
        }
        ExternalProblemKind::Malformed => {
            (what, Severity::Error, "correct it: the operator cannot write the Secret")
        }
        ExternalProblemKind::TwoWriters => {
            let fix = "keep one of them, or let one merge (spec.target.creationPolicy: Merge)";
            (what, Severity::Error, fix)
        }
    };
    let fields = if problem.field.segments().is_empty() { Vec::new() } else { vec![problem.field.clone()] };
    LintFinding::new(LintRule::DerivedSecret, app, message, fix)
        .of(Some(key.clone()), origin)
        .at(fields)
        .with_severity(severity)
}

/// Texts that look like credentials, in `ConfigMaps`, workloads and the Helm values of Applications.
pub(super) fn credentials(app: &LintApp<'_>) -> Vec<LintFinding> {
    let items = app.items().filter(|item| !is_secret(item.manifest));
    items
        .flat_map(|item| {
            token_hints(item.manifest).into_iter().map(move |hint| {
                let message = format!("{} looks like {}", one_line(&hint.path), hint.looks_like);
                let fix =
                    "move it into a Secret, encrypted or fetched, and change it: the history of Git keeps it";
                LintFinding::new(LintRule::Credential, app.name, message, fix).of(item.key(), item.origin)
            })
        })
        .collect()
}
