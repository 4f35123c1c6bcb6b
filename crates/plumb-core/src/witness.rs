//! Who wrote an object last.
//!
//! `managedFields` name the writer that set a field. A writer that removes a field or reorders a list leaves no
//! trace in the object. So an admission webhook, the witness, is called whenever another writer than plumb changes the
//! content of a tracked object. It adds the field manager of the request to the same write, as an annotation. The
//! witness keeps no state: any later process can read the annotation.

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
    /// The field manager of the request; the user, where the request named no manager.
    pub writer: String,
    /// When.
    pub at: Timestamp,
}

impl Note {
    /// The note that an object carries.
    pub fn on(live: &Manifest) -> Option<Self> {
        let (at, writer) = live.annotation(LAST_WRITER_ANNOTATION)?.split_once(' ')?;
        Some(Self { writer: writer.to_owned(), at: at.parse().ok()? })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} {}", self.at, self.writer)
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

/// The answer to an `AdmissionReview`: always yes, with the note where there is room for one.
pub fn answer(review: &[u8], now: Timestamp) -> Result<Value, serde_json::Error> {
    let Review { request } = serde_json::from_slice(review)?;
    let writer = match request.options.field_manager {
        manager if manager.is_empty() => request.user.username,
        manager => manager,
    };
    let mut response = json!({"uid": request.uid, "allowed": true});
    // Only tracked objects are sent here, and their mark is an annotation; a patch below nothing would fail.
    if !writer.is_empty() && request.object.metadata.annotations.is_some() {
        let key = LAST_WRITER_ANNOTATION.replace('/', "~1");
        let note = Note { writer, at: now }.to_string();
        let patch = json!([{"op": "add", "path": format!("/metadata/annotations/{key}"), "value": note}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(review: &Value) -> Option<Value> {
        let now = "2026-11-15T21:55:21.123Z".parse().expect("a time");
        let answer = answer(review.to_string().as_bytes(), now).expect("readable");
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

    #[test]
    fn the_manager_is_noted_and_read_back() {
        let note = noted(&review(Some("kubectl edit"), Some(json!({"a": "b"})))).expect("a note");
        assert_eq!(note, "2026-11-15T21:55:21Z kubectl edit");
        let live = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "annotations": {LAST_WRITER_ANNOTATION: note}},
        });
        let read = Note::on(&Manifest::new(live).expect("an object")).expect("a note");
        assert_eq!(read.writer, "kubectl edit");
        assert_eq!(read.to_string(), "2026-11-15T21:55:21Z kubectl edit");
    }

    #[test]
    fn a_request_without_manager_is_the_users() {
        let note = noted(&review(None, Some(json!({})))).expect("a note");
        assert_eq!(note, "2026-11-15T21:55:21Z system:serviceaccount:ops:robot");
    }

    #[test]
    fn where_there_is_no_room_nothing_is_patched() {
        assert_eq!(noted(&review(Some("x"), None)), None);
        assert_eq!(noted(&json!({"request": {"uid": "u2"}})), None);
    }

    #[test]
    fn soup_is_an_error() {
        for soup in ["", "{}", "[]", "{\"request\":3}", "\u{0}"] {
            assert!(answer(soup.as_bytes(), Timestamp::UNIX_EPOCH).is_err(), "{soup:?}");
        }
    }
}
