//! Lists and watches one kind until the task ends.
//!
//! The first list is streamed where the server offers it (`sendInitialEvents`), else read in pages. Then a
//! watch continues from the last position; after a broken connection it resumes there without a new list. A
//! new list starts only when the server answers that the position is too old (410). An object that is not in
//! the new list was deleted, but only once the list is complete: an incomplete list proves nothing. The owner of the
//! watch may ask for a new list, too.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::head::Head;
use super::lines::Lines;
use crate::backoff::{Backoff, jitter};
use crate::catalog::Resource;
use crate::client::{Call, ClusterClient, broken};
use crate::error::{ApiError, Status};
use crate::read::Selection;

/// The objects to follow.
#[derive(Clone, Debug)]
pub(crate) struct FeedSource {
    pub(crate) resource: Resource,
    pub(crate) selection: Selection,
    /// Asks for a new list.
    pub(crate) again: Arc<Notify>,
}

/// What `follow` passes to its sink.
pub(crate) enum FeedEvent<'a> {
    /// A watch connection is open.
    Opened,
    /// A list begins. Every object of it follows as `Seen`, then `ListEnds`; or the list begins again.
    ListBegins,
    /// The present state of an object.
    Seen { raw: &'a str, head: &'a Head<'a> },
    /// The last state of an object that was deleted.
    Gone { head: &'a Head<'a> },
    /// All changes up to this resource version were passed on.
    Position(&'a str),
    /// The list is complete as of this position. An object that was not in it and is not newer was deleted.
    ListEnds(&'a str),
    /// A request failed and will be retried.
    Trouble(&'a ApiError),
}

/// The server closes a watch after this time. A long one keeps an idle engine quiet.
const WATCH_SECONDS: u64 = 3000;
const WATCH_SPREAD: Duration = Duration::from_mins(10);
/// The server sends a bookmark about once a minute; a watch without any data for this long is dead.
const SILENCE: Duration = Duration::from_mins(10);
/// A streamed list that stalls for this long falls back to pages.
const LIST_SILENCE: Duration = Duration::from_mins(1);
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of objects in the first page, before their size is known.
const FIRST_PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;
/// How long a page should be: CRDs have up to a megabyte each, and a page is in memory as a whole.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MOST: Duration = Duration::from_secs(30);
/// A watch that lasted this long resets the backoff.
const GOOD_WATCH: Duration = Duration::from_secs(5);
/// The first release that has `sendInitialEvents`, or refuses it. Older ones ignore it and never mark the end
/// of the list.
const STREAMING_SINCE_MINOR: u32 = 27;

/// How the first list is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListBy {
    Stream,
    Pages,
}

/// How a round of list and watch ended.
enum RoundEnd {
    /// The server closed the watch after its time.
    Closed,
    /// A new list is asked for.
    Again,
    /// A request failed.
    Failed(ApiError),
}

/// Follows `source` until the task is aborted, and passes every event to `sink`.
pub(crate) async fn follow(
    client: &ClusterClient,
    source: &FeedSource,
    sink: &mut (impl FnMut(FeedEvent<'_>) + Send),
) -> ! {
    let mut position: Option<String> = None;
    let mut list_by = preferred_list(client);
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MOST);
    loop {
        let started = Instant::now();
        let had_position = position.is_some();
        let ended = round(client, source, &mut position, list_by, sink).await;
        let went_well = started.elapsed() >= GOOD_WATCH || (position.is_some() && !had_position);
        if went_well {
            backoff.reset();
        }
        match ended {
            RoundEnd::Again => {
                position = None;
                continue;
            }
            RoundEnd::Closed if went_well => continue,
            RoundEnd::Closed => {}
            RoundEnd::Failed(error) => {
                if error.is_expired() && position.is_some() {
                    tracing::debug!(kind = %source.resource.gvk, "the watch position has expired, listing again");
                    position = None;
                    // Only a new list that has expired already waits in backoff.
                    if had_position {
                        continue;
                    }
                }
                if position.is_none() && list_by == ListBy::Stream && refuses_streaming(&error) {
                    list_by = ListBy::Pages;
                    continue;
                }
                sink(FeedEvent::Trouble(&error));
            }
        }
        client.rest(backoff.next_spread()).await;
    }
}

fn preferred_list(client: &ClusterClient) -> ListBy {
    let catalog = client.catalog();
    let minor: String = catalog.server.minor.chars().take_while(char::is_ascii_digit).collect();
    match minor.parse::<u32>() {
        Ok(minor) if minor < STREAMING_SINCE_MINOR => ListBy::Pages,
        Ok(_) | Err(_) => ListBy::Stream,
    }
}

/// 400 and 422: the feature is off. A timeout: an aggregated API server ignores the option.
fn refuses_streaming(error: &ApiError) -> bool {
    matches!(error.code(), Some(400 | 422)) || matches!(error, ApiError::TimedOut { .. })
}

/// Lists if there is no position, then watches until the connection ends.
async fn round(
    client: &ClusterClient,
    source: &FeedSource,
    position: &mut Option<String>,
    list_by: ListBy,
    sink: &mut (impl FnMut(FeedEvent<'_>) + Send),
) -> RoundEnd {
    if position.is_none() && list_by == ListBy::Pages {
        sink(FeedEvent::ListBegins);
        match list_pages(client, source, sink).await {
            Ok(version) => {
                sink(FeedEvent::ListEnds(&version));
                *position = Some(version);
            }
            Err(error) => return RoundEnd::Failed(error),
        }
    }
    match watch(client, source, position, sink).await {
        Ok(ended) => ended,
        Err(error) => RoundEnd::Failed(error),
    }
}

async fn list_pages(
    client: &ClusterClient,
    source: &FeedSource,
    sink: &mut (impl FnMut(FeedEvent<'_>) + Send),
) -> Result<String, ApiError> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(default)]
        metadata: ListMeta,
        #[serde(borrow, default)]
        items: Option<Vec<&'a RawValue>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct ListMeta {
        resource_version: String,
        #[serde(rename = "continue")]
        next: String,
    }
    let path = source.resource.collection_path(source.selection.namespace.as_deref())?;
    let bad = |source| ApiError::unreadable(&path, "a list of objects", Some(source));
    let mut next = String::new();
    let mut limit = FIRST_PAGE;
    loop {
        let mut call = Call::new(Method::GET, path.clone()).query("limit", &limit.to_string());
        call = source.selection.narrow(call);
        if !next.is_empty() {
            call = call.query("continue", &next);
        }
        let body: Bytes = client.call(call).await?.body;
        let list: List<'_> = serde_json::from_slice(&body).map_err(bad)?;
        let items = list.items.unwrap_or_default();
        limit = page_limit(items.len(), body.len());
        for item in items {
            let raw = with_type(item.get(), &source.resource);
            let head: Head<'_> = serde_json::from_str(&raw).map_err(bad)?;
            sink(FeedEvent::Seen { raw: &raw, head: &head });
        }
        next = list.metadata.next;
        if next.is_empty() {
            return Ok(list.metadata.resource_version);
        }
    }
}

/// The number of objects to request in a page, given the size of the page before.
fn page_limit(n_items: usize, n_bytes: usize) -> usize {
    let each = (n_bytes / n_items.max(1)).max(1);
    (PAGE_BYTES / each).clamp(1, LARGEST_PAGE)
}

/// The items of a list have no `apiVersion` and `kind`; those of the list hold for all.
fn with_type(raw: &str, resource: &Resource) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TypeMeta<'a> {
        #[serde(default, borrow)]
        api_version: Option<super::Text<'a>>,
    }
    let known = serde_json::from_str::<TypeMeta<'_>>(raw).is_ok_and(|meta| meta.api_version.is_some());
    let inside = raw.trim_start().strip_prefix('{');
    match inside {
        Some(inside) if !known => {
            let api_version = resource.api_version();
            let kind = &resource.gvk.kind;
            let comma = if inside.trim_start().starts_with('}') { "" } else { "," };
            format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\"{comma}{inside}")
        }
        Some(_) | None => raw.to_owned(),
    }
}

/// One line of a watch.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

const LIST_END_MARK: &str = "k8s.io/initial-events-end";

/// Watches from `position`, or streams a list first. Moves `position` to the last event that was passed on.
async fn watch(
    client: &ClusterClient,
    source: &FeedSource,
    position: &mut Option<String>,
    sink: &mut (impl FnMut(FeedEvent<'_>) + Send),
) -> Result<RoundEnd, ApiError> {
    let path = source.resource.collection_path(source.selection.namespace.as_deref())?;
    let request = format!("GET {path}?watch");
    let seconds = WATCH_SECONDS + jitter(WATCH_SPREAD).as_secs();
    let call = Call::new(Method::GET, path)
        .query("watch", "true")
        .query("allowWatchBookmarks", "true")
        .query("timeoutSeconds", &seconds.to_string())
        .urgent(OPEN_TIMEOUT);
    let call = match position.as_deref() {
        Some(version) => call.query("resourceVersion", version),
        None => call.query("sendInitialEvents", "true").query("resourceVersionMatch", "NotOlderThan"),
    };
    let body = client.open(&source.selection.narrow(call)).await?;
    sink(FeedEvent::Opened);
    if position.is_none() {
        sink(FeedEvent::ListBegins);
    }
    let mut lines = Lines::new(body);
    loop {
        let silence = if position.is_none() { LIST_SILENCE } else { SILENCE };
        let line = tokio::select! {
            line = tokio::time::timeout(silence, lines.next()) => line,
            () = source.again.notified() => return Ok(RoundEnd::Again),
        };
        let line = match line {
            Ok(line) => line.map_err(|source| broken(&request, source))?,
            Err(_) => return Err(ApiError::TimedOut { request, after: silence }),
        };
        let Some(line) = line else {
            return if position.is_some() {
                Ok(RoundEnd::Closed)
            } else {
                Err(broken(&request, "the list ended before it was complete".into()))
            };
        };
        pass_on(&request, &line, position, sink)?;
    }
}

fn pass_on(
    request: &str,
    line: &[u8],
    position: &mut Option<String>,
    sink: &mut impl FnMut(FeedEvent<'_>),
) -> Result<(), ApiError> {
    let bad = |source| ApiError::unreadable(request, "an event of a watch", Some(source));
    let event: Event<'_> = serde_json::from_slice(line).map_err(bad)?;
    let raw = event.object.get();
    if event.what == "ERROR" {
        let status = Status::from_answer(500, None, raw.as_bytes());
        return Err(ApiError::Refused { request: request.to_owned(), status: Box::new(status) });
    }
    let head: Head<'_> = serde_json::from_str(raw).map_err(bad)?;
    let version = head.metadata.resource_version.as_ref();
    match event.what {
        "ADDED" | "MODIFIED" => sink(FeedEvent::Seen { raw, head: &head }),
        "DELETED" => sink(FeedEvent::Gone { head: &head }),
        "BOOKMARK" => {
            if position.is_none() {
                if head.marks().annotation(LIST_END_MARK) != Some("true") {
                    return Ok(());
                }
                sink(FeedEvent::ListEnds(version));
                *position = Some(version.to_owned());
                return Ok(());
            }
            sink(FeedEvent::Position(version));
        }
        // Of an event type that is not known only the position counts.
        _ => {}
    }
    // The objects of a list are in no order of resource version: there is no position before the end of the
    // list.
    if let Some(position) = position
        && !version.is_empty()
    {
        position.clear();
        position.push_str(version);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_large_objects_are_short() {
        for (n_items, n_bytes, limit) in [
            (50, 50 * 2_000, LARGEST_PAGE),
            (50, 50 * 400 * 1024, 10),
            (1, 64 * 1024 * 1024, 1),
            (0, 200, LARGEST_PAGE),
            (0, 0, LARGEST_PAGE),
        ] {
            assert_eq!(page_limit(n_items, n_bytes), limit, "{n_items} objects of {n_bytes} bytes");
        }
    }
}
