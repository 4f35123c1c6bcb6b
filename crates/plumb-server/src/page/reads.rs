//! What the page reads.

use std::sync::Arc;

use jiff::Timestamp;
use plumb_api::{Code, Status};
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use plumb_page::{Row, activity, columns, detail, doctor, failures, home, orphans};
use serde_json::{Value, json};

use super::caller::{PageCaller, PageMode};
use super::feed::{PageFeed, cluster_of};
use super::users::{AppsByInstance, note_users_of_orphans, users_of};

/// Most users of an object that are listed.
const MOST_USERS: usize = 500;

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
                // The first load asks once for both.
                home["me"] = me(&caller);
                home["trouble"] = feed.trouble();
                home
            }
            "apps" => {
                let cells: Vec<Value> = rows.into_iter().map(Row::cells).collect();
                json!({"token": token, "columns": columns(), "rows": cells})
            }
            "doctor" => doctor(reports()),
            "failures" => failures(rows.into_iter()),
            "orphans" => {
                let mut orphans = orphans(reports());
                note_users_of_orphans(&caller, &mut orphans);
                orphans
            }
            "activity" => activity(rows.into_iter(), reports()),
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

/// Who refers to an object of an app by name. Objects of apps that the caller may not see are only counted.
pub(super) fn users(caller: &PageCaller, id: &AppId, key: &ObjectKey) -> Result<Value, Status> {
    let app = caller.app(id)?;
    if !app.status.resources.iter().any(|resource| resource.key() == *key) {
        return Err(Status::not_found("the app has no such object"));
    }
    let leader = caller.shared.handle.leader();
    let leader = leader.ok_or_else(|| Status::unavailable("this replica does not lead yet; try again"))?;
    // Others may write the status: what the project does not permit is not the app's.
    if leader.denies(&app, key).is_some() {
        return Err(Status::not_found("the app has no such object"));
    }
    let apps = AppsByInstance::of(&leader, caller.shared.state.namespace());
    let away = || Status::unavailable("the cluster of the app is not connected");
    let mut users = users_of(caller, &leader, &apps, &app, key).ok_or_else(away)?;
    users.shown.truncate(MOST_USERS);
    Ok(json!({"users": users.shown, "hidden": users.n_hidden}))
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
