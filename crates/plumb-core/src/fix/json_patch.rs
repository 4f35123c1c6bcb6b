//! The patch that a finding offers, as operations of the editor.

use serde_json::Value;

use crate::object::FieldPath;
use crate::yaml::{Limits, Operation, parse_documents};

/// The operations of a JSON patch, as [`Fix::patch`](crate::drift::Fix) has it. `None` if it is something else, such as
/// an ignore rule.
pub(super) fn operations(patch: &str) -> Option<Vec<Operation>> {
    let documents = parse_documents(patch, &Limits::default()).ok()?;
    let [document] = documents.as_slice() else { return None };
    document.value.as_array()?.iter().map(operation).collect()
}

fn operation(written: &Value) -> Option<Operation> {
    let path = FieldPath::from_pointer(written.get("path")?.as_str()?);
    let value = || written.get("value").cloned();
    match written.get("op")?.as_str()? {
        "remove" => Some(Operation::Remove { path }),
        "replace" => Some(Operation::Set { path, value: value()? }),
        "add" => match path.segments().last()? {
            crate::object::Segment::Field(last) if last == "-" => {
                Some(Operation::Append { path: path.parent()?, value: value()?, comment: None })
            }
            _ => Some(Operation::Set { path, value: value()? }),
        },
        "move" => {
            let from = FieldPath::from_pointer(written.get("from")?.as_str()?);
            let crate::object::Segment::Field(to) = path.segments().last()? else { return None };
            (from.parent() == path.parent())
                .then(|| Operation::Rename { path: from.clone(), to: to.to_string() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_that_findings_offer() {
        let shown = |patch: &str| -> Option<Vec<String>> {
            operations(patch).map(|found| found.iter().map(ToString::to_string).collect())
        };
        let patch = "# JSON patch of the document at line 3 of a.yaml\n\
            - {\"op\":\"remove\",\"path\":\"/spec/a~1b\"}\n\
            - {\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":3}\n\
            - {\"op\":\"add\",\"path\":\"/spec/list/-\",\"value\":{\"name\":\"x\"}}\n\
            - {\"op\":\"add\",\"path\":\"/spec/c\",\"value\":\"on\"}\n\
            - {\"op\":\"move\",\"from\":\"/spec/replica\",\"path\":\"/spec/replicas\"}\n";
        let expected = [
            "remove /spec/a~1b",
            "set /spec/replicas to 3",
            "add to the list /spec/list: {\"name\":\"x\"}",
            "set /spec/c to \"on\"",
            "rename /spec/replica to `replicas`",
        ];
        assert_eq!(shown(patch), Some(expected.map(str::to_owned).to_vec()));
        assert_eq!(shown("# in the Application's spec\nignoreDifferences:\n- {}\n"), None);
        assert_eq!(shown("- {\"op\":\"test\",\"path\":\"/a\",\"value\":1}\n"), None);
    }
}
