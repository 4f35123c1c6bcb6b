//! Why a text is left alone.

use super::PathProblem;
use crate::object::FieldPath;
use crate::yaml::YamlError;

/// Why an edit was not made. Nothing is changed then. Values never appear in it: they may be secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    /// Only UTF-8 can be changed without changing the rest.
    #[error("the file is not UTF-8 (line {line}); convert it first")]
    Encoding {
        /// The first line that is not, from 1.
        line: usize,
    },
    /// A line break that many programs do not see.
    #[error(
        "line {line} has a line break (U+{code:04X}) that is neither LF nor CRLF; convert the file first"
    )]
    LineBreak {
        /// From 1.
        line: usize,
        /// The character.
        code: u32,
    },
    /// The text is not YAML; a template, for example.
    #[error("the file is not plain YAML: {0}")]
    Unreadable(YamlError),
    /// There are fewer documents.
    #[error(
        "the file has {n_documents} documents, so there is none with the number {document} (counted from 0)"
    )]
    NoDocument {
        /// Which one was meant, from 0.
        document: usize,
        /// How many there are.
        n_documents: usize,
    },
    /// The document has no such place.
    #[error("{0}")]
    Path(#[from] PathProblem),
    /// The text at the place also stands for other places.
    #[error(
        "{path} is inside the anchor on line {anchor_line}, which is used again on {}: a change would also change \
         what is there", lines(.alias_lines)
    )]
    Shared {
        /// The place that would change.
        path: FieldPath,
        /// Where the anchor is.
        anchor_line: usize,
        /// Where its aliases are.
        alias_lines: Vec<usize>,
    },
    /// The field has no line of its own that could be removed.
    #[error(
        "{path} comes from the alias or merge key on line {line}, so there is no line of its own to remove"
    )]
    Merged {
        /// The field.
        path: FieldPath,
        /// Where the map is.
        line: usize,
    },
    /// A form that is valid, and that the editor does not change.
    #[error("line {line} has {what}, which plumb does not edit")]
    Form {
        /// From 1.
        line: usize,
        /// Which form.
        what: &'static str,
    },
    /// The result would say something else than intended, or change more.
    #[error("no change of the text near line {line} was found that changes {path} and nothing else")]
    NotProved {
        /// The place that should change.
        path: FieldPath,
        /// Where its document starts.
        line: usize,
    },
    /// More changes, or a larger text, than the editor takes.
    #[error("the change is too large: more than {limit} {what}")]
    TooLarge {
        /// What is allowed.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
}

impl EditRefusal {
    /// The same with the place that the user wants to change, not the part of the way where the reason is.
    pub(super) fn about(self, path: &FieldPath) -> Self {
        match self {
            Self::Shared { anchor_line, alias_lines, .. } => {
                Self::Shared { path: path.clone(), anchor_line, alias_lines }
            }
            other => other,
        }
    }
}

fn lines(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        [one] => format!("line {one}"),
        many => format!("lines {}", many.join(", ")),
    }
}
