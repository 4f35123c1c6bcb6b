//! No line of a document has more than 110 columns. Tables and code blocks are exempt.

use anyhow::Result;

use super::reading::Tree;
use super::violation::Violation;

const MOST_COLUMNS: usize = 110;

pub(super) fn check(tree: &Tree) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for path in tree.with_extension("md") {
        for (number, n_columns) in long_lines(&tree.text(path)?) {
            let what = format!("line {number} has {n_columns} columns, at most {MOST_COLUMNS}");
            found.push(Violation::new(path.display().to_string(), what));
        }
    }
    Ok(found)
}

/// The numbers of the lines that are too long, with their widths.
fn long_lines(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut may_start_code = true;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        is_fenced ^= is_fence;
        // Four spaces make a code block only after an empty line: elsewhere they continue a list item.
        let is_indented_code = may_start_code && line.starts_with("    ");
        may_start_code = trimmed.is_empty() || is_indented_code;
        let is_exempt = is_fenced || is_fence || is_indented_code || trimmed.starts_with('|');
        let n_columns = line.chars().count();
        if !is_exempt && n_columns > MOST_COLUMNS {
            found.push((number + 1, n_columns));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_measured_and_tables_and_code_are_not() {
        let long = "x".repeat(MOST_COLUMNS + 1);
        for (text, lines) in [
            (long.clone(), vec![1]),
            ("ä".repeat(MOST_COLUMNS), vec![]),
            (format!("| {long} |"), vec![]),
            (format!("```\n{long}\n```\n{long}"), vec![4]),
            (format!("words\n\n    {long}\n    {long}\n\n{long}"), vec![6]),
            (format!("- item\n    {long}"), vec![2]),
        ] {
            let found: Vec<usize> = long_lines(&text).into_iter().map(|(number, _)| number).collect();
            assert_eq!(found, lines, "{text}");
        }
    }
}
