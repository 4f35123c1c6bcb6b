//! The plan of a dry run as a table: each step, why, in which wave, and what it would wait for.

use plumb_core::plan::{Row, SyncPhase};
use plumb_crd::application::{OperationState, ResourceResult};

use crate::output::Output;

/// Prints the plan from the results of a dry run. A step that the API server refused shows the reason.
pub(crate) fn show(out: Output, state: &OperationState) {
    let results = state.sync_result.as_ref().map(|result| result.resources.as_slice()).unwrap_or_default();
    // Results are in the order in which they arrived. The plan is shown in the order of execution.
    let mut in_order: Vec<&ResourceResult> = results.iter().collect();
    in_order.sort_by_key(|result| {
        let wave = Row::parts(&result.message).and_then(|[wave, ..]| wave.parse::<i64>().ok());
        (SyncPhase::from_name(&result.sync_phase), wave.unwrap_or(i64::MAX))
    });
    let rows: Vec<Vec<String>> = in_order.into_iter().map(row).collect();
    if rows.is_empty() {
        out.print("nothing to do");
    } else {
        out.table(&Row::TITLES, &rows);
    }
    let action = |result: &ResourceResult| {
        Row::parts(&result.message).map_or("", |[_, action, _, _]| action).to_owned()
    };
    let count = |what: &str| results.iter().filter(|result| action(result) == what).count();
    let failed = results.iter().filter(|result| result.status == "SyncFailed").count();
    out.note(&format!(
        "{} to apply, {} to prune, {} hooks to run, {} unchanged, {failed} refused; nothing was changed",
        count("apply") + count("create") + count("replace") + count("recreate") + count("apply or recreate"),
        count("prune"),
        count("run hook"),
        count("keep"),
    ));
}

fn row(result: &ResourceResult) -> Vec<String> {
    let place = if result.namespace.is_empty() { String::new() } else { format!("{}/", result.namespace) };
    let group = if result.group.is_empty() { String::new() } else { format!("{}/", result.group) };
    let object = format!("{group}{} {place}{}", result.kind, result.name);
    let phase = result.sync_phase.clone();
    match Row::parts(&result.message) {
        Some([wave, action, why, waits_for]) => {
            [&phase, wave, action, &object, why, waits_for].map(str::to_owned).into()
        }
        None => {
            vec![phase, String::new(), result.status.clone(), object, result.message.clone(), String::new()]
        }
    }
}
