//! Data to stdout, talk to stderr. A reader that went away (`| head`) is no error.

use std::io::Write;

/// One line of the command's answer.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// One line for the person in front of it.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A table with aligned columns and two blanks between them, as kubectl prints them.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (index, cell) in cells.iter().enumerate() {
            line.push_str(cell);
            if index + 1 < cells.len() {
                let padding =
                    widths.get(index).copied().unwrap_or(0).saturating_sub(cell.chars().count()) + 2;
                line.push_str(&" ".repeat(padding));
            }
        }
        line.trim_end().to_owned()
    };
    let mut lines = vec![line(header.to_vec())];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_blanks() {
        let rows = vec![
            vec!["a".to_owned(), "Synced".to_owned(), String::new()],
            vec!["longer".to_owned(), "x".to_owned(), "y".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "STATUS", "Z"], &rows),
            "NAME    STATUS  Z\na       Synced\nlonger  x       y"
        );
    }
}
