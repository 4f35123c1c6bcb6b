//! Finds imports by their text. Jsonnet imports are always string literals, so the text shows all of them. An import
//! in a comment is found too, which only adds an unused file to the read set.

use std::collections::BTreeSet;

use plumb_core::source::{EntryKind, RepoPath, follow, read_following};

use crate::error::RenderError;
use crate::read_set::ReadSet;

/// Most files that may be imported.
const MAX_IMPORTS: usize = 10_000;

/// Adds the files and everything that they import, directly or indirectly.
pub(super) fn add_all(files: &[RepoPath], search: &[RepoPath], set: &mut ReadSet) -> Result<(), RenderError> {
    let mut waiting: Vec<RepoPath> = files.to_vec();
    let mut seen = BTreeSet::new();
    while let Some(file) = waiting.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        if seen.len() > MAX_IMPORTS {
            let what = "number of files that Jsonnet imports".to_owned();
            return Err(RenderError::Limit { what, limit: MAX_IMPORTS as u64 });
        }
        set.add("", &file, &format!("`{file}`"))?;
        let Some(source) = set.files("") else { continue };
        let text = read_following(source.as_ref(), &file).map_err(RenderError::read(format!("`{file}`")))?;
        let imports = literals(&String::from_utf8_lossy(&text));
        waiting.extend(
            imports.iter().filter_map(|text| resolve_import(&file, text, search, |path| is_file(set, path))),
        );
    }
    Ok(())
}

/// The file that an import names: beside the importing file, else in the search path from its end.
pub(super) fn resolve_import(
    from: &RepoPath,
    text: &str,
    search: &[RepoPath],
    is_file: impl Fn(&RepoPath) -> bool,
) -> Option<RepoPath> {
    std::iter::once(&from.parent())
        .chain(search.iter().rev())
        .filter_map(|directory| directory.join(text).ok())
        .find(is_file)
}

fn is_file(set: &ReadSet, path: &RepoPath) -> bool {
    set.files("").is_some_and(|files| {
        follow(files.as_ref(), path)
            .is_ok_and(|(_, kind)| matches!(kind, EntryKind::File | EntryKind::Executable))
    })
}

/// How many bytes after an `import` its string may end. Without a limit, a file that repeats `import/*` takes quadratic
/// time.
const MAX_REACH: usize = 1024;

/// The string after every `import`, `importstr` and `importbin`.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(position) = rest.find("import") {
        rest = &rest[position + "import".len()..];
        let near = &rest[..rest.floor_char_boundary(MAX_REACH)];
        let after = near.strip_prefix("str").or_else(|| near.strip_prefix("bin")).unwrap_or(near);
        found.extend(literal(skip_blank(after)));
    }
    found
}

/// The text after blanks and comments.
fn skip_blank(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(comment) = text.strip_prefix("/*") {
            text = comment.split_once("*/").map_or("", |(_, after)| after);
        } else if text.starts_with("//") || text.starts_with('#') {
            text = text.split_once('\n').map_or("", |(_, after)| after);
        } else {
            return text;
        }
    }
}

fn literal(text: &str) -> Option<String> {
    let (verbatim, text) = text.strip_prefix('@').map_or((false, text), |text| (true, text));
    let quote = text.chars().next().filter(|character| matches!(character, '"' | '\''))?;
    let mut characters = text[1..].chars().peekable();
    let mut content = String::new();
    loop {
        match characters.next()? {
            character if character == quote => {
                // In a verbatim string, a doubled quote is one quote.
                if !(verbatim && characters.next_if_eq(&quote).is_some()) {
                    return Some(content);
                }
                content.push(quote);
            }
            '\\' if !verbatim => content.push(match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                other => other,
            }),
            character => content.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the limit each of these is a second and more for every hundred kilobytes squared.
    #[test]
    fn a_file_is_read_once_not_as_often_as_it_is_long() {
        for part in ["import/*", "import//", "import\"\\", "importstr @'", "import#"] {
            let text = part.repeat(200_000);
            let started = std::time::Instant::now();
            literals(&text);
            assert!(
                started.elapsed() < std::time::Duration::from_secs(10),
                "{part}: {:?}",
                started.elapsed()
            );
        }
    }

    #[test]
    fn every_spelling_of_an_import_is_found() {
        let text = r#"
            local a = import "a.libsonnet";
            local b = importstr 'b.txt';
            local c = import /* why */ @"c""d";
            local d = import // x
                "\u0064.libsonnet";
            local e = importbin"e.bin";
            local f = important;
        "#;
        assert_eq!(literals(text), ["a.libsonnet", "b.txt", "c\"d", "d.libsonnet", "e.bin"]);
        assert_eq!(literals("import \"unterminated"), Vec::<String>::new());
    }
}
