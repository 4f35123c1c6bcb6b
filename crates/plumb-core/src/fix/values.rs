//! Where a field that a chart renders comes from: places in the values that may be it, and lines of the template.
//!
//! Nothing here is certain. Each candidate is rendered: with the new value, and with a marker that no other place has.

use serde_json::{Value, json};

use crate::object::{FieldPath, Segment};
use crate::yaml::Operation;

/// A string that no chart renders by itself.
const MARKER: &str = "plumb-marker-7f3a";
/// Deeper values are not searched.
const MAX_DEPTH: usize = 12;

/// A change of the values that may be the change of the field.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuesCandidate {
    /// The change.
    pub operation: Operation,
    /// The same place with a marker, and what the field must be then; `None` where the change itself is the proof.
    pub marker: Option<(Operation, Value)>,
}

/// The places in values that may hold a field, most likely first: those with its name, then those with its value.
/// `rendered` is the object as it is now.
pub fn value_candidates(values: &Value, rendered: &Value, operation: &Operation) -> Vec<ValuesCandidate> {
    let path = operation.path();
    let mut found: Vec<(bool, Vec<ValuesCandidate>)> = Vec::new();
    match (operation, path.find(rendered)) {
        // A block of the values that is copied to the object as it is.
        (Operation::Set { value, .. }, None) => {
            let Some((block, name)) = block_around(path, rendered) else { return Vec::new() };
            visit(values, &FieldPath::root(), MAX_DEPTH, &mut |place, there| {
                if there == block && there.is_object() {
                    let operation = Operation::Set { path: place.field(name), value: value.clone() };
                    found.push((has_name(place, path), vec![ValuesCandidate { operation, marker: None }]));
                }
            });
        }
        (Operation::Set { value, .. }, Some(present)) => {
            visit(values, &FieldPath::root(), MAX_DEPTH, &mut |place, there| {
                if is_same(there, present) {
                    let operation = Operation::Set { path: place.clone(), value: value.clone() };
                    let marker = marker(place, there);
                    found.push((has_name(place, path), vec![ValuesCandidate { operation, marker }]));
                }
            });
        }
        // A template may leave a field out if its value is not set, or is null.
        (Operation::Remove { .. }, Some(present)) => {
            visit(values, &FieldPath::root(), MAX_DEPTH, &mut |place, there| {
                if is_same(there, present) && !place.segments().is_empty() {
                    let marker = marker(place, there);
                    let removed = Operation::Remove { path: place.clone() };
                    let null = Operation::Set { path: place.clone(), value: Value::Null };
                    let both = [removed, null]
                        .map(|operation| ValuesCandidate { operation, marker: marker.clone() });
                    found.push((has_name(place, path), both.into()));
                }
            });
        }
        _ => {}
    }
    found.sort_by_key(|(has_name, _)| !has_name);
    found.into_iter().flat_map(|(_, candidates)| candidates).collect()
}

fn visit(value: &Value, at: &FieldPath, depth: usize, look: &mut dyn FnMut(&FieldPath, &Value)) {
    look(at, value);
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                visit(inner, &at.field(name.as_str()), depth - 1, look);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                visit(inner, &at.index(index), depth - 1, look);
            }
        }
        _ => {}
    }
}

/// Templates print numbers and texts alike.
fn is_same(value: &Value, rendered: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    value == rendered || text(value).is_some_and(|value| text(rendered) == Some(value))
}

fn has_name(place: &FieldPath, field: &FieldPath) -> bool {
    place.segments().last() == field.segments().last()
}

fn marker(place: &FieldPath, value: &Value) -> Option<(Operation, Value)> {
    let marked = match value {
        Value::String(_) => json!(MARKER),
        Value::Number(number) => json!(number.as_i64()?.checked_add(7)?),
        Value::Bool(is_set) => json!(!is_set),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some((Operation::Set { path: place.clone(), value: marked.clone() }, marked))
}

/// The map that the field would be in, and its name there.
fn block_around<'value>(
    path: &'value FieldPath,
    rendered: &'value Value,
) -> Option<(&'value Value, &'value str)> {
    let parent = path.parent()?;
    let block = parent.find(rendered).filter(|block| block.as_object().is_some_and(|map| !map.is_empty()))?;
    match path.segments().last()? {
        Segment::Field(name) => Some((block, name.as_str())),
        Segment::Index(_) => None,
    }
}

/// Templates that differ in one line: one for each line that may be the field. A line that says the field literally is
/// changed or removed. A field that is absent goes below a line that literally says another field of its map.
pub fn literal_lines(template: &str, rendered: &Value, operation: &Operation) -> Vec<String> {
    let path = operation.path();
    let Some(Segment::Field(name)) = path.segments().last() else { return Vec::new() };
    let lines: Vec<&str> = template.split_inclusive('\n').collect();
    let with = |at: usize, text: &str| {
        let lines = lines.iter().enumerate();
        lines.map(|(number, line)| if number == at { text } else { line }).collect::<String>()
    };
    match (operation, path.find(rendered)) {
        (Operation::Set { value, .. }, Some(present)) => says(&lines, name.as_str(), present)
            .filter_map(|at| Some(with(at, &valued(lines[at], value)?)))
            .collect(),
        // The first field of a list item carries the dash.
        (Operation::Remove { .. }, Some(present)) => says(&lines, name.as_str(), present)
            .filter(|at| !lines[*at].trim().starts_with("- "))
            .map(|at| with(at, ""))
            .collect(),
        (Operation::Set { value, .. }, None) if !value.is_object() && !value.is_array() => {
            let Some((Value::Object(around), _)) = block_around(path, rendered) else { return Vec::new() };
            let beside = around.iter().flat_map(|(name, present)| says(&lines, name, present));
            beside
                .map(|at| {
                    let line = lines[at];
                    let ended = line.trim_end_matches(['\r', '\n']);
                    let end = if line.len() > ended.len() { &line[ended.len()..] } else { "\n" };
                    let key = ended.trim_start_matches([' ', '-']);
                    let indent = " ".repeat(ended.len() - key.len());
                    with(at, &format!("{ended}{end}{indent}{}: {value}{end}", name.as_str()))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The lines that say a scalar field literally, by their numbers.
fn says<'lines>(
    lines: &'lines [&'lines str],
    name: &str,
    present: &Value,
) -> impl Iterator<Item = usize> + use<'lines> {
    let shown = match present {
        Value::String(text) => vec![text.clone(), format!("\"{text}\""), format!("'{text}'")],
        Value::Number(_) | Value::Bool(_) => vec![present.to_string()],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    };
    let shown: Vec<String> = shown.into_iter().map(|value| format!("{name}: {value}")).collect();
    let numbers = lines.iter().enumerate().filter(move |(_, line)| {
        let said = line.trim().trim_start_matches("- ");
        let (bare, _) = split_comment(said);
        shown.iter().any(|shown| said == shown || bare == shown)
    });
    numbers.map(|(at, _)| at)
}

/// The line with another value. Its comment stays.
fn valued(line: &str, value: &Value) -> Option<String> {
    let ended = line.trim_end_matches(['\r', '\n']);
    let (bare, comment) = split_comment(ended);
    let begins = &bare[..=bare.find(':')?];
    Some(format!("{begins} {value}{}{}", comment.trim_end(), &line[ended.len()..]))
}

/// What a line says, and its comment with the blanks before it.
fn split_comment(line: &str) -> (&str, &str) {
    let bare = line.find(" #").map_or(line, |at| &line[..at]).trim_end();
    line.split_at(bare.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pointer: &str) -> FieldPath {
        FieldPath::from_pointer(pointer)
    }

    fn shown(values: &Value, rendered: &Value, operation: &Operation) -> Vec<String> {
        let found = value_candidates(values, rendered, operation);
        found.iter().map(|candidate| candidate.operation.to_string()).collect()
    }

    #[test]
    fn places_with_the_name_of_the_field_come_first() {
        let values =
            json!({"cpu": "1000m", "other": {"limit": "1000m"}, "list": [{"cpu": "1000m"}], "memory": "1Gi"});
        let rendered = json!({"spec": {"limits": {"cpu": "1000m"}}});
        let set = Operation::Set { path: at("/spec/limits/cpu"), value: json!("1") };
        assert_eq!(
            shown(&values, &rendered, &set),
            ["set /cpu to \"1\"", "set /list/0/cpu to \"1\"", "set /other/limit to \"1\""]
        );
        let marker = value_candidates(&values, &rendered, &set)[0].marker.clone();
        assert_eq!(marker.map(|(_, value)| value), Some(json!(MARKER)));
    }

    #[test]
    fn a_field_that_is_absent_goes_to_the_block_that_is_copied() {
        let values = json!({"resources": {"limits": {"cpu": 1}}, "empty": {}});
        let rendered = json!({"spec": {"resources": {"limits": {"cpu": 1}}}});
        let set = Operation::Set { path: at("/spec/resources/claims"), value: json!([]) };
        assert_eq!(shown(&values, &rendered, &set), ["set /resources/claims to []"]);
        let elsewhere = Operation::Set { path: at("/spec/nothing/x"), value: json!(1) };
        assert!(shown(&values, &rendered, &elsewhere).is_empty());
    }

    #[test]
    fn a_field_goes_when_its_value_goes_or_is_null() {
        let values = json!({"web": {"paused": false}});
        let rendered = json!({"spec": {"paused": false}});
        let remove = Operation::Remove { path: at("/spec/paused") };
        assert_eq!(shown(&values, &rendered, &remove), ["remove /web/paused", "set /web/paused to null"]);
    }

    #[test]
    fn literal_lines_can_be_changed() {
        let template = "spec:\n  paused: false # for now\n  replicas: {{ .Values.n }}\n  cpu: \"1000m\" \n  mode: a # b\n";
        let rendered = json!({"spec": {"paused": false, "replicas": 2, "cpu": "1000m", "mode": "a"}});
        let changed = |operation: &Operation| literal_lines(template, &rendered, operation);
        assert_eq!(
            changed(&Operation::Remove { path: at("/spec/paused") }),
            [template.replace("  paused: false # for now\n", "")]
        );
        assert_eq!(
            changed(&Operation::Set { path: at("/spec/cpu"), value: json!("1") }),
            [template.replace("\"1000m\" \n", "\"1\"\n")]
        );
        assert_eq!(
            changed(&Operation::Set { path: at("/spec/mode"), value: json!("c") }),
            [template.replace("mode: a # b", "mode: \"c\" # b")]
        );
        assert!(changed(&Operation::Remove { path: at("/spec/replicas") }).is_empty());
    }

    #[test]
    fn of_lines_that_say_the_same_each_may_be_the_field() {
        let remove = Operation::Remove { path: at("/a") };
        let found = literal_lines("a: 1\nb:\n  a: 1\n- a: 1\n", &json!({"a": 1}), &remove);
        assert_eq!(found, ["b:\n  a: 1\n- a: 1\n", "a: 1\nb:\n- a: 1\n"]);
    }

    #[test]
    fn a_field_that_is_absent_goes_beside_a_literal_one() {
        let template = "spec:\r\n  ports:\r\n  - port: 80\r\n    name: {{ .Values.name }}\r\n";
        let rendered = json!({"spec": {"ports": [{"port": 80, "name": "web"}]}});
        let set = Operation::Set { path: at("/spec/ports/0/protocol"), value: json!("TCP") };
        assert_eq!(
            literal_lines(template, &rendered, &set),
            [template.replace("port: 80\r\n", "port: 80\r\n    protocol: \"TCP\"\r\n")]
        );
        let block = Operation::Set { path: at("/spec/ports/0/x"), value: json!({"a": 1}) };
        assert!(literal_lines(template, &rendered, &block).is_empty());
    }
}
