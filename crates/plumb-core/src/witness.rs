//! Who wrote an object last.
//!
//! `managedFields` name the writer that set a field. A writer that removes a field or reorders a list leaves no
//! trace in the object. So an admission webhook, the witness, is called whenever another writer than plumb changes the
//! content of a tracked object. It adds the user and the field manager of the request to the same write, as an
//! annotation. The API server authenticated the user; the client chose the name of the manager. The witness keeps no
//! state: any later process can read the annotation.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::Manifest;

/// The annotation with the [`Note`].
pub const LAST_WRITER_ANNOTATION: &str = "plumb.dev/last-writer";

/// Who, beside plumb, wrote the object's content last. Our own writes leave it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The field manager of the request; the user, where the request named no manager. The client chose the manager.
    pub writer: String,
    /// The user, as the API server authenticated it; `None` in notes of earlier versions.
    pub user: Option<String>,
    /// Is it a user that may do everything (`system:masters`)? False in notes of earlier versions.
    pub is_administrator: bool,
    /// When.
    pub at: Timestamp,
}

/// The group whose members may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// Longest name of a user or manager that is noted. Kubernetes limits managers to 128 characters.
const LONGEST_NAME: usize = 256;

impl Note {
    /// The note that an object carries: `TIME "USER" WRITER`, `TIME ["USER","system:masters"] WRITER` for a user that may do
    /// everything, or `TIME WRITER` of earlier versions.
    pub fn on(live: &Manifest) -> Option<Self> {
        let (at, rest) = live.annotation(LAST_WRITER_ANNOTATION)?.split_once(' ')?;
        let at = at.parse().ok()?;
        if !rest.starts_with(['"', '[']) {
            return Some(Self { writer: rest.to_owned(), user: None, is_administrator: false, at });
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<NotedUser>();
        let (user, is_administrator) = match values.next()?.ok()? {
            NotedUser::Name(user) => (user, false),
            NotedUser::OfGroup([user, group]) => (user, group == ADMINISTRATORS),
        };
        let writer = rest.get(values.byte_offset()..)?.trim_start_matches(' ');
        let writer = if writer.is_empty() { user.clone() } else { writer.to_owned() };
        Some(Self { writer, user: Some(user), is_administrator, at })
    }
}

/// The user of a note, alone or with its group.
#[derive(Deserialize)]
#[serde(untagged)]
enum NotedUser {
    Name(String),
    OfGroup([String; 2]),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            // As JSON: the name of a user may contain spaces and quotes.
            Some(user) if self.is_administrator => {
                write!(f, "{:.0} {} {}", self.at, json!([user, ADMINISTRATORS]), self.writer)
            }
            Some(user) => write!(f, "{:.0} {} {}", self.at, Value::from(user.as_str()), self.writer),
            None => write!(f, "{:.0} {}", self.at, self.writer),
        }
    }
}

/// What the witness reads of an `AdmissionReview`. The objects in it are skipped, not kept.
#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    options: RequestOptions,
    #[serde(default, rename = "userInfo")]
    user: User,
    #[serde(default)]
    object: Written,
}

#[derive(Default, Deserialize)]
struct RequestOptions {
    #[serde(default, rename = "fieldManager")]
    field_manager: String,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Written {
    #[serde(default)]
    metadata: WrittenMetadata,
}

#[derive(Default, Deserialize)]
struct WrittenMetadata {
    annotations: Option<serde::de::IgnoredAny>,
}

/// The answer to an `AdmissionReview`: always yes, with the note where there is room for one. `is_own` says whether a
/// user and a field manager are plumb itself: its writes are not noted.
pub fn answer(
    review: &[u8],
    now: Timestamp,
    is_own: impl Fn(&str, &str) -> bool,
) -> Result<Value, serde_json::Error> {
    let Review { request } = serde_json::from_slice(review)?;
    let is_administrator = request.user.groups.iter().any(|group| group == ADMINISTRATORS);
    let (manager, user) = (request.options.field_manager, request.user.username);
    let mut response = json!({"uid": request.uid, "allowed": true});
    let is_named = !manager.is_empty() || !user.is_empty();
    // Only tracked objects are sent here, and their mark is an annotation; a patch below nothing would fail.
    if is_named && request.object.metadata.annotations.is_some() && !is_own(&user, &manager) {
        let key = LAST_WRITER_ANNOTATION.replace('/', "~1");
        let short = |name: &str| name.chars().take(LONGEST_NAME).collect::<String>();
        let writer = short(if manager.is_empty() { &user } else { &manager });
        let user = (!user.is_empty()).then(|| short(&user));
        let note = Note { writer, user, is_administrator, at: now }.to_string();
        let patch = json!([{"op": "add", "path": format!("/metadata/annotations/{key}"), "value": note}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

/// How many probes in a row a witness may leave unanswered. A probe has a second.
const SILENT_PROBES: u32 = 2;

/// Whether the witness of a leader has fallen silent, as a process that stands by sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    has_answered: bool,
    unanswered: u32,
}

impl Silence {
    /// This, after another probe.
    #[must_use]
    pub fn after(self, is_answered: bool) -> Self {
        if is_answered {
            return Self { has_answered: true, unanswered: 0 };
        }
        Self { unanswered: self.unanswered.saturating_add(1), ..self }
    }

    /// True if the registration should be removed, because each write of others waits for the silent witness. A witness that
    /// never answered this process may still answer the API server.
    pub fn is_over_the_limit(self) -> bool {
        self.has_answered && self.unanswered >= SILENT_PROBES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(review: &Value) -> Option<Value> {
        let now = "2026-11-15T21:55:21.123Z".parse().expect("a time");
        let is_own = |user: &str, manager: &str| (user, manager) == ("plumb", "argocd-controller");
        let answer = answer(review.to_string().as_bytes(), now, is_own).expect("readable");
        assert_eq!(answer["response"]["allowed"], true);
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        let patch = STANDARD.decode(answer["response"]["patch"].as_str()?).expect("base64");
        let patch: Value = serde_json::from_slice(&patch).expect("JSON");
        assert_eq!(patch[0]["path"], "/metadata/annotations/plumb.dev~1last-writer");
        Some(patch[0]["value"].clone())
    }

    fn review(manager: Option<&str>, annotations: Option<Value>) -> Value {
        let mut review = json!({"request": {
            "uid": "u1",
            "userInfo": {"username": "system:serviceaccount:ops:robot"},
            "options": {"kind": "UpdateOptions"},
            "object": {"metadata": {"name": "x"}, "spec": {"replicas": 1}},
        }});
        if let Some(manager) = manager {
            review["request"]["options"]["fieldManager"] = manager.into();
        }
        if let Some(annotations) = annotations {
            review["request"]["object"]["metadata"]["annotations"] = annotations;
        }
        review
    }

    fn read_back(note: &Value) -> Note {
        let live = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "annotations": {LAST_WRITER_ANNOTATION: note}},
        });
        Note::on(&Manifest::new(live).expect("an object")).expect("a note")
    }

    #[test]
    fn user_and_manager_are_noted_and_read_back() {
        let note = noted(&review(Some("kubectl edit"), Some(json!({"a": "b"})))).expect("a note");
        assert_eq!(note, r#"2026-11-15T21:55:21Z "system:serviceaccount:ops:robot" kubectl edit"#);
        let read = read_back(&note);
        assert_eq!(read.writer, "kubectl edit");
        assert_eq!(read.user.as_deref(), Some("system:serviceaccount:ops:robot"));
        assert_eq!(note, read.to_string());
    }

    #[test]
    fn a_user_that_may_do_everything_is_noted_as_such() {
        let mut of_group = review(Some("queue-controller"), Some(json!({})));
        of_group["request"]["userInfo"] =
            json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]});
        let note = noted(&of_group).expect("a note");
        assert_eq!(note, r#"2026-11-15T21:55:21Z ["admin","system:masters"] queue-controller"#);
        let read = read_back(&note);
        assert_eq!((read.writer.as_str(), read.user.as_deref()), ("queue-controller", Some("admin")));
        assert!(read.is_administrator);
        assert_eq!(note, read.to_string());
        // The name of a manager makes no administrator.
        let forged = review(Some(r#"["admin","system:masters"] queue-controller"#), Some(json!({})));
        let read = read_back(&noted(&forged).expect("a note"));
        assert_eq!(read.user.as_deref(), Some("system:serviceaccount:ops:robot"));
        assert!(!read.is_administrator);
    }

    #[test]
    fn a_note_of_an_earlier_version_names_no_user() {
        let read = read_back(&json!("2026-11-15T21:55:21Z kubectl edit"));
        assert_eq!((read.writer.as_str(), read.user), ("kubectl edit", None));
    }

    #[test]
    fn a_name_cannot_pretend_to_be_another_user() {
        let mut forged = review(Some("x\" \"admin\" y"), Some(json!({})));
        forged["request"]["userInfo"]["username"] = json!("Jane \"root\" Doe");
        let read = read_back(&noted(&forged).expect("a note"));
        assert_eq!(read.user.as_deref(), Some("Jane \"root\" Doe"));
        assert_eq!(read.writer, "x\" \"admin\" y");
        forged["request"]["userInfo"]["username"] = json!("u".repeat(5000));
        assert!(noted(&forged).expect("a note").as_str().is_some_and(|note| note.len() < 700));
    }

    #[test]
    fn only_plumbs_user_with_plumbs_manager_is_plumb() {
        let by = |user: &str, manager: &str| {
            let mut review = review(Some(manager), Some(json!({})));
            review["request"]["userInfo"]["username"] = json!(user);
            noted(&review).map(|note| read_back(&note).user)
        };
        assert_eq!(by("plumb", "argocd-controller"), None);
        assert_eq!(by("mallory", "argocd-controller"), Some(Some("mallory".to_owned())));
        assert_eq!(
            by("plumb", "kubectl-edit"),
            Some(Some("plumb".to_owned())),
            "a user with plumb's kubeconfig"
        );
    }

    #[test]
    fn a_request_without_manager_is_the_users() {
        let note = noted(&review(None, Some(json!({})))).expect("a note");
        assert_eq!(read_back(&note).writer, "system:serviceaccount:ops:robot");
    }

    #[test]
    fn where_there_is_no_room_nothing_is_patched() {
        assert_eq!(noted(&review(Some("x"), None)), None);
        assert_eq!(noted(&json!({"request": {"uid": "u2"}})), None);
    }

    #[test]
    fn soup_is_an_error() {
        for soup in ["", "{}", "[]", "{\"request\":3}", "\u{0}"] {
            assert!(answer(soup.as_bytes(), Timestamp::UNIX_EPOCH, |_, _| false).is_err(), "{soup:?}");
        }
    }

    #[test]
    fn a_witness_that_answered_once_and_not_for_two_probes_is_silent() {
        for (probes, is_silent) in [
            (&[][..], false),
            (&[false, false, false], false),
            (&[true, false], false),
            (&[true, false, false], true),
            (&[true, false, true, false], false),
            (&[false, true, false, false, false], true),
        ] {
            let silence = probes.iter().fold(Silence::default(), |silence, probe| silence.after(*probe));
            assert_eq!(silence.is_over_the_limit(), is_silent, "{probes:?}");
        }
    }
}
