//! Changes of one file.

use super::ObjectChange;
use super::locate::locate;
use crate::object::ObjectKey;
use crate::yaml::{EditRefusal, Limits, edit_document, parse_documents_bytes};

/// A file after its changes.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEdit {
    /// The file, with every change that was made.
    pub text: Vec<u8>,
    /// Changes that were not made, by their place in the list, with the reason.
    pub refused: Vec<(usize, FixRefusal)>,
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixRefusal {
    /// The file does not describe the object, or does so twice.
    #[error("the file has no document that is certainly the one of {key}")]
    NotFound {
        /// The object.
        key: ObjectKey,
    },
    /// The editor refuses.
    #[error(transparent)]
    Edit(#[from] EditRefusal),
}

/// Makes all changes that can be made. Each one is proved by itself; one that is refused leaves the file as the others
/// made it.
pub fn edit_file(file: &[u8], changes: &[ObjectChange]) -> FileEdit {
    let mut text = file.to_vec();
    let mut refused = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        match edit(&text, change) {
            Ok(edited) => text = edited,
            Err(why) => refused.push((number, why)),
        }
    }
    FileEdit { text, refused }
}

fn edit(text: &[u8], change: &ObjectChange) -> Result<Vec<u8>, FixRefusal> {
    let documents = parse_documents_bytes(text, &Limits::default()).map_err(EditRefusal::Unreadable)?;
    let place = locate(&documents, &change.key, change.origin.line)
        .ok_or_else(|| FixRefusal::NotFound { key: change.key.clone() })?;
    let operations: Vec<_> =
        change.operations.iter().map(|operation| operation.inside(&place.path)).collect();
    Ok(edit_document(text, place.document, &operations)?.text.into_bytes())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::desired::Origin;
    use crate::object::FieldPath;

    #[test]
    fn a_change_that_is_refused_leaves_the_others() {
        let file =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d {x: \"1\", y: \"2\"}\nmore: *d\n";
        let change = |operation| ObjectChange {
            key: ObjectKey::new("", "ConfigMap", Some("shop".to_owned()), "a"),
            origin: Origin { source: 0, file: "a.yaml".to_owned(), line: 1, verbatim: true },
            operations: vec![operation],
            why: String::new(),
        };
        let remove =
            |pointer: &str| crate::yaml::Operation::Remove { path: FieldPath::from_pointer(pointer) };
        let changes = [change(remove("/data/x")), change(remove("/more"))];
        let edit = edit_file(file.as_bytes(), &changes);
        assert_eq!(String::from_utf8(edit.text).expect("UTF-8"), file.replace("more: *d\n", ""));
        let [(0, why)] = edit.refused.as_slice() else { panic!("{:?}", edit.refused) };
        expect!["/data/x is inside the anchor on line 4, which is used again on line 5: a change would also change what is there"]
            .assert_eq(&why.to_string());
        expect!["in the document of ConfigMap shop/a at line 1 of a.yaml: remove /data/x"]
            .assert_eq(&changes[0].instruction());
    }
}
