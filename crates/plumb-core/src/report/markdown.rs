//! Tables in Markdown.

/// One row of a table.
pub(crate) fn row(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Names and messages are written by others: they must not become links, images or HTML.
pub(crate) fn escaped(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    for char in cell.chars() {
        match char {
            '\n' | '\r' | '\t' => text.push(' '),
            char if char.is_control() => {}
            '|' | '[' | ']' | '<' | '>' | '`' | '*' | '_' | '\\' | '!' | '&' | '@' | '#' => {
                text.push('\\');
                text.push(char);
            }
            char => text.push(char),
        }
    }
    text
}
