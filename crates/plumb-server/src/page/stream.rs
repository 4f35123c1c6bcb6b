//! The stream of changes: one connection per open page.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use plumb_page::{Changes, Row, Token};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::caller::PageCaller;
use super::feed::PageFeed;
use crate::body::AnswerBody;

/// How often a stream says that it lives.
const BEAT: Duration = Duration::from_secs(5);
/// Changes of so long are sent together.
const TOGETHER: Duration = Duration::from_millis(100);
/// A client that takes nothing for so long is cut off.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many frames wait in the connection.
const WAITING: usize = 4;

/// One open page.
struct Open {
    feed: Arc<PageFeed>,
    caller: PageCaller,
    headers: HeaderMap,
    token: Token,
    rules: u64,
    sender: mpsc::Sender<Frame<Bytes>>,
}

/// The changes after the token, for as long as the client reads.
pub(super) fn stream(
    feed: Arc<PageFeed>,
    caller: PageCaller,
    headers: HeaderMap,
    from: Option<Token>,
) -> AnswerBody {
    let (sender, frames) = mpsc::channel(WAITING);
    let rules = caller.shared.state.rules_version();
    // Without a token there is nothing to go on from: the first answer tells the client to take a snapshot.
    let token = from.unwrap_or(Token { epoch: 0, number: 0 });
    let open = Open { feed, caller, headers, token, rules, sender };
    tokio::spawn(open.run());
    AnswerBody::stream(frames)
}

impl Open {
    async fn run(mut self) {
        let mut changed = self.feed.follow();
        let mut beat = tokio::time::interval(BEAT);
        loop {
            // A token that ended, or was revoked, ends the stream, too.
            // In a box, it takes no place while the stream waits.
            let identified = Box::pin(self.caller.shared.sessions.identify(&self.headers)).await;
            let Ok(identity) = identified else {
                let _ = self.send("logout", &json!({})).await;
                return;
            };
            self.caller.identity = identity;
            let rules = self.caller.shared.state.rules_version();
            let news = if rules == self.rules { self.news() } else { None };
            self.rules = rules;
            let sent = match news {
                None => {
                    self.token = self.feed.view().token();
                    self.send("reset", &json!({})).await
                }
                Some(Value::Null) => true,
                Some(news) => self.send("rows", &news).await,
            };
            if !sent {
                return;
            }
            tokio::select! {
                () = self.sender.closed() => return,
                _ = beat.tick() => {
                    let now = jiff::Timestamp::now().as_second();
                    if !self.send("beat", &json!({"now": now, "trouble": self.feed.trouble()})).await {
                        return;
                    }
                }
                ended = changed.changed() => {
                    if ended.is_err() {
                        return;
                    }
                    tokio::time::sleep(TOGETHER).await;
                    changed.mark_unchanged();
                }
            }
            // A view that was dropped comes back with the next question.
            if self.feed.ready().await.is_err() {
                let _ = self.send("away", &json!({"why": "this replica does not lead"})).await;
                return;
            }
        }
    }

    /// What is new since the last time; null if nothing, `None` if the client has to start over.
    fn news(&mut self) -> Option<Value> {
        let view = self.feed.view();
        let caller = &self.caller;
        let changes = view.changes(self.token, |project, id| caller.may_see(project, id));
        let Changes::Since { rows, gone } = changes else { return None };
        self.token = view.token();
        if rows.is_empty() && gone.is_empty() {
            return Some(Value::Null);
        }
        let gone: Vec<Value> = gone.iter().map(|id| json!([id.namespace, id.name])).collect();
        Some(json!({"rows": rows.iter().map(|row| Row::cells(row)).collect::<Vec<_>>(), "gone": gone}))
    }

    /// Sends one event. Returns false if the reader is gone or too slow.
    async fn send(&self, event: &str, data: &Value) -> bool {
        let text = format!("event: {event}\nid: {}\ndata: {data}\n\n", self.token);
        self.sender.send_timeout(Frame::data(Bytes::from(text)), PATIENCE).await.is_ok()
    }
}
