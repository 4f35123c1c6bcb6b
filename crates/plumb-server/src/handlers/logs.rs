//! Logs of the pods of an Application.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use plumb_api::Status;
use plumb_engine::TreeNode;
use plumb_kube::{ClusterClient, LogOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tree;
use super::watch::send;
use crate::app_feed::Item;
use crate::call::{Answer, Call};

/// Most pods of one request, unless `server.maxPodLogsToRender` says otherwise.
const MOST_PODS: usize = 10;
/// Most lines of one request that does not follow: the newest ones.
const MOST_LINES: usize = 100_000;
/// Most bytes of one request that does not follow, of all its pods.
const MOST_BYTES: usize = 32_760 << 10;

/// Which lines a request wants.
struct LineFilter {
    text: String,
    is_inverted: bool,
    match_case: bool,
    /// Lines that are younger are not wanted.
    until: Option<Timestamp>,
}

impl LineFilter {
    fn of(call: &Call) -> Result<Self, Status> {
        let filter = call.text("filter");
        let (is_inverted, text) = match filter.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, filter),
        };
        let match_case = call.flag("matchCase") == Some(true);
        let text = if match_case { text.to_owned() } else { text.to_lowercase() };
        let until = Some(call.text("untilTime")).filter(|until| !until.is_empty());
        let until = until.map(str::parse::<Timestamp>).transpose();
        let until =
            until.map_err(|error| Status::invalid(format!("invalid untilTime parameter value: {error}")))?;
        Ok(Self { text, is_inverted, match_case, until })
    }

    /// Is this line, and so is everything after it, younger than what is wanted?
    fn is_over(&self, entry: &Value) -> bool {
        let time = entry["timeStampStr"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        self.until.zip(time).is_some_and(|(until, time)| time > until)
    }

    fn wants(&self, entry: &Value) -> bool {
        !self.is_over(entry) && self.wants_text(entry["content"].as_str().unwrap_or_default())
    }

    fn wants_text(&self, line: &str) -> bool {
        if self.text.is_empty() {
            return true;
        }
        let has = if self.match_case {
            line.contains(&self.text)
        } else {
            line.to_lowercase().contains(&self.text)
        };
        has != self.is_inverted
    }
}

/// The logs of the pods that the request means.
pub(super) async fn pod_logs(call: Arc<Call>) -> Result<Answer, Status> {
    let app = call.app()?.clone();
    call.require("logs", "get", &app.object(call.namespace()))?;
    let nodes = tree::nodes(&call, &app)?;
    let pods = pods(&call, &nodes);
    let setting = call.shared.state.setting("server.maxPodLogsToRender").parse().unwrap_or(MOST_PODS);
    if pods.len() > setting {
        return Err(Status::invalid("max pods to view logs are reached. Please provide more granular query"));
    }
    let away = || Status::unavailable("the cluster of the application is not connected");
    let (client, runtime) = call.leader()?.cluster_client(&app.typed()?).ok_or_else(away)?;
    let options = bounded(options(&call), pods.len(), call.flag("follow") == Some(true));
    let filter = Arc::new(LineFilter::of(&call)?);
    let (sender, receiver) = mpsc::channel(256);
    if call.flag("follow") == Some(true) {
        runtime.spawn(follow_all(client, pods, options, filter, sender));
    } else {
        runtime.spawn(read_all(client, pods, options, filter, sender));
    }
    Ok(Answer::Stream(receiver))
}

fn options(call: &Call) -> LogOptions {
    let count = |field: &str| call.number(field).filter(|n| *n > 0).and_then(|n| u32::try_from(n).ok());
    let since_time = call.request.get("sinceTime").and_then(Value::as_str);
    let since_time = since_time.and_then(|text| text.parse::<Timestamp>().ok());
    let since_time = since_time.map(|time| Timestamp::now().as_second() - time.as_second());
    LogOptions {
        container: Some(call.text("container").to_owned()).filter(|name| !name.is_empty()),
        tail_lines: count("tailLines"),
        previous: call.flag("previous") == Some(true),
        timestamps: true,
        since_seconds: count("sinceSeconds").or(since_time.and_then(|n| u32::try_from(n.max(1)).ok())),
        limit_bytes: None,
    }
}

/// Lines are read whole before they are sent, unless they are followed. The API server sends the newest lines.
fn bounded(options: LogOptions, n_pods: usize, follows: bool) -> LogOptions {
    if follows {
        return options;
    }
    let most = u32::try_from(MOST_LINES).unwrap_or(u32::MAX);
    let bytes = u32::try_from(MOST_BYTES / n_pods.max(MOST_PODS)).unwrap_or(u32::MAX);
    LogOptions {
        tail_lines: Some(options.tail_lines.map_or(most, |asked| asked.min(most))),
        limit_bytes: Some(bytes),
        ..options
    }
}

/// Namespace and name of the pods: the one that the request names, or all below the object that it names.
fn pods(call: &Call, nodes: &[TreeNode]) -> Vec<(String, String)> {
    let is_pod = |node: &TreeNode| node.node.key.group.is_empty() && node.node.key.kind == "Pod";
    let named = |field: &str, value: &str| call.text(field).is_empty() || call.text(field) == value;
    let is_asked = |node: &TreeNode| {
        let key = &node.node.key;
        named("group", &key.group)
            && named("kind", &key.kind)
            && named("resourceName", &key.name)
            && named("namespace", key.namespace_or_empty())
    };
    let pod = call.text("podName");
    let mut found: Vec<(String, String)> = nodes
        .iter()
        .filter(|node| is_pod(node))
        .filter(|node| {
            if !pod.is_empty() {
                return node.node.key.name == pod && named("namespace", node.node.key.namespace_or_empty());
            }
            ancestors(node, nodes).into_iter().any(is_asked)
        })
        .map(|node| (node.node.key.namespace_or_empty().to_owned(), node.node.key.name.clone()))
        .collect();
    found.sort();
    found
}

/// The node and everything above it. References between owners may form a circle.
fn ancestors<'n>(node: &'n TreeNode, nodes: &'n [TreeNode]) -> Vec<&'n TreeNode> {
    let mut all = vec![node];
    let mut next = 0;
    while let Some(node) = all.get(next).copied() {
        next += 1;
        for parent in &node.parents {
            let known = nodes.iter().find(|other| other.node.uid == parent.uid);
            if let Some(parent) =
                known.filter(|parent| !all.iter().any(|seen| seen.node.uid == parent.node.uid))
            {
                all.push(parent);
            }
        }
    }
    all
}

/// A line with its time.
fn entry(pod: &str, line: &str) -> Value {
    let (time, content) = match line.split_once(' ') {
        Some((time, content)) if time.parse::<Timestamp>().is_ok() => (time, content),
        _ => ("", line),
    };
    let mut entry = json!({"content": content, "timeStampStr": time, "podName": pod, "last": false});
    if !time.is_empty() {
        entry["timeStamp"] = json!(time);
    }
    entry
}

type Sender = mpsc::Sender<Result<Arc<Item>, Status>>;

/// Follows all pods until they end.
async fn follow_all(
    client: ClusterClient,
    pods: Vec<(String, String)>,
    options: LogOptions,
    filter: Arc<LineFilter>,
    sender: Sender,
) {
    let end = end(&pods);
    let follow_one = |(namespace, pod)| {
        follow(client.clone(), namespace, pod, options.clone(), Arc::clone(&filter), sender.clone())
    };
    join_all(pods.into_iter().map(follow_one)).await;
    if let Some(end) = end {
        send(&sender, Arc::new(Item::new(end))).await;
    }
}

/// The last message. Without a pod there is no log, which clients must be able to tell from an empty one.
fn end(pods: &[(String, String)]) -> Option<Value> {
    let end = json!({"content": "", "timeStampStr": "", "podName": "", "last": true});
    (!pods.is_empty()).then_some(end)
}

async fn follow(
    client: ClusterClient,
    namespace: String,
    pod: String,
    options: LogOptions,
    filter: Arc<LineFilter>,
    sender: Sender,
) {
    let mut stream = match client.follow_logs(&namespace, &pod, &options).await {
        Ok(stream) => stream,
        Err(error) => {
            send(&sender, Arc::new(Item::new(entry(&pod, &error.to_string())))).await;
            return;
        }
    };
    loop {
        let line = tokio::select! {
            line = stream.next_line() => line,
            () = sender.closed() => return,
        };
        let Ok(Some(line)) = line else { return };
        let entry = entry(&pod, &line);
        if filter.is_over(&entry) {
            return;
        }
        if filter.wants(&entry) && !send(&sender, Arc::new(Item::new(entry))).await {
            return;
        }
    }
}

async fn read_all(
    client: ClusterClient,
    pods: Vec<(String, String)>,
    options: LogOptions,
    filter: Arc<LineFilter>,
    sender: Sender,
) {
    let mut entries = Vec::new();
    for (namespace, pod) in &pods {
        match client.logs(namespace, pod, &options).await {
            Ok(text) => entries.extend(text.lines().map(|line| entry(pod, line))),
            // An error of one pod does not hide the others.
            Err(error) => entries.push(entry(pod, &error.to_string())),
        }
    }
    entries.retain(|entry| filter.wants(entry));
    entries.sort_by(|one, other| one["timeStampStr"].as_str().cmp(&other["timeStampStr"].as_str()));
    // The newest lines are those that a user looks for.
    entries.drain(..entries.len().saturating_sub(MOST_LINES));
    for entry in entries.into_iter().chain(end(&pods)) {
        if !send(&sender, Arc::new(Item::new(entry))).await {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_that_are_not_followed_are_bounded() {
        let asked = |tail_lines: Option<u32>, follows: bool| {
            let options = LogOptions { tail_lines, ..LogOptions::default() };
            let bounded = bounded(options, 40, follows);
            (bounded.tail_lines, bounded.limit_bytes)
        };
        assert_eq!(asked(None, false), (Some(100_000), Some(819 << 10)));
        assert_eq!(asked(Some(5), false), (Some(5), Some(819 << 10)));
        assert_eq!(asked(Some(1_000_000), false), (Some(100_000), Some(819 << 10)));
        assert_eq!(asked(None, true), (None, None));
    }

    #[test]
    fn a_line_has_its_time() {
        let shown = entry("p", "2026-11-15T19:00:00.5Z hello world");
        assert_eq!(
            (shown["content"].as_str(), shown["timeStampStr"].as_str()),
            (Some("hello world"), Some("2026-11-15T19:00:00.5Z"))
        );
        assert_eq!(entry("p", "no time")["content"], "no time");
    }

    #[test]
    fn lines_are_wanted_by_their_text_and_their_time() {
        let filter = |text: &str, is_inverted: bool| LineFilter {
            text: text.to_owned(),
            is_inverted,
            match_case: false,
            until: Some("2026-11-15T19:00:00Z".parse().unwrap()),
        };
        let (early, late) = ("2026-11-15T18:59:59.9Z A Word", "2026-11-15T19:00:00.1Z A Word");
        assert!(
            filter("word", false).wants(&entry("p", early))
                && !filter("word", true).wants(&entry("p", early))
        );
        assert!(filter("", false).is_over(&entry("p", late)) && !filter("", false).wants(&entry("p", late)));
        assert!(filter("", false).wants(&entry("p", "no time")));
        assert!(end(&[]).is_none() && end(&[("n".to_owned(), "p".to_owned())]).is_some());
    }
}
