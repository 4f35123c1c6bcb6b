//! Files in many styles, each with a random change: only the meant lines differ, and the result is what was meant.

use serde_json::{Value, json};

use super::operations::*;
use super::styled::{Dice, Writer, Written, document, value};
use crate::yaml::{Limits, parse_documents};

const N_FILES: u64 = 1_000;

/// A file with one of its documents, as it was written.
struct File {
    text: String,
    values: Vec<Value>,
    /// Which document is edited, and what is known about its fields.
    document: usize,
    fields: Vec<(FieldPath, Written)>,
    first_line: usize,
    n_comments: usize,
}

fn file(dice: &mut Dice) -> File {
    let n_documents = 1 + dice.below(3);
    let document_number = dice.below(n_documents);
    let (mut text, mut values, mut n_comments) = (String::new(), Vec::new(), 0);
    let (mut fields, mut first_line) = (Vec::new(), 0);
    for number in 0..n_documents {
        if number > 0 || dice.one_in(3) {
            let mark = *dice.pick(&["---\n", "--- # mark\n", "---  \n", "---\n# nothing\n---\n"]);
            text.push_str(mark);
        }
        let value = document(dice);
        let mut writer = Writer::new(dice, n_comments);
        writer.root(&value);
        n_comments = writer.n_comments;
        if number == document_number {
            first_line = text.matches('\n').count();
            let written = writer.fields;
            fields = paths(&value)
                .into_iter()
                .filter_map(|path| Some((path.clone(), written.get(&path.to_string())?.clone())))
                .collect();
        }
        text.push_str(&writer.text);
        values.push(value);
    }
    if dice.one_in(4) {
        text = text.replace('\n', "\r\n");
    }
    if dice.one_in(4) {
        let is_kept = text.ends_with("\n\n") || text.ends_with("\n\r\n");
        text.truncate(if is_kept { text.len() } else { text.trim_end_matches(['\r', '\n']).len() });
    }
    File { text, values, document: document_number, fields, first_line, n_comments }
}

/// Every place in a value but the root.
fn paths(value: &Value) -> Vec<FieldPath> {
    fn walk(value: &Value, path: &FieldPath, found: &mut Vec<FieldPath>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                found.push(path.field(key.as_str()));
                walk(value, &path.field(key.as_str()), found);
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| {
                found.push(path.index(at));
                walk(value, &path.index(at), found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, &FieldPath::root(), &mut found);
    found
}

/// A change that some place of the document allows, and the place.
fn change(dice: &mut Dice, file: &File) -> (Operation, FieldPath) {
    let (path, _) = dice.pick(&file.fields).clone();
    let found = path.find(&file.values[file.document]).expect("there").clone();
    let fresh = value(dice, 2);
    let operation = match (dice.below(4), &found) {
        (0, _) => Operation::Remove { path: path.clone() },
        (1, Value::Object(_)) => Operation::Set { path: path.field("added"), value: fresh },
        (1, Value::Array(_)) => Operation::Append { path: path.clone(), value: fresh, comment: None },
        (2, _) if matches!(path.segments().last(), Some(crate::object::Segment::Field(_))) => {
            Operation::Rename { path: path.clone(), to: "renamed".to_owned() }
        }
        _ => Operation::Set { path: path.clone(), value: fresh },
    };
    (operation, path)
}

/// The comments of a text, as numbers. Each is `# c<number>: [x`.
fn comments(text: &str) -> Vec<usize> {
    let number = |part: &str| part.split(':').next().and_then(|number| number.parse().ok());
    text.split("# c").skip(1).filter_map(number).collect()
}

/// How many lines at the start, and how many at the end, are the same.
fn same_lines(old: &[&str], new: &[&str]) -> (usize, usize) {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    (start, old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count())
}

fn check(seed: u64) -> Result<bool, String> {
    let mut dice = dice(seed);
    let file = file(&mut dice);
    let read =
        parse_documents(&file.text, &Limits::default()).map_err(|error| format!("generator: {error}"))?;
    let read: Vec<Value> = read.into_iter().map(|document| document.value).collect();
    if read != file.values {
        return Err(format!("generator: wrote {:?}, read {read:?}", file.values));
    }
    let (operation, path) = change(&mut dice, &file);
    let context = || format!("{operation} in document {}", file.document);
    let operations = std::slice::from_ref(&operation);
    let edited = match edit_document(file.text.as_bytes(), file.document, operations) {
        Ok(edited) => edited,
        // A text that keeps its blank lines would take those behind its neighbour.
        Err(EditRefusal::NotProved { .. }) if file.text.contains("|+") || file.text.contains('+') => {
            return Ok(false);
        }
        Err(refusal) => return Err(format!("{}: {refusal}", context())),
    };
    let mut expected = file.values.clone();
    expected[file.document] = operation.apply(&expected[file.document]).map_err(|error| error.to_string())?;
    let after = parse_documents(&edited.text, &Limits::default()).map_err(|error| error.to_string())?;
    let after: Vec<Value> = after.into_iter().map(|document| document.value).collect();
    if after != expected {
        return Err(format!("{}: another value\n{}", context(), edited.text));
    }
    let again = edit_document(edited.text.as_bytes(), file.document, operations);
    if !is_removed_item(&operation) && again.map(|again| again.text) != Ok(edited.text.clone()) {
        return Err(format!("{}: not the same when repeated\n{}", context(), edited.text));
    }
    let written = &file.fields.iter().find(|(known, _)| *known == path).expect("written").1;
    unchanged_around(&file, &edited.text, written)
        .map_err(|error| format!("{}: {error}\n{}", context(), edited.text))?;
    Ok(true)
}

/// Only lines of the field may differ, and the one above or below where a comma or brackets come or go. Comments
/// outside of the field stay.
fn unchanged_around(file: &File, edited: &str, written: &Written) -> Result<(), String> {
    if edited == file.text {
        return Ok(());
    }
    let (kept, old): (Vec<usize>, Vec<&str>) = (comments(edited), file.text.lines().collect());
    let (first, last) = (file.first_line + written.first_line, file.first_line + written.last_line);
    let own = comments(&old.get(first..=last).unwrap_or_default().join("\n"));
    let missing = (0..file.n_comments).find(|number| !kept.contains(number) && !own.contains(number));
    if let Some(missing) = missing {
        return Err(format!("comment {missing} is missing"));
    }
    // A blank line that becomes the last one keeps its break.
    let may_end_so = edited.ends_with('\n') && file.text.replace('\r', "").contains("\n\n");
    if edited.ends_with('\n') != file.text.ends_with('\n') && !may_end_so {
        return Err("the end of the file differs".to_owned());
    }
    if edited.contains("\r\n") && edited.replace("\r\n", "").contains('\n') {
        return Err("line breaks are mixed".to_owned());
    }
    let new: Vec<&str> = edited.lines().collect();
    let (start, end) = same_lines(&old, &new);
    let n_blank = |lines: &[&str]| lines.iter().filter(|line| line.trim().is_empty()).count();
    let before = old.get(start..first).unwrap_or_default();
    let after = old.get(last + 1..old.len() - end).unwrap_or_default();
    // The last line that differs may be further away if the lines between are equal to new ones, or only blank.
    if before.len() > 1 + n_blank(before) + comment_lines(before) {
        return Err(format!(
            "line {} differs, the field is on lines {} to {}",
            start + 1,
            first + 1,
            last + 1
        ));
    }
    if after.len() > 1 + n_blank(after) + comment_lines(after) {
        return Err(format!(
            "line {} differs, the field is on lines {} to {}",
            old.len() - end,
            first + 1,
            last + 1
        ));
    }
    Ok(())
}

fn comment_lines(lines: &[&str]) -> usize {
    lines.iter().filter(|line| line.trim_start().starts_with('#')).count()
}

#[test]
fn files_in_many_styles_change_only_where_they_shall() {
    let (mut n_edited, mut failures) = (0, Vec::new());
    for seed in 1..=N_FILES {
        match check(seed) {
            Ok(was_edited) => n_edited += u64::from(was_edited),
            Err(error) => {
                let text = file(&mut dice(seed)).text;
                failures.push(format!("seed {seed}: {error}\n=== before ===\n{text}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} fail, such as\n{}",
        failures.len(),
        failures[..failures.len().min(4)].join("\n")
    );
    assert!(n_edited * 100 >= N_FILES * 95, "only {n_edited} of {N_FILES} were edited");
}

fn dice(seed: u64) -> Dice {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    dice.shake();
    dice
}

/// The same with a part that is repeated: either nothing but the meant place changes, or the reason is the anchor.
#[test]
fn files_with_aliases_change_only_where_they_shall() {
    let (mut n_edited, mut n_refused) = (0, 0);
    for seed in 1..=N_FILES / 2 {
        let mut dice = dice(seed);
        let base = json!({"image": "x", "env": {"a": 1}, "own": value(&mut dice, 1)});
        let text = format!(
            "base: &base {base}\nalias: *base\nmerged:\n  <<: *base\n  own: 1\nflow: {{<<: [*base], z: [*base]}}\n"
        );
        let value = parse_documents(&text, &Limits::default()).expect("readable")[0].value.clone();
        let path = dice.pick(&paths(&value)).clone();
        let operation = match dice.below(3) {
            0 => Operation::Remove { path },
            1 => Operation::Set { path, value: json!("changed") },
            _ => Operation::Set { path, value: json!({"k": ["v"]}) },
        };
        match edit_document(text.as_bytes(), 0, std::slice::from_ref(&operation)) {
            Ok(edited) => {
                n_edited += 1;
                assert_eq!(
                    edited.value,
                    operation.apply(&value).expect("applies"),
                    "{operation}\n{}",
                    edited.text
                );
            }
            Err(EditRefusal::Shared { .. } | EditRefusal::Merged { .. }) => n_refused += 1,
            Err(refusal) => panic!("{operation}: {refusal}\n{text}"),
        }
    }
    assert!(n_edited > 200 && n_refused > 100, "{n_edited} edited, {n_refused} refused");
}
