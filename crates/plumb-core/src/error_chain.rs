//! Errors as one line of text.

use std::error::Error;

/// An error with its causes, in one line: `read a.yaml: line 4: not a map`.
pub fn error_chain(error: &dyn Error) -> String {
    with_causes(error.to_string(), error.source())
}

/// A text with the causes behind it. A cause whose text is already there is left out, because some libraries repeat
/// their cause in their own text.
pub fn with_causes(mut text: String, mut cause: Option<&dyn Error>) -> String {
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &dyn Error)
        }
    }

    #[test]
    fn a_cause_that_is_repeated_is_written_once() {
        let refused = || Box::new(Layer("connection refused", None));
        let connect = || Box::new(Layer("connect: connection refused", Some(refused())));
        let error = Layer("list pods", Some(connect()));
        assert_eq!(error_chain(&error), "list pods: connect: connection refused");
        assert_eq!(
            with_causes("cannot list pods".to_owned(), Some(&*refused())),
            "cannot list pods: connection refused"
        );
        assert_eq!(with_causes("done".to_owned(), None), "done");
    }
}
