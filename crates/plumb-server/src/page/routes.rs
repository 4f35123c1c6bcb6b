//! Maps the paths of the page to answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::{HeaderMap, Method as HttpVerb, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use plumb_api::{Code, Status, query_pairs};
use plumb_core::app::AppId;
use plumb_core::object::ObjectKey;
use serde_json::{Value, json};

use super::acts::{self, Acted};
use super::caller::{PageCaller, PageMode};
use super::feed::PageFeed;
use super::reply::{document, error_answer, events_answer, file, json_answer};
use super::{reads, settings, stream, undo};
use crate::body::AnswerBody;
use crate::call::{Answer, Shared};
use crate::call_rates::CallRates;

/// Below this are the page's own calls.
const CALLS: &str = "/api/plumb/v1/";
/// The page asks with this header. A form of another site cannot send it.
const HEADER: &str = "x-plumb-page";
/// Largest body of a request.
const LARGEST: usize = 256 << 10;
/// Longest time for a body to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Runs a call of the API for the caller of this request.
pub(crate) type Run<'r> =
    dyn Fn(&'static str, Value) -> BoxFuture<'r, Result<Answer, Status>> + Send + Sync + 'r;

/// One request.
pub(crate) struct PageRequest<'r> {
    pub(crate) verb: &'r HttpVerb,
    pub(crate) path: &'r str,
    pub(crate) query: &'r str,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: Incoming,
    /// Who counts for the rates if nobody is logged in.
    pub(crate) peer: String,
    pub(crate) rates: &'r CallRates,
    /// Gets a token for the client to go on with, if the one of the request ends soon.
    pub(crate) renewed: &'r Mutex<Option<String>>,
}

/// The page.
pub(crate) struct Page {
    shared: Arc<Shared>,
    feed: Arc<PageFeed>,
    mode: PageMode,
    base: String,
}

/// True if the page answers this path: its calls, its files, its screens.
pub(crate) fn is_page_path(verb: &HttpVerb, path: &str) -> bool {
    if path.starts_with(CALLS) {
        return true;
    }
    let is_read = matches!(*verb, HttpVerb::GET | HttpVerb::HEAD);
    is_read && !path.starts_with("/api/") && !path.starts_with("/auth/")
}

impl Page {
    /// The page below this path.
    pub(crate) fn new(shared: Arc<Shared>, mode: PageMode, base: &str) -> Self {
        let base = match base.trim_matches('/') {
            "" => "/".to_owned(),
            base => format!("/{base}/"),
        };
        Self { feed: PageFeed::new(Arc::clone(&shared)), shared, mode, base }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.mode != PageMode::Off
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: PageRequest<'_>, run: &Run<'_>) -> Response<AnswerBody> {
        let headers = request.headers;
        if let Some(name) = request.path.strip_prefix("/assets/") {
            return file(headers, name);
        }
        let Some(call) = request.path.strip_prefix(CALLS) else { return document(&self.base) };
        let answer = if *request.verb == HttpVerb::POST {
            self.write(call, request, run).await
        } else if *request.verb == HttpVerb::GET {
            self.read(call, &request).await
        } else {
            Err(Status::new(Code::Unimplemented, "the page does not use this method"))
        };
        answer.unwrap_or_else(|status| error_answer(headers, &status))
    }

    /// Who asks. Each request counts as a call of the API does.
    async fn caller(&self, request: &PageRequest<'_>) -> Result<PageCaller, Status> {
        self.shared.state.ready().await?;
        let identity = self.shared.sessions.identify(request.headers).await?;
        if identity.renewed.is_some() {
            request.renewed.lock().clone_from(&identity.renewed);
        }
        let known = Some(&identity.username).filter(|name| !name.is_empty()).unwrap_or(&request.peer);
        if !request.rates.take(known, Instant::now()) {
            return Err(Status::new(Code::ResourceExhausted, "too many calls; try again in a second"));
        }
        Ok(PageCaller { shared: Arc::clone(&self.shared), identity, mode: self.mode })
    }

    async fn read(&self, call: &str, request: &PageRequest<'_>) -> Result<Response<AnswerBody>, Status> {
        let (query, headers) = (request.query, request.headers);
        let caller = self.caller(request).await?;
        let feed = &self.feed;
        let parts: Vec<String> = call.split('/').map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let value = match parts.as_slice() {
            ["me"] => reads::me(&caller),
            ["stream"] => {
                feed.ready().await?;
                let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
                let asked = query_pairs(query).find(|(name, _)| name == "from").map(|(_, token)| token);
                let from = last.or(asked).and_then(|token| token.parse().ok());
                let body = stream::stream(Arc::clone(feed), caller, headers.clone(), from);
                return Ok(events_answer(body));
            }
            ["undo"] => undo::list(&caller).await?,
            ["settings"] => settings::list(&caller).await?,
            ["apps", namespace, name] => {
                let id = AppId { namespace: (*namespace).to_owned(), name: (*name).to_owned() };
                reads::app(feed, &caller, &id).await?
            }
            ["apps", namespace, name, "o", group, kind, object_namespace, object, "users"] => {
                let id = AppId { namespace: (*namespace).to_owned(), name: (*name).to_owned() };
                let inside = Some(named(object_namespace)).filter(|namespace| !namespace.is_empty());
                let key = ObjectKey::new(named(group), *kind, inside.map(str::to_owned), *object);
                reads::users(&caller, &id, &key)?
            }
            ["find", name] => reads::find(feed, &caller, name).await?,
            [list] => reads::over_all(feed, caller, list).await?,
            _ => return Err(Status::not_found("the page has no such call")),
        };
        Ok(json_answer(StatusCode::OK, headers, &value))
    }

    async fn write(
        &self,
        call: &str,
        request: PageRequest<'_>,
        run: &Run<'_>,
    ) -> Result<Response<AnswerBody>, Status> {
        let headers = request.headers;
        refuse_other_sites(headers)?;
        let caller = self.caller(&request).await?;
        let read = tokio::time::timeout(BODY_WITHIN, Limited::new(request.body, LARGEST).collect()).await;
        let bytes = read
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| Status::invalid("the request is too large or late"))?;
        let body: Value = serde_json::from_slice(&bytes.to_bytes())
            .map_err(|error| Status::invalid(format!("cannot read the request: {error}")))?;
        let restores = body.get("verb").and_then(Value::as_str) == Some("restore");
        let (status, value) = match call {
            "plans" if restores => (StatusCode::OK, undo::show(&caller, &body).await?),
            "plans" => (StatusCode::OK, acts::show(&self.feed, &caller, &body).await?),
            "acts" => {
                let acted = if restores {
                    undo::act(&caller, &body).await?
                } else {
                    acts::act(&self.feed, &caller, &body, run).await?
                };
                match acted {
                    Acted::Done(value) => (StatusCode::OK, value),
                    Acted::Moved(plan) => (StatusCode::CONFLICT, json!({"plan": plan})),
                }
            }
            _ => return Err(Status::not_found("the page has no such call")),
        };
        Ok(json_answer(status, headers, &value))
    }
}

/// A write comes from the page itself, not from a form or a script of another site.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Status> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_json = text("content-type") == Some("application/json");
    let is_same = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    if text(HEADER).is_some() && is_json && is_same {
        return Ok(());
    }
    Err(Status::new(Code::PermissionDenied, "this call is for the page only"))
}

/// A part of a path that may be empty, which is written as a dash.
fn named(part: &str) -> &str {
    if part == "-" { "" } else { part }
}

/// A part of a path with its `%` escapes decoded.
fn decoded(part: &str) -> String {
    let pair = format!("x={}", part.replace('+', "%2B"));
    query_pairs(&pair).next().map(|(_, value)| value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_paths_are_the_pages() {
        let check = |verb: HttpVerb, path: &str, expected: bool| {
            assert_eq!(is_page_path(&verb, path), expected, "{verb} {path}");
        };
        check(HttpVerb::GET, "/", true);
        check(HttpVerb::GET, "/applications/argocd/payments", true);
        check(HttpVerb::GET, "/assets/main.js", true);
        check(HttpVerb::POST, "/api/plumb/v1/acts", true);
        check(HttpVerb::GET, "/api/v1/applications", false);
        check(HttpVerb::POST, "/applications", false);
        check(HttpVerb::GET, "/auth/logout", false);
    }

    #[test]
    fn only_the_page_itself_writes() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
                .collect()
        };
        let json = ("content-type", "application/json");
        let page = ("x-plumb-page", "1");
        assert!(refuse_other_sites(&headers(&[json, page])).is_ok());
        assert!(refuse_other_sites(&headers(&[json, page, ("sec-fetch-site", "same-origin")])).is_ok());
        assert!(refuse_other_sites(&headers(&[json, page, ("sec-fetch-site", "cross-site")])).is_err());
        assert!(refuse_other_sites(&headers(&[json])).is_err());
        assert!(refuse_other_sites(&headers(&[("content-type", "text/plain"), page])).is_err());
    }

    #[test]
    fn parts_of_paths_are_decoded() {
        assert_eq!(decoded("a%2Fb+c"), "a/b+c");
        assert_eq!(decoded("plain"), "plain");
    }
}
