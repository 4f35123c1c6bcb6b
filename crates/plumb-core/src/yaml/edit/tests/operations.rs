//! Operations, and what becomes of a text.

use expect_test::Expect;
pub(super) use serde_json::Value;

pub(super) use crate::object::{FieldPath, Segment};
pub(super) use crate::yaml::edit::{EditRefusal, Operation, edit_document};

/// Compares the text after one operation.
pub(super) fn check(text: &str, operation: Operation, expected: &Expect) {
    expected.assert_eq(&edited(text, operation));
}

pub(super) fn set(pointer: &str, value: Value) -> Operation {
    Operation::Set { path: FieldPath::from_pointer(pointer), value }
}

pub(super) fn append(pointer: &str, value: Value) -> Operation {
    Operation::Append { path: FieldPath::from_pointer(pointer), value, comment: None }
}

pub(super) fn remove(pointer: &str) -> Operation {
    Operation::Remove { path: FieldPath::from_pointer(pointer) }
}

pub(super) fn rename(pointer: &str, to: &str) -> Operation {
    Operation::Rename { path: FieldPath::from_pointer(pointer), to: to.to_owned() }
}

/// The first document after the operation, which must change nothing when it is repeated. Items that are removed by their
/// position are the exception.
pub(super) fn edited(text: &str, operation: Operation) -> String {
    let operations = [operation];
    let edited =
        edit_document(text.as_bytes(), 0, &operations).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    if !is_removed_item(&operations[0]) {
        let again = edit_document(edited.text.as_bytes(), 0, &operations).expect("the same again");
        assert_eq!(again.text, edited.text, "repeating the operation changes the text");
    }
    edited.text
}

pub(super) fn is_removed_item(operation: &Operation) -> bool {
    let last = operation.path().segments().last().map(|segment| match segment {
        Segment::Field(name) => name.to_string(),
        Segment::Index(index) => index.to_string(),
    });
    matches!(operation, Operation::Remove { .. }) && last.is_some_and(|last| last.parse::<usize>().is_ok())
}

pub(super) fn refused(text: &str, operation: Operation) -> EditRefusal {
    match edit_document(text.as_bytes(), 0, &[operation]) {
        Err(refusal) => refusal,
        Ok(edited) => panic!("not refused:\n{}", edited.text),
    }
}
