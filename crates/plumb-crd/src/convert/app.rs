//! Converts an Application to an `App`.

use std::collections::BTreeSet;

use plumb_core::app::{
    App, Automation, Backoff, ClusterRef, CompareOptions, Destination, IgnoreRule, ManagedNamespace, Pause,
    PausedObjects, RetryPolicy, Source, SyncOption, SyncPolicy,
};

use super::duration::parse_retry_duration;
use super::problem::SpecProblem;
use super::source::to_source;
use super::text::{is_true, non_empty};
use crate::application::{
    self as wire, Application, ApplicationDestination, ApplicationSpec, ResourceIgnoreDifferences,
    RetryStrategy,
};

/// Entries of `status.history` if the spec sets no limit.
const DEFAULT_HISTORY: usize = 10;

/// `argocd.argoproj.io/skip-reconcile`.
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// Checks an Application. All problems are reported, not only the first.
pub fn to_app(application: &Application) -> Result<App, Vec<SpecProblem>> {
    let mut problems = Vec::new();
    match read(application, &mut problems) {
        Some(app) if problems.is_empty() => Ok(app),
        Some(_) | None => Err(problems),
    }
}

/// An Application that is being deleted, even if its spec is invalid: a deletion needs only the destination of the
/// objects. `None` if the destination is incomplete.
pub fn to_leaving_app(application: &Application) -> Option<App> {
    read(application, &mut Vec::new())
}

fn read(application: &Application, problems: &mut Vec<SpecProblem>) -> Option<App> {
    let spec = &application.spec;
    let (sources, multi_source) = sources(spec, problems);
    let destination = destination(&spec.destination, problems);
    let sync_policy = sync_policy(spec.sync_policy.as_ref(), problems);
    let ignore_differences = ignore_rules(&spec.ignore_differences, problems);
    let destination = destination?;
    let limit = spec.revision_history_limit.map(|limit| usize::try_from(limit).unwrap_or(0));
    Some(App {
        id: application.id(),
        uid: application.metadata.uid.clone(),
        generation: application.metadata.generation,
        project: non_empty(&spec.project).unwrap_or_else(|| "default".to_owned()),
        sources,
        multi_source,
        destination,
        sync_policy,
        ignore_differences,
        revision_history_limit: limit.unwrap_or(DEFAULT_HISTORY),
        compare_options: application
            .annotation(CompareOptions::ANNOTATION)
            .map_or_else(CompareOptions::default, CompareOptions::parse),
        skip_reconcile: application.annotation(SKIP_RECONCILE).is_some_and(is_true),
        pause: application
            .annotation(Pause::ANNOTATION)
            .map(|text| Pause::parse(text).written_at(application.paused_at)),
        paused_objects: application
            .annotation(PausedObjects::ANNOTATION)
            .map(|text| PausedObjects::parse(text).written_at(application.objects_paused_at))
            .unwrap_or_default(),
        annotations: application.metadata.annotations.clone(),
    })
}

/// The effective sources in order, in wire form: one for each of [`App::sources`].
pub fn written_sources(spec: &ApplicationSpec) -> Vec<wire::ApplicationSource> {
    if let Some(hydrator) = &spec.source_hydrator {
        return vec![hydrator.effective_sync_source()];
    }
    if spec.sources.is_empty() {
        return vec![spec.source.as_deref().cloned().unwrap_or_default()];
    }
    spec.sources.clone()
}

/// The effective sources, and whether they come from `sources`.
fn sources(spec: &ApplicationSpec, problems: &mut Vec<SpecProblem>) -> (Vec<Source>, bool) {
    if let Some(hydrator) = &spec.source_hydrator {
        check_hydrator(hydrator, problems);
        let source = hydrator.effective_sync_source();
        return (vec![to_source(&source, "spec.sourceHydrator.syncSource", false, problems)], false);
    }
    if spec.sources.is_empty() {
        let absent = wire::ApplicationSource::default();
        let source = spec.source.as_deref().unwrap_or(&absent);
        return (vec![to_source(source, "spec.source", false, problems)], false);
    }
    let to_indexed = |(index, source): (usize, &wire::ApplicationSource)| {
        to_source(source, &format!("spec.sources[{index}]"), true, problems)
    };
    let sources: Vec<Source> = spec.sources.iter().enumerate().map(to_indexed).collect();
    let mut names = BTreeSet::new();
    for (index, name) in
        sources.iter().enumerate().filter_map(|(index, source)| Some((index, source.ref_name.as_ref()?)))
    {
        if !names.insert(name) {
            problems.push(SpecProblem::new(
                format!("spec.sources[{index}].ref"),
                format!("invalid sources: multiple sources had the same `ref` key: {name}"),
            ));
        }
    }
    (sources, true)
}

fn check_hydrator(hydrator: &wire::SourceHydrator, problems: &mut Vec<SpecProblem>) {
    let mut require = |text: &str, field: &str, message: &str| {
        if text.is_empty() {
            problems.push(SpecProblem::new(field, message));
        }
    };
    require(
        &hydrator.dry_source.repo_url,
        "spec.sourceHydrator.drySource.repoURL",
        "spec.sourceHydrator.drySource.repoURL is required",
    );
    require(
        &hydrator.sync_source.target_branch,
        "spec.sourceHydrator.syncSource.targetBranch",
        "spec.sourceHydrator.syncSource.targetBranch is required",
    );
    if let Some(hydrate_to) = &hydrator.hydrate_to {
        require(
            &hydrate_to.target_branch,
            "spec.sourceHydrator.hydrateTo.targetBranch",
            "when spec.sourceHydrator.hydrateTo is set, spec.sourceHydrator.hydrateTo.targetBranch is required",
        );
    }
}

fn destination(destination: &ApplicationDestination, problems: &mut Vec<SpecProblem>) -> Option<Destination> {
    let server = destination.server.trim_end_matches('/');
    let cluster = match (server, destination.name.as_str()) {
        ("", "") => {
            problems.push(SpecProblem::new(
                "spec.destination",
                "Destination server missing from app spec: spec.destination needs either server or name",
            ));
            return None;
        }
        (server, "") => ClusterRef::Server(server.to_owned()),
        ("", name) => ClusterRef::Name(name.to_owned()),
        (server, name) => {
            problems.push(SpecProblem::new(
                "spec.destination",
                format!("application destination can't have both name and server defined: {name} {server}"),
            ));
            return None;
        }
    };
    Some(Destination { cluster, namespace: non_empty(&destination.namespace) })
}

fn sync_policy(policy: Option<&wire::SyncPolicy>, problems: &mut Vec<SpecProblem>) -> SyncPolicy {
    let Some(policy) = policy else { return SyncPolicy::default() };
    let automated = policy.automated.as_ref().filter(|automated| automated.enabled.unwrap_or(true));
    SyncPolicy {
        automated: automated.map(|automated| Automation {
            prune: automated.prune.unwrap_or(false),
            self_heal: automated.self_heal.unwrap_or(false),
            allow_empty: automated.allow_empty.unwrap_or(false),
        }),
        options: policy.sync_options.iter().cloned().map(SyncOption).collect(),
        retry: policy.retry.as_ref().map(|retry| retry_policy(retry, "spec.syncPolicy.retry", problems)),
        managed_namespace: policy.managed_namespace_metadata.as_ref().map(|managed| ManagedNamespace {
            labels: managed.labels.clone(),
            annotations: managed.annotations.clone(),
        }),
    }
}

/// Checks a retry strategy. Argo CD's defaults are 5 s, doubled, at most 3 min.
pub(super) fn retry_policy(
    retry: &RetryStrategy,
    field: &str,
    problems: &mut Vec<SpecProblem>,
) -> RetryPolicy {
    let default = Backoff::default();
    let backoff = retry.backoff.clone().unwrap_or_default();
    let mut read = |text: &str, key: &str, default| {
        if text.is_empty() {
            return default;
        }
        parse_retry_duration(text).unwrap_or_else(|error| {
            let field = format!("{field}.backoff.{key}");
            problems.push(SpecProblem::new(field.clone(), format!("{field}: {error}")));
            default
        })
    };
    let duration = read(&backoff.duration, "duration", default.duration);
    let max = read(&backoff.max_duration, "maxDuration", default.max);
    let factor = match backoff.factor.map(u32::try_from) {
        None | Some(Ok(0)) => default.factor,
        Some(Ok(factor)) => factor,
        Some(Err(_)) => {
            let field = format!("{field}.backoff.factor");
            problems.push(SpecProblem::new(
                field.clone(),
                format!("{field}: a wait can be multiplied with 1 to {}", u32::MAX),
            ));
            default.factor
        }
    };
    RetryPolicy {
        limit: (retry.limit >= 0).then(|| u32::try_from(retry.limit).unwrap_or(u32::MAX)),
        backoff: Backoff { duration, factor, max },
        refresh: retry.refresh,
    }
}

fn ignore_rules(rules: &[ResourceIgnoreDifferences], problems: &mut Vec<SpecProblem>) -> Vec<IgnoreRule> {
    for (index, rule) in rules.iter().enumerate() {
        if rule.kind.is_empty() {
            problems.push(SpecProblem::new(
                format!("spec.ignoreDifferences[{index}].kind"),
                format!("spec.ignoreDifferences[{index}] needs a kind; `*` is every kind"),
            ));
        }
    }
    rules
        .iter()
        .map(|rule| IgnoreRule {
            group: rule.group.clone(),
            kind: rule.kind.clone(),
            name: non_empty(&rule.name),
            namespace: non_empty(&rule.namespace),
            json_pointers: rule.json_pointers.clone(),
            jq_path_expressions: rule.jq_path_expressions.clone(),
            managed_fields_managers: rule.managed_fields_managers.clone(),
        })
        .collect()
}
