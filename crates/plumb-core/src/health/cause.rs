//! Why an object is not healthy: the chain of causes from it down to the pod, with the symptoms of each.
//!
//! A Deployment says "1 of 3 replicas"; the reason is in a container of a pod of a replica set of it. The tree of
//! children, their events and the last lines of their logs are an input; nothing is fetched here.

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::read::{find, find_text};
use super::{Health, HealthStatus, assess};
use crate::object::{Manifest, ObjectKey};
use crate::text::{redact, redact_lines};

/// How deep a tree is walked, and how many lines of a log are shown.
const MAX_DEPTH: usize = 16;
const MAX_LOG_LINES: usize = 5;
const MAX_EVENTS: usize = 3;
const MAX_LETTERS: usize = 300;

/// An object with what belongs to it. Children are those that name it as owner.
#[derive(Clone, Debug)]
pub struct Node<'tree> {
    /// The object.
    pub object: &'tree Manifest,
    /// Its health, if it has any.
    pub health: Option<Health>,
    /// What it owns.
    pub children: Vec<Node<'tree>>,
    /// Events about it.
    pub events: Vec<Event>,
    /// The last lines of its containers' logs.
    pub logs: Vec<LogTail>,
}

impl<'tree> Node<'tree> {
    /// An object with the judgement on it, without children, events and logs.
    pub fn judged(object: &'tree Manifest, health: Option<Health>) -> Self {
        Self { object, health, children: Vec::new(), events: Vec::new(), logs: Vec::new() }
    }

    /// An object by itself, as [`assess`] judges it.
    pub fn leaf(object: &'tree Manifest) -> Self {
        Self::judged(object, assess(object))
    }
}

/// One Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Is it a warning?
    pub is_warning: bool,
    /// `FailedScheduling`, `BackOff` …
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// How often it happened.
    pub count: u32,
    /// When it happened first.
    pub first: Option<Timestamp>,
}

/// The last lines of a container's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTail {
    /// Which container.
    pub container: String,
    /// Its lines, oldest first.
    pub lines: Vec<String>,
}

/// Something visible on an object that may be why it is unhealthy. Texts are redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// What its health says.
    Health(Health),
    /// The pod cannot be scheduled.
    Unschedulable {
        /// What the scheduler says.
        message: String,
    },
    /// A container is crash looping.
    CrashLoop {
        /// Which container.
        container: String,
        /// Number of restarts.
        restarts: i64,
        /// When its pod was created.
        since: String,
        /// How it ended the last time, if that is known.
        last_end: Option<End>,
    },
    /// A container waits.
    Waiting {
        /// Which container.
        container: String,
        /// `CrashLoopBackOff`, `ImagePullBackOff`, `CreateContainerConfigError` …
        reason: String,
        /// More words, if there are any.
        message: String,
    },
    /// A container ended, now or before its last restart.
    Ended {
        /// Which container.
        container: String,
        /// How.
        end: End,
    },
    /// A container was restarted.
    Restarted {
        /// Which container.
        container: String,
        /// How often.
        count: i64,
    },
    /// A container is running but not ready.
    NotReady {
        /// Which container.
        container: String,
    },
    /// A warning about it.
    Event(Event),
    /// The last lines of a log.
    Log(LogTail),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Its exit code.
    pub exit_code: i64,
    /// `OOMKilled`, `Error` …
    pub reason: String,
    /// What it left as its termination message.
    pub message: String,
}

impl End {
    fn read(state: &Value) -> Self {
        let text = |field: &str| redact(find_text(state, field).unwrap_or_default(), MAX_LETTERS);
        Self {
            exit_code: find(state, "exitCode").and_then(Value::as_i64).unwrap_or(0),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

/// `exit code 1 (Error): cannot open db`.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.exit_code)?;
        if !self.reason.is_empty() {
            write!(f, " ({})", self.reason)?;
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

impl Symptom {
    /// The symptom nearest to the root cause has the smallest number.
    fn rank(&self) -> u8 {
        match self {
            Self::Unschedulable { .. } | Self::CrashLoop { .. } | Self::Waiting { .. } => 0,
            Self::Ended { .. } => 1,
            Self::NotReady { .. } | Self::Restarted { .. } => 2,
            Self::Health(_) => 3,
            Self::Event(_) => 4,
            Self::Log(_) => 5,
        }
    }

    /// The part that stays the same while the problem lasts: no counts, no times, no log lines.
    fn essence(&self) -> String {
        match self {
            Self::Health(health) => health.status.to_string(),
            Self::Unschedulable { .. } => "unschedulable".to_owned(),
            Self::CrashLoop { container, last_end, .. } => {
                let end = last_end.as_ref().map(|end| (end.exit_code, end.reason.as_str()));
                format!("loop {container} {end:?}")
            }
            Self::Waiting { container, reason, .. } => format!("wait {container} {reason}"),
            Self::Ended { container, end } => format!("end {container} {} {}", end.exit_code, end.reason),
            Self::Restarted { container, .. } => format!("restarted {container}"),
            Self::NotReady { container } => format!("not ready {container}"),
            Self::Event(event) => format!("event {}", event.reason),
            Self::Log(tail) => format!("log {}", tail.container),
        }
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = |f: &mut fmt::Formatter<'_>, words: &str| {
            if words.is_empty() { Ok(()) } else { write!(f, ": {words}") }
        };
        match self {
            Self::Health(health) => write!(f, "{health}"),
            Self::Unschedulable { message } => {
                f.write_str("cannot be scheduled")?;
                more(f, message)
            }
            Self::CrashLoop { container, restarts, since, last_end } => {
                let times = if *restarts == 1 { "restart" } else { "restarts" };
                write!(f, "container {container} keeps crashing (CrashLoopBackOff): {restarts} {times}")?;
                if !since.is_empty() {
                    write!(f, " since {since}")?;
                }
                match last_end {
                    Some(end) => write!(f, ", last {end}"),
                    None => Ok(()),
                }
            }
            Self::Waiting { container, reason, message } => {
                write!(f, "container {container} is waiting: {reason}")?;
                more(f, message)
            }
            Self::Ended { container, end } => write!(f, "container {container} ended with {end}"),
            Self::Restarted { container, count } => {
                let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
                write!(f, "container {container} was restarted {times}")
            }
            Self::NotReady { container } => write!(f, "container {container} is running but not ready"),
            Self::Event(event) => {
                write!(f, "event {}", event.reason)?;
                if event.count > 1 {
                    write!(f, " ({} times)", event.count)?;
                }
                more(f, &event.message)
            }
            Self::Log(tail) => write!(f, "last lines of {}: {}", tail.container, tail.lines.join(" | ")),
        }
    }
}

/// One cause in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Which object; `None` for one without a name.
    pub key: Option<ObjectKey>,
    /// What can be seen on it.
    pub symptoms: Vec<Symptom>,
    /// How many of its siblings are equally unhealthy.
    pub n_alike: usize,
}

impl Cause {
    /// Which object, and the one symptom that is nearest to the reason, with the last line of its log.
    fn in_short(&self) -> Option<String> {
        let nearest = self.symptoms.iter().min_by_key(|symptom| symptom.rank())?;
        let log = self.symptoms.iter().find_map(|symptom| match symptom {
            Symptom::Log(tail) => tail.lines.iter().rev().find(|line| !line.trim().is_empty()),
            _ => None,
        });
        let event = self.symptoms.iter().find(|symptom| matches!(symptom, Symptom::Event(_)));
        let mut words = nearest.to_string();
        if let Some(event) = event.filter(|event| nearest.rank() > 1 && *event != nearest) {
            words = format!("{words}; {event}");
        }
        if let Some(line) = log {
            words = format!("{words}; last line of its log: {}", line.trim());
        }
        Some(words)
    }
}

/// The part of a chain that stays the same while the problem lasts. Two chains with the same essence differ only in
/// counts and times.
pub fn essence(causes: &[Cause]) -> String {
    let mut text = String::new();
    for cause in causes {
        if let Some(key) = &cause.key {
            text.push_str(&key.to_string());
        }
        for symptom in &cause.symptoms {
            text.push_str("; ");
            text.push_str(&symptom.essence());
        }
        text.push('\n');
    }
    text
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}")?,
            None => f.write_str("an unnamed object")?,
        }
        if self.n_alike > 0 {
            write!(f, " (and {} more like it)", self.n_alike)?;
        }
        for (index, symptom) in self.symptoms.iter().enumerate() {
            write!(f, "{}{symptom}", if index == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

/// The chain of causes: the object first, then at each level the unhealthiest child. Empty if the object and all its
/// children are healthy.
pub fn chain(node: &Node<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut current = node;
    let mut n_alike = 0;
    for depth in 0..MAX_DEPTH {
        let symptoms = symptoms(current);
        let worst = badness(current, MAX_DEPTH);
        if depth == 0 && worst == 0 && symptoms.is_empty() {
            return causes;
        }
        causes.push(Cause { key: current.object.key(), symptoms, n_alike });
        let ranked: Vec<(u8, &Node<'_>)> =
            current.children.iter().map(|child| (badness(child, MAX_DEPTH), child)).collect();
        let Some(most) = ranked.iter().map(|(badness, _)| *badness).max().filter(|badness| *badness > 0)
        else {
            break;
        };
        n_alike = ranked.iter().filter(|(badness, _)| *badness == most).count() - 1;
        let Some((_, child)) = ranked.into_iter().find(|(badness, _)| *badness == most) else { break };
        current = child;
    }
    causes
}

/// The health with its cause: the symptom of the unhealthy child, or symptoms of the object itself that its message does
/// not mention. The status stays the object's own: only objects that an app manages directly count for the app.
pub fn explained(health: Health, node: &Node<'_>, causes: &[Cause], is_stuck: bool) -> Health {
    let is_ill = matches!(health.status, HealthStatus::Degraded | HealthStatus::Unknown);
    // Children of a progressing object are progressing too; that adds nothing.
    let is_ill_below = node.children.iter().any(|child| badness(child, MAX_DEPTH) >= TROUBLED);
    if !(is_ill || is_ill_below || is_stuck) {
        return health;
    }
    let Some(cause) = causes.last() else { return health };
    let is_itself = cause.key == node.object.key();
    let says_more = cause.symptoms.iter().any(|symptom| !matches!(symptom, Symptom::Health(_)));
    if !says_more && (is_itself || !is_ill_below) {
        return health;
    }
    let Some(words) = cause.in_short() else { return health };
    let words = match &cause.key {
        Some(key) if !is_itself => format!("{key}: {words}"),
        Some(_) | None => words,
    };
    let message = if health.message.is_empty() { words } else { format!("{}; {words}", health.message) };
    Health { message, ..health }
}

const TROUBLED: u8 = 3;
const DEGRADED: u8 = 4;

/// Is this waiting reason of a container an error?
pub fn is_bad_wait(reason: &str) -> bool {
    reason.starts_with("Err") || reason.ends_with("Error") || reason.ends_with("BackOff")
}

/// Has a `Pending` or progressing pod a problem that does not resolve without a change? The health of a pod ignores its
/// init containers and the scheduler.
fn is_troubled(node: &Node<'_>) -> bool {
    let mut found = Vec::new();
    if node.object.group().is_empty() && node.object.kind() == "Pod" {
        note_pod(node.object.value(), &mut found);
    }
    found.iter().any(|symptom| match symptom {
        Symptom::CrashLoop { .. } | Symptom::Unschedulable { .. } => true,
        Symptom::Waiting { reason, .. } => is_bad_wait(reason),
        _ => false,
    })
}

/// How unhealthy an object or any of its children is.
fn badness(node: &Node<'_>, depth: usize) -> u8 {
    let own = match node.health.as_ref().map(|health| health.status) {
        None | Some(HealthStatus::Healthy) => 0,
        Some(HealthStatus::Suspended) => 1,
        Some(HealthStatus::Progressing) if is_troubled(node) => TROUBLED,
        Some(HealthStatus::Progressing) => 2,
        Some(HealthStatus::Degraded | HealthStatus::Missing | HealthStatus::Unknown) => DEGRADED,
    };
    if depth == 0 {
        return own;
    }
    node.children.iter().map(|child| badness(child, depth - 1)).fold(own, u8::max)
}

fn symptoms(node: &Node<'_>) -> Vec<Symptom> {
    let mut found = Vec::new();
    if node.object.group().is_empty() && node.object.kind() == "Pod" {
        note_pod(node.object.value(), &mut found);
    }
    if found.is_empty()
        && let Some(health) = &node.health
        && health.status != HealthStatus::Healthy
    {
        let message = redact(&health.message, MAX_LETTERS);
        found.push(Symptom::Health(Health { message, status: health.status }));
    }
    let warnings = node.events.iter().filter(|event| event.is_warning).rev().take(MAX_EVENTS);
    found.extend(warnings.map(|event| {
        Symptom::Event(Event { message: redact(&event.message, MAX_LETTERS), ..event.clone() })
    }));
    found.extend(node.logs.iter().filter(|tail| !tail.lines.is_empty()).map(|tail| {
        let first = tail.lines.len().saturating_sub(MAX_LOG_LINES);
        let lines = redact_lines(&tail.lines[first..], MAX_LETTERS);
        Symptom::Log(LogTail { container: tail.container.clone(), lines })
    }));
    found
}

fn note_pod(pod: &Value, found: &mut Vec<Symptom>) {
    let conditions = find(pod, "status.conditions").and_then(Value::as_array).into_iter().flatten();
    for condition in conditions {
        let is = |field: &str, word: &str| find_text(condition, field) == Some(word);
        if is("type", "PodScheduled") && is("status", "False") {
            let message = redact(find_text(condition, "message").unwrap_or_default(), MAX_LETTERS);
            found.push(Symptom::Unschedulable { message });
        }
    }
    let phase = find_text(pod, "status.phase").unwrap_or_default();
    let made = find_text(pod, "metadata.creationTimestamp").unwrap_or_default();
    for list in ["status.initContainerStatuses", "status.containerStatuses"] {
        for container in find(pod, list).and_then(Value::as_array).into_iter().flatten() {
            note_container(container, phase, made, found);
        }
    }
}

fn note_container(status: &Value, phase: &str, made: &str, found: &mut Vec<Symptom>) {
    let container = find_text(status, "name").unwrap_or_default().to_owned();
    let text = |path: &str| redact(find_text(status, path).unwrap_or_default(), MAX_LETTERS);
    let end = |path: &str| find(status, path).map(End::read);
    let restarts = find(status, "restartCount").and_then(Value::as_i64).unwrap_or(0);
    let is_ready = find(status, "ready") == Some(&Value::Bool(true));
    let waits_for = text("state.waiting.reason");
    let (ended, ended_before) = (end("state.terminated"), end("lastState.terminated"));
    // Between two crashes the container runs for a moment, or has just ended: it is the same trouble all the time.
    let loops = waits_for == "CrashLoopBackOff"
        || (waits_for.is_empty() && restarts > 1 && !is_ready && ended_before.is_some());
    if loops {
        let last_end = ended.or(ended_before);
        found.push(Symptom::CrashLoop { container, restarts, since: made.to_owned(), last_end });
        return;
    }
    if find(status, "state.waiting").is_some() {
        let message = text("state.waiting.message");
        found.push(Symptom::Waiting { container: container.clone(), reason: waits_for, message });
    }
    for end in [ended, ended_before].into_iter().flatten() {
        if end.exit_code != 0 || end.reason == "OOMKilled" {
            found.push(Symptom::Ended { container: container.clone(), end });
        }
    }
    if restarts > 0 {
        found.push(Symptom::Restarted { container: container.clone(), count: restarts });
    }
    let runs = find(status, "state.running").is_some();
    if phase == "Running" && runs && find(status, "ready") == Some(&Value::Bool(false)) {
        found.push(Symptom::NotReady { container });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn manifest(value: Value) -> Manifest {
        Manifest::new(value).expect("an object")
    }

    fn deployment() -> Manifest {
        manifest(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 2}, "status": {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1},
        }))
    }

    fn replica_set(name: &str, available: i64) -> Manifest {
        manifest(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"replicas": 2}, "status": {"availableReplicas": available},
        }))
    }

    fn crashing_pod(name: &str) -> Manifest {
        manifest(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"restartPolicy": "Always"},
            "status": {"phase": "Running", "containerStatuses": [{
                "name": "main", "ready": false, "restartCount": 7,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "cannot open db: password=hunter2"}},
            }]},
        }))
    }

    fn shown(causes: &[Cause]) -> String {
        causes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_way_down_ends_at_the_container() {
        let (top, old, new) = (deployment(), replica_set("web-1", 2), replica_set("web-2", 1));
        let (first, second) = (crashing_pod("web-2-a"), crashing_pod("web-2-b"));
        let mut pod = Node::leaf(&first);
        pod.events = vec![
            Event {
                is_warning: false,
                reason: "Pulled".into(),
                message: "image is there".into(),
                count: 1,
                first: None,
            },
            Event {
                is_warning: true,
                reason: "BackOff".into(),
                message: "restarting failed container".into(),
                count: 12,
                first: None,
            },
        ];
        pod.logs = vec![LogTail {
            container: "main".into(),
            lines: vec!["starting".into(), "token: abcdef".into(), "panic: no database".into()],
        }];
        let mut set = Node::leaf(&new);
        set.children = vec![pod, Node::leaf(&second)];
        let mut tree = Node::leaf(&top);
        tree.children = vec![Node::leaf(&old), set];
        expect![[r"
            apps/Deployment shop/web: Progressing: 1 of 2 updated replicas are available
            apps/ReplicaSet shop/web-2: Progressing: 1 of 2 replicas are available
            Pod shop/web-2-a (and 1 more like it): container main keeps crashing (CrashLoopBackOff): 7 restarts, last exit code 1 (Error): cannot open db: password=••••; event BackOff (12 times): restarting failed container; last lines of main: starting | token: •••• | panic: no database"]]
        .assert_eq(&shown(&chain(&tree)));
        let health = assess(&top).expect("a judgement");
        expect!["Progressing: 1 of 2 updated replicas are available; Pod shop/web-2-a: container main keeps crashing (CrashLoopBackOff): 7 restarts, last exit code 1 (Error): cannot open db: password=••••; last line of its log: panic: no database"].assert_eq(&explained(health, &tree, &chain(&tree), false).to_string());
    }

    #[test]
    fn the_same_trouble_has_the_same_essence_whatever_moment_is_seen() {
        let at = |state: Value, restarts: i64| {
            let mut pod = crashing_pod("web").into_value();
            pod["status"]["containerStatuses"][0]["state"] = state;
            pod["status"]["containerStatuses"][0]["restartCount"] = json!(restarts);
            let pod = manifest(pod);
            essence(&chain(&Node::leaf(&pod)))
        };
        let waits = at(json!({"waiting": {"reason": "CrashLoopBackOff"}}), 7);
        assert_eq!(at(json!({"running": {}}), 8), waits);
        assert_eq!(at(json!({"terminated": {"exitCode": 1, "reason": "Error"}}), 8), waits);
        assert_ne!(at(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), 9), waits);
        assert_ne!(at(json!({"waiting": {"reason": "ImagePullBackOff"}}), 9), waits);
    }

    #[test]
    fn a_pod_that_no_node_takes_says_so() {
        let pod = manifest(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
            ]},
        }));
        expect!["Pod shop/web: cannot be scheduled: 0/3 nodes are available"]
            .assert_eq(&shown(&chain(&Node::leaf(&pod))));
    }

    #[test]
    fn where_all_is_well_there_is_no_cause() {
        let set = replica_set("web-1", 2);
        assert_eq!(chain(&Node::leaf(&set)), Vec::new());
        let health = Health::healthy("fine");
        assert_eq!(explained(health.clone(), &Node::leaf(&set), &[], false), health);
    }
}
