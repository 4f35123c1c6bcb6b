//! Values that look like nothing (`false`, 0, `""`, `[]`, `{}`) in a custom resource. What their absence means is up to the
//! operator: a user who removes such a line of Git changes the object, and an operator whose types drop it does not.
//!
//! Each value of an object that consists of such values is removed by each client that a user may use, and the verdict
//! has to name it; an apply brings it back. Then an operator writes the object back without any of them.

use anyhow::Result;
use http::Method;
use plumb_cluster_tests::bench::{Bench, Memory, desired};
use plumb_cluster_tests::change;
use plumb_cluster_tests::kind::Kind;
use plumb_cluster_tests::kinds;
use plumb_cluster_tests::repair::{leaves, remove};
use plumb_cluster_tests::server::{Effect, Server};
use plumb_cluster_tests::skeleton::Skeletons;
use plumb_core::app::CompareOptions;
use plumb_core::desired::DesiredObject;
use plumb_core::drift::{Verdict, VerdictStatus};
use plumb_core::object::{FieldPath, Segment};
use plumb_core::witness::{LAST_WRITER_ANNOTATION, Note};
use plumb_testkit::TestNamespace;
use serde_json::{Value, json};

/// The clients of users, as `managedFields` name them: those of kubectl, and names that plumb does not know.
const USERS: [&str; 6] = [
    "kubectl-edit",
    "kubectl-patch",
    "kubectl-replace",
    "kubectl-client-side-apply",
    "python-client",
    "unknown",
];
const OPERATOR: &str = "switch-operator";

struct Switches<'a> {
    server: &'a Server,
    bench: Bench<'a>,
    kind: &'a Kind,
    wanted: DesiredObject,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_user_removes_counts_whatever_its_value() -> Result<()> {
    let place = TestNamespace::new().await?;
    let server = Server::new(place.client());
    let skeletons = Skeletons::read_with("zero.plumb.dev")?;
    skeletons.install(&place, &server).await?;
    let kinds = kinds::discover(&server, &skeletons.group).await?;
    let kind = kinds.find("zero.plumb.dev/v1 Switch")?;
    let object = object(place.name());
    let switches = Switches {
        server: &server,
        bench: Bench { server: &server, schemas: &kinds.schemas, options: CompareOptions::default() },
        kind,
        wanted: desired(&object)?,
    };
    let mut problems = Vec::new();
    for leaf in leaves(&object).into_iter().filter(|leaf| is_tried(leaf, &object)) {
        for user in USERS {
            problems.extend(switches.removed(&leaf, user).await?);
        }
        problems.extend(switches.removed_under_our_name(&leaf).await?);
    }
    problems.extend(switches.written_back().await?);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// Nothing but values that look like nothing, in every place where one can be.
fn object(namespace: &str) -> Value {
    json!({
        "apiVersion": "zero.plumb.dev/v1", "kind": "Switch", "metadata": {"name": "zero", "namespace": namespace},
        "spec": {
            "requestCertificate": false, "nullableFlag": false, "onByDefault": false, "offByDefault": false,
            "count": 0, "nullableCount": 0, "countByDefault": 0, "text": "", "args": [], "atomic": [],
            "nodeSelector": {}, "resources": {"shared": false, "size": 0},
            "free": {"flag": false, "list": [], "map": {}},
            "pools": [{"name": "a", "enabled": false, "servers": 0, "tolerations": []}, {"name": "b", "enabled": true}],
            "steps": [{"name": "a", "enabled": false, "retries": 0}],
        },
    })
}

/// Names and items are no values that look like nothing. The API server puts a default back.
fn is_tried(leaf: &[Segment], object: &Value) -> bool {
    let value = FieldPath::from(leaf.to_vec()).find(object);
    let is_zero =
        value.is_some_and(|value| [json!(false), json!(0), json!(""), json!([]), json!({})].contains(value));
    is_zero && leaf.last() != Some(&Segment::Field("offByDefault".into()))
}

impl Switches<'_> {
    async fn apply(&self) -> Result<Value> {
        self.server.apply(self.kind, self.wanted.manifest.value(), Effect::Real).await?.object("apply")
    }

    /// A user removes one line: the verdict names it, with and without the note of the witness, and with and without the
    /// memory of the last apply.
    async fn removed(&self, leaf: &[Segment], user: &str) -> Result<Vec<String>> {
        self.apply().await?;
        let live = self.patch(user, &change::remove(leaf)).await?;
        let mut problems = Vec::new();
        for live in [&live, &noted(&live, user), &noted(&live, "alice")] {
            for memory in [Memory::Same, Memory::Unknown] {
                let judged = self.bench.judge(self.kind, &self.wanted, live, memory).await?;
                problems.extend(missed(&judged.verdict, leaf, &format!("{user} {memory:?}")));
            }
        }
        let back = self.apply().await?;
        let path = FieldPath::from(leaf.to_vec());
        if path.find(&back) != path.find(self.wanted.manifest.value()) {
            problems.push(format!("{path}: an apply does not bring it back"));
        }
        Ok(problems)
    }

    /// A user applies the object without the line, with plumb's own field manager.
    async fn removed_under_our_name(&self, leaf: &[Segment]) -> Result<Vec<String>> {
        self.apply().await?;
        let mut without = self.wanted.manifest.value().clone();
        remove(&mut without, leaf);
        let live = self.server.apply(self.kind, &without, Effect::Real).await?.object("apply")?;
        let live = noted(&live, plumb_core::tracking::FIELD_MANAGER);
        let judged = self.bench.judge(self.kind, &self.wanted, &live, Memory::Same).await?;
        Ok(missed(&judged.verdict, leaf, "under our name").into_iter().collect())
    }

    /// The operator's types drop all of them on its first write.
    async fn written_back(&self) -> Result<Vec<String>> {
        let before = self.apply().await?;
        let mut after = before.clone();
        let mut dropped: Vec<Vec<Segment>> =
            leaves(&before).into_iter().filter(|leaf| is_omitted(leaf, &before)).collect();
        dropped.reverse();
        for leaf in &dropped {
            remove(&mut after, leaf);
        }
        after["metadata"]["finalizers"] = json!(["zero.plumb.dev/switch"]);
        let path = format!("{}?fieldManager={OPERATOR}", self.kind.path_of(&after));
        let answer = self.server.call(Method::PUT, &path, "application/json", Some(&after)).await?;
        let live = answer.object("write it back")?;
        let mut problems = Vec::new();
        for live in [&live, &noted(&live, OPERATOR)] {
            for memory in [Memory::Same, Memory::Unknown] {
                let verdict = self.bench.judge(self.kind, &self.wanted, live, memory).await?.verdict;
                if verdict.status != VerdictStatus::Synced {
                    problems.push(format!("written back, {memory:?}: {}", counted(&verdict).join(" ")));
                }
            }
        }
        Ok(problems)
    }

    async fn patch(&self, manager: &str, patch: &Value) -> Result<Value> {
        let object = self.wanted.manifest.value();
        let answer = self.server.patch(self.kind, object, manager, patch, Effect::Real).await?;
        answer.object(&patch.to_string())
    }
}

/// `omitempty` drops these; a struct stays, and what the schema does not know is kept as it is.
fn is_omitted(leaf: &[Segment], object: &Value) -> bool {
    let value = FieldPath::from(leaf.to_vec()).find(object);
    let is_zero =
        value.is_some_and(|value| [json!(false), json!(0), json!(""), json!([]), json!({})].contains(value));
    let has = |name: &str| leaf.contains(&Segment::Field(name.into()));
    is_zero
        && has("spec")
        && !["free", "onByDefault", "offByDefault", "countByDefault"].iter().any(|name| has(name))
}

/// The object with the note of the witness.
fn noted(live: &Value, writer: &str) -> Value {
    let at = jiff::Timestamp::now();
    let mut noted = live.clone();
    let note = Note { writer: writer.to_owned(), user: None, is_administrator: false, at }.to_string();
    noted["metadata"]["annotations"][LAST_WRITER_ANNOTATION] = json!(note);
    noted
}

fn counted(verdict: &Verdict) -> Vec<String> {
    let counted = verdict.findings.iter().filter(|finding| finding.counts);
    counted.flat_map(|finding| finding.fields.iter().map(ToString::to_string)).collect()
}

/// What is wrong with a verdict that has to count exactly this field.
fn missed(verdict: &Verdict, leaf: &[Segment], how: &str) -> Option<String> {
    let (path, counted) = (FieldPath::from(leaf.to_vec()).to_string(), counted(verdict));
    (counted != [path.clone()]).then(|| {
        let findings: Vec<String> = verdict
            .findings
            .iter()
            .map(|finding| format!("{} {:?}", finding.class, finding.evidence))
            .collect();
        format!("{path} removed by {how}: counts {counted:?}; {}", findings.join("; "))
    })
}
