//! What must hold for any edit of any bytes. Shared by the fuzz target and by a test of plumb-core that runs
//! everywhere.

use plumb_core::object::FieldPath;
use plumb_core::yaml::{EditRefusal, Limits, Operation, edit_document, parse_documents};
use serde_json::{Value, json};

/// The first three bytes choose a document, a place and a change; the rest is the file. No panic; what is edited says
/// exactly what was meant, and everything else as before. Says whether it was edited.
pub(crate) fn any_edit(bytes: &[u8]) -> bool {
    let Some((&[which, place, change], file)) = bytes.split_first_chunk::<3>() else { return false };
    let Some(documents) =
        std::str::from_utf8(file).ok().and_then(|text| parse_documents(text, &Limits::default()).ok())
    else {
        // The editor reads what the reader reads, and nothing else.
        assert!(
            edit_document(file, 0, &[Operation::Set { path: FieldPath::root(), value: json!(1) }]).is_err()
        );
        return false;
    };
    let values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    if values.is_empty() {
        return false;
    }
    let document = usize::from(which) % values.len();
    let paths = paths(&values[document]);
    let path = paths[usize::from(place) % paths.len()].clone();
    let fresh =
        [json!(7), json!("on"), json!({"a": [{"b": "x: y"}]}), json!([]), json!("one\n two\n"), Value::Null];
    let value = fresh[usize::from(change / 8) % fresh.len()].clone();
    let operation = match change % 5 {
        0 => Operation::Set { path, value },
        1 => Operation::Set { path: path.field("added"), value },
        2 => Operation::Append { path, value, comment: Some("why\nso".to_owned()) },
        3 => Operation::Rename { path, to: "renamed".to_owned() },
        _ => Operation::Remove { path },
    };
    let edited = match edit_document(file, document, std::slice::from_ref(&operation)) {
        Ok(edited) => edited,
        Err(EditRefusal::NoDocument { .. }) => panic!("{operation}: the document is there"),
        Err(_) => return false,
    };
    let mut intended = values;
    intended[document] = operation.apply(&intended[document]).expect("it was applied");
    let after = parse_documents(&edited.text, &Limits::default()).expect("readable");
    let after: Vec<Value> = after.into_iter().map(|document| document.value).collect();
    assert_eq!(after, intended, "{operation}:\n{}", edited.text);
    true
}

/// Every place of a value, the root first.
fn paths(value: &Value) -> Vec<FieldPath> {
    let mut found = Vec::new();
    let mut waiting = vec![(FieldPath::root(), value)];
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::Object(map) => {
                waiting.extend(map.iter().map(|(key, value)| (path.field(key.as_str()), value)));
            }
            Value::Array(items) => {
                waiting.extend(items.iter().enumerate().map(|(at, value)| (path.index(at), value)));
            }
            _ => {}
        }
        found.push(path);
    }
    found
}
