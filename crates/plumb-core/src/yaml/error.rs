//! What is wrong with a text, and where.

/// A text that cannot be read, with the place. Values never appear in it: they may be secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct YamlError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub what: YamlProblem,
}

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlProblem {
    /// It is not YAML.
    #[error("{0}")]
    Syntax(String),
    /// It is neither UTF-8 nor UTF-16 with a byte order mark.
    #[error("the text is not UTF-8")]
    Encoding,
    /// A character that YAML does not allow in a text, such as NUL.
    #[error("control character U+{code:04X} is not allowed")]
    ControlCharacter {
        /// The character's code point.
        code: u32,
    },
    /// A line that starts with `---` and goes on.
    #[error("only a comment may follow `---` on its line")]
    Separator,
    /// The key is already there.
    #[error("key `{key}` is already set on line {first_line}")]
    DuplicateKey {
        /// The key, as JSON has it.
        key: String,
        /// Where it was set first, from 1.
        first_line: usize,
    },
    /// A map or list as a key.
    #[error("a map or a list cannot be a key")]
    CompositeKey,
    /// A key that is not text, a number or a boolean.
    #[error("{found} cannot be a key")]
    Key {
        /// What it is.
        found: &'static str,
    },
    /// `<<` with something else than maps.
    #[error("`<<` merges a map or a list of maps, not {found}")]
    Merge {
        /// What it is.
        found: &'static str,
    },
    /// An alias inside the value of its own anchor.
    #[error("the anchor's value contains itself")]
    Recursive,
    /// `.inf` or `.nan`.
    #[error("JSON has no such number: infinity and not-a-number cannot be in an object")]
    NotFinite,
    /// A value that does not fit its tag.
    #[error("the value is not {wanted}, as its tag says")]
    Tag {
        /// What the tag says.
        wanted: &'static str,
    },
    /// A `!!binary` value that is not base64.
    #[error("the value is not base64, as its tag `!!binary` says")]
    Base64,
    /// More bytes than allowed.
    #[error("the text is larger than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// Deeper than allowed, aliases included.
    #[error("maps and lists are nested deeper than {limit} levels")]
    TooDeep {
        /// What is allowed.
        limit: usize,
    },
    /// More memory than allowed.
    #[error("reading the text takes more than {} MiB of memory", .limit >> 20)]
    TooHeavy {
        /// What is allowed, in bytes.
        limit: usize,
    },
    /// Aliases that make much out of little.
    #[error("aliases expand to far more than the text contains")]
    TooManyAliases,
}
