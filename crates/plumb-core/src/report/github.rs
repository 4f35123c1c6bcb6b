//! Annotations of GitHub Actions: a line on stdout that the runner shows beside the code.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Red.
    Error,
    /// Yellow.
    Warning,
    /// Grey.
    Notice,
}

/// What to show, and where.
#[derive(Clone, Copy, Debug)]
pub struct Annotation<'text> {
    /// How bad it is.
    pub level: Level,
    /// Its title.
    pub title: &'text str,
    /// File and line (from 1), if they are known.
    pub place: Option<(&'text str, usize)>,
    /// What is wrong.
    pub message: &'text str,
}

/// One line that GitHub's runner reads as a command.
pub fn annotation(annotation: &Annotation<'_>) -> String {
    let level = match annotation.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let place = annotation.place.map(|(file, line)| format!("file={},line={line},", property(file)));
    format!(
        "::{level} {}title={}::{}",
        place.unwrap_or_default(),
        property(annotation.title),
        message(annotation.message)
    )
}

/// A line break in a message would end the command, and the next line could be another one.
fn message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_cannot_become_a_command() {
        let shown = annotation(&Annotation {
            level: Level::Warning,
            title: "a,b:c",
            place: Some(("x,y.yaml", 7)),
            message: "100%\n::error::forged",
        });
        assert_eq!(shown, "::warning file=x%2Cy.yaml,line=7,title=a%2Cb%3Ac::100%25%0A::error::forged");
        assert_eq!(shown.lines().count(), 1);
    }
}
