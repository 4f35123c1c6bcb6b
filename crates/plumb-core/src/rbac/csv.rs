//! One line of a policy is one CSV record, as Go's `encoding/csv` reads it with leading blanks dropped.

/// The fields of a line; `Err` says what is wrong with it.
///
/// Leading blanks of a field are dropped, trailing ones belong to it: `allow ` is not `allow`.
pub(super) fn fields(line: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => plain_field(rest)?,
        };
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => return Ok(fields),
        }
    }
}

/// A field without quotes, and what follows its comma.
fn plain_field(text: &str) -> Result<(String, Option<&str>), &'static str> {
    let (field, after) = match text.split_once(',') {
        Some((field, after)) => (field, Some(after)),
        None => (text, None),
    };
    if field.contains('"') {
        return Err("a field with a quote in it must be quoted as a whole");
    }
    Ok((field.to_owned(), after))
}

/// A field after its opening quote, and what follows its comma. Two quotes inside stand for one.
fn quoted_field(text: &str) -> Result<(String, Option<&str>), &'static str> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"').ok_or("a quote is not closed")?;
        field.push_str(before);
        if let Some(after) = after.strip_prefix('"') {
            field.push('"');
            rest = after;
        } else if let Some(after) = after.strip_prefix(',') {
            return Ok((field, Some(after)));
        } else if after.is_empty() {
            return Ok((field, None));
        } else {
            return Err("a closing quote is not followed by a comma");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_go_reads_it() {
        for (line, expected) in [
            ("p, a, b", vec!["p", "a", "b"]),
            ("p,a ,  b c ", vec!["p", "a ", "b c "]),
            (r#"g, "a,b", c"#, vec!["g", "a,b", "c"]),
            (r#"g, "a""b", c"#, vec!["g", "a\"b", "c"]),
            ("g,,", vec!["g", "", ""]),
            (r#"g, """#, vec!["g", ""]),
        ] {
            assert_eq!(fields(line).expect("a record"), expected, "{line}");
        }
    }

    #[test]
    fn stray_quotes_are_errors() {
        for line in [r#"p, a"b, c"#, r#"p, "a"b, c"#, r#"p, "a, c"#, r#"p, "a" , c"#] {
            assert!(fields(line).is_err(), "{line}");
        }
    }
}
