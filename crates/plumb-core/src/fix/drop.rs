//! Removing the document of an object from a file.

use super::locate::locate;
use super::{FixRefusal, ObjectChange};
use crate::yaml::{EditRefusal, Limits, Operation, edit_document, parse_documents_bytes};

/// The file without the document of the object. Of a file with nothing else, a comment is left that says why.
pub fn drop_document(file: &[u8], change: &ObjectChange) -> Result<Vec<u8>, FixRefusal> {
    let unreadable = |error| FixRefusal::Edit(EditRefusal::Unreadable(error));
    let not_found = || FixRefusal::NotFound { key: change.key.clone() };
    let documents = parse_documents_bytes(file, &Limits::default()).map_err(unreadable)?;
    let place = locate(&documents, &change.key, change.origin.line).ok_or_else(not_found)?;
    if !place.path.segments().is_empty() {
        // An item of a List.
        let removed = edit_document(file, place.document, &[Operation::Remove { path: place.path }])?;
        return Ok(removed.text.into_bytes());
    }
    let text = std::str::from_utf8(file).map_err(|_| not_found())?;
    let parts = split(text);
    let with_content: Vec<usize> =
        (0..parts.len()).filter(|number| parts.get(*number).is_some_and(|part| has_content(part))).collect();
    // Both readers must see the same documents.
    let at = *with_content
        .get(place.document)
        .filter(|_| with_content.len() == documents.len())
        .ok_or_else(not_found)?;
    let comment = format!("# {}: {}\n", change.key, change.why);
    let mut kept: Vec<&str> = parts;
    kept.remove(at);
    let rest: String = kept.concat();
    let rest = if at == 0 { without_separator(&rest) } else { rest.as_str() };
    let rest = if rest.lines().any(has_content) { rest.to_owned() } else { comment };
    let after = parse_documents_bytes(rest.as_bytes(), &Limits::default()).map_err(unreadable)?;
    let expected = documents.iter().enumerate().filter(|(number, _)| *number != place.document);
    if !expected.map(|(_, document)| &document.value).eq(after.iter().map(|document| &document.value)) {
        return Err(not_found());
    }
    Ok(rest.into_bytes())
}

/// The text at its separators; each part begins with its own.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begins, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_separator = line.trim_end() == "---" || line.starts_with("--- ");
        if is_separator && at > begins {
            parts.push(&text[begins..at]);
            begins = at;
        }
        at += line.len();
    }
    parts.push(&text[begins..]);
    parts
}

fn has_content(part: &str) -> bool {
    part.lines().any(|line| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#') && line != "---"
    })
}

fn without_separator(text: &str) -> &str {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() == "---" { &text[first.len()..] } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::Origin;
    use crate::object::ObjectKey;

    fn dropped(text: &str, name: &str) -> Result<String, String> {
        let change = ObjectChange {
            key: ObjectKey::new("", "Namespace", None, name),
            origin: Origin { source: 0, file: "a.yaml".to_owned(), line: 1, verbatim: true },
            operations: Vec::new(),
            why: "app other keeps it".to_owned(),
        };
        let dropped = drop_document(text.as_bytes(), &change).map_err(|why| why.to_string())?;
        Ok(String::from_utf8(dropped).expect("text"))
    }

    fn doc(name: &str) -> String {
        format!("# about {name}\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}} # here\n")
    }

    #[test]
    fn the_other_documents_stay_as_they_are() {
        let (a, b, c) = (doc("a"), doc("b"), doc("c"));
        let all = format!("{a}---\n{b}---\n{c}");
        assert_eq!(dropped(&all, "a"), Ok(format!("{b}---\n{c}")));
        assert_eq!(dropped(&all, "b"), Ok(format!("{a}---\n{c}")));
        assert_eq!(dropped(&all, "c"), Ok(format!("{a}---\n{b}")));
        let windows = all.replace('\n', "\r\n");
        assert_eq!(dropped(&windows, "b"), Ok(format!("{a}---\n{c}").replace('\n', "\r\n")));
        let with_first = format!("---\n{a}---\n{b}");
        assert_eq!(dropped(&with_first, "a"), Ok(b.clone()));
        assert_eq!(dropped(&a, "a"), Ok("# Namespace a: app other keeps it\n".to_owned()));
        let list = "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n\
            - {apiVersion: v1, kind: Namespace, metadata: {name: b}}\n";
        assert!(dropped(list, "a").is_ok_and(|text| !text.contains("name: a") && text.contains("name: b")));
    }

    #[test]
    fn a_separator_inside_a_text_is_not_one() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: |\n    x\n    ---\n    y\n---\n";
        let all = format!("{text}{}", doc("a"));
        assert_eq!(dropped(&all, "a"), Ok(text.trim_end_matches("---\n").to_owned()));
        assert!(dropped(&all, "nothing").is_err());
    }
}
