//! What the page reads.

use std::sync::Arc;

use jiff::Timestamp;
use plumb_api::{Code, Status};
use plumb_core::app::AppId;
use plumb_page::{Row, activity, columns, detail, doctor, home, orphans};
use serde_json::{Value, json};

use super::caller::{PageCaller, PageMode};
use super::feed::{PageFeed, cluster_of};

/// Who asks, and what the page may do.
pub(super) fn me(caller: &PageCaller) -> Value {
    json!({
        "user": caller.identity.username,
        "readOnly": caller.mode == PageMode::ReadOnly,
        "namespace": caller.shared.state.namespace(),
        "version": caller.shared.version,
        "now": Timestamp::now().as_second(),
        "banner": caller.shared.state.setting("ui.bannercontent"),
    })
}

/// One of the answers over all apps. Thousands of apps take a while, for which other requests must not wait.
pub(super) async fn over_all(feed: &Arc<PageFeed>, caller: PageCaller, what: &str) -> Result<Value, Status> {
    feed.ready().await?;
    let (feed, what) = (Arc::clone(feed), what.to_owned());
    let work = tokio::task::spawn_blocking(move || {
        let view = feed.view();
        let sees = |row: &Row| caller.may_see(&row.project, &row.id);
        let rows: Vec<&Row> = view.rows().filter(|row| sees(row)).collect();
        let reports = || view.reports().filter(|(row, _)| sees(row));
        let token = view.token().to_string();
        Some(match what.as_str() {
            "home" => {
                let mut home = home(rows.into_iter(), Timestamp::now()).into_json();
                home["token"] = json!(token);
                home
            }
            "apps" => {
                let cells: Vec<Value> = rows.into_iter().map(Row::cells).collect();
                json!({"token": token, "columns": columns(), "rows": cells})
            }
            "doctor" => doctor(reports()),
            "orphans" => orphans(reports()),
            "activity" => activity(rows.into_iter()),
            _ => return None,
        })
    });
    let answer = work.await.map_err(|_| Status::new(Code::Internal, "the answer was aborted"))?;
    answer.ok_or_else(|| Status::not_found("there is no such list"))
}

/// One app.
pub(super) async fn app(feed: &Arc<PageFeed>, caller: &PageCaller, id: &AppId) -> Result<Value, Status> {
    feed.ready().await?;
    let app = caller.app(id)?;
    let report = feed.view().report(id).cloned();
    let mut shown = detail(&app, report.as_ref(), &cluster_of(&app), Timestamp::now());
    shown["can"] = caller.can(&app);
    let leader = caller.shared.handle.leader();
    shown["window"] = json!(leader.and_then(|leader| leader.manual_sync_window(&app)));
    Ok(shown)
}

/// The one app of this name that the caller may see, for addresses without a namespace.
pub(super) async fn find(feed: &Arc<PageFeed>, caller: &PageCaller, name: &str) -> Result<Value, Status> {
    feed.ready().await?;
    let view = feed.view();
    let named = view.rows().filter(|row| row.id.name == name && caller.may_see(&row.project, &row.id));
    let home = caller.shared.state.namespace();
    let found = named.min_by_key(|row| (row.id.namespace != home, row.id.namespace.clone()));
    let hidden = || Status::not_found(format!("there is no app {name}, or you may not see it"));
    found.map(|row| json!({"app": [row.id.namespace, row.id.name]})).ok_or_else(hidden)
}
