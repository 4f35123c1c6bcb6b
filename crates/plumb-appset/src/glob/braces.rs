//! `{a,b}` of a pattern, written out.

/// Most patterns that `{a,b}` may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// All patterns that a pattern with braces stands for.
pub(super) fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let mut complete = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        match braces(&pattern)? {
            None => complete.push(pattern),
            Some((before, choices, after)) => {
                open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
            }
        }
        if complete.len() + open.len() > MAX_ALTERNATIVES {
            return Err(format!(
                "its braces stand for more than {MAX_ALTERNATIVES} patterns; write several patterns"
            ));
        }
    }
    Ok(complete)
}

/// What is before braces, what is between their commas, what is after them.
type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

/// The first braces of a pattern. Those after a backslash or in a class stand for themselves.
fn braces(pattern: &str) -> Result<Option<Braces<'_>>, String> {
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => at = class_end(bytes, at).ok_or("a `[` is not closed")?,
            b'}' => return Err("a `}` closes nothing".to_owned()),
            b'{' => return Ok(Some(choices(pattern, at).ok_or("a `{` is not closed")?)),
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

/// Where the class that starts here ends.
fn class_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while *bytes.get(at)? != b']' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at)
}

fn choices(pattern: &str, open: usize) -> Option<Braces<'_>> {
    let bytes = pattern.as_bytes();
    let (mut depth, mut at, mut start) = (0, open, open + 1);
    let mut choices = Vec::new();
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 1,
            b'{' => depth += 1,
            b'}' if depth == 1 => {
                choices.push(&pattern[start..at]);
                return Some((&pattern[..open], choices, &pattern[at + 1..]));
            }
            b'}' => depth -= 1,
            b',' if depth == 1 => {
                choices.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}
