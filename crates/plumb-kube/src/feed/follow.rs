//! One kind followed for ever.
//!
//! The first list is a stream where the server offers it (`sendInitialEvents`), pages where not. After it a
//! watch goes on from the last position; a broken connection resumes there without listing again. Only when
//! the server says that the position is too old (410) does a new list start. What was there before and is not
//! in the new list is gone, but only once the list is complete: a list that breaks off says nothing.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::head::Head;
use super::lines::Lines;
use crate::backoff::{Backoff, jitter};
use crate::catalog::Resource;
use crate::client::{Call, ClusterClient, broken};
use crate::error::{ApiError, Status};
use crate::read::Selection;

/// What is followed.
#[derive(Clone, Debug)]
pub(crate) struct FeedSource {
    pub(crate) resource: Resource,
    pub(crate) selection: Selection,
}

/// What the follower tells.
pub(crate) enum FeedEvent<'a> {
    /// A connection stands.
    Opened,
    /// A list begins: all objects will be seen, then `ListEnds` comes; or the list begins again.
    ListBegins,
    /// An object as it is.
    Seen { raw: &'a str, head: &'a Head<'a> },
    /// An object as it was when it was deleted.
    Gone { head: &'a Head<'a> },
    /// Everything up to here was told.
    Position(&'a str),
    /// The list is complete as of this position. Whatever was not seen and is not newer is gone.
    ListEnds(&'a str),
    /// Something failed and will be tried again.
    Trouble(&'a ApiError),
}

/// The server closes a watch after its own time; a long one makes an idle engine quiet.
const WATCH_SECONDS: u64 = 3000;
const WATCH_SPREAD: Duration = Duration::from_mins(10);
/// Bookmarks come about once a minute; a watch that is silent for this long is dead.
const SILENCE: Duration = Duration::from_mins(10);
/// A streamed list that stalls for this long falls back to pages.
const LIST_SILENCE: Duration = Duration::from_mins(1);
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const PAGE: &str = "500";
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MOST: Duration = Duration::from_secs(30);
/// A watch that lasted this long was a good one.
const GOOD_WATCH: Duration = Duration::from_secs(5);
/// The first release that knows `sendInitialEvents`, if only to refuse it; older ones ignore it and would
/// never say that the list is complete.
const STREAMING_SINCE_MINOR: u32 = 27;

/// How the first list is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListBy {
    Stream,
    Pages,
}

/// Why a round ended.
enum Ended {
    /// The server closed the watch in good order.
    InOrder,
    /// It failed.
    Failed(ApiError),
}

/// Follows `source` for ever, telling `sink`.
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
            Ended::InOrder if went_well => continue,
            Ended::InOrder => {}
            Ended::Failed(error) => {
                if error.is_expired() && position.is_some() {
                    tracing::debug!(kind = %source.resource.gvk, "the watch is too old, listing again");
                    position = None;
                    // Only a list that expires on its own start needs to wait.
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

/// 422 and 400: the feature is off. A stall: an aggregated server that ignores the option.
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
) -> Ended {
    if position.is_none() && list_by == ListBy::Pages {
        sink(FeedEvent::ListBegins);
        match list_pages(client, source, sink).await {
            Ok(version) => {
                sink(FeedEvent::ListEnds(&version));
                *position = Some(version);
            }
            Err(error) => return Ended::Failed(error),
        }
    }
    match watch(client, source, position, sink).await {
        Ok(()) => Ended::InOrder,
        Err(error) => Ended::Failed(error),
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
    loop {
        let mut call = Call::new(Method::GET, path.clone()).query("limit", PAGE);
        call = source.selection.narrow(call);
        if !next.is_empty() {
            call = call.query("continue", &next);
        }
        let body: Bytes = client.call(call).await?.body;
        let list: List<'_> = serde_json::from_slice(&body).map_err(bad)?;
        for item in list.items.unwrap_or_default() {
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

/// The items of a list carry no kind of their own; the list's kind says it for all.
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

/// Watches from `position`, or lists by stream first, and keeps `position` at the last event told.
async fn watch(
    client: &ClusterClient,
    source: &FeedSource,
    position: &mut Option<String>,
    sink: &mut (impl FnMut(FeedEvent<'_>) + Send),
) -> Result<(), ApiError> {
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
        let line = match tokio::time::timeout(silence, lines.next()).await {
            Ok(line) => line.map_err(|source| broken(&request, source))?,
            Err(_) => return Err(ApiError::TimedOut { request, after: silence }),
        };
        let Some(line) = line else {
            return if position.is_some() {
                Ok(())
            } else {
                Err(broken(&request, "the list broke off".into()))
            };
        };
        tell(&request, &line, position, sink)?;
    }
}

fn tell(
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
        // An event type that does not exist yet: its position is all that can be taken from it.
        _ => {}
    }
    // Inside a list the objects' versions are in no order: there is no position before the list's own.
    if let Some(position) = position
        && !version.is_empty()
    {
        position.clear();
        position.push_str(version);
    }
    Ok(())
}
