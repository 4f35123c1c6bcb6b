//! What the scanner gives to the parser.

use super::scalar::Tag;

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub line: usize,
    /// From 0, in characters.
    pub column: usize,
    /// Characters before it.
    pub index: usize,
    /// Bytes before it.
    pub offset: usize,
}

/// One token with the place where it starts.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub place: Place,
    /// The byte behind its last one. A token without text of its own ends where it starts.
    pub end: usize,
}

/// The tokens of YAML. Indentation has become starts and ends of block collections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing is left.
    End,
    /// `---`
    DocumentStart,
    /// `...`
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    /// `-`
    BlockEntry,
    /// `,`
    FlowEntry,
    /// `?`, or found out by the `:` behind what it precedes.
    Key,
    /// `:`
    Value,
    Alias(String),
    Anchor(String),
    Tag(Tag),
    Scalar {
        text: String,
        style: ScalarStyle,
    },
    /// Perhaps a key starts here, in the flow collection of this level: a later `:` decides. Two tokens are kept
    /// free, for the start of a mapping and for the key.
    MaybeKey {
        level: usize,
    },
    /// A free token that is not needed.
    Nothing,
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// Behind `|` or `>`.
    Block,
}

impl Kind {
    /// For messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::End => "the end of the text",
            Self::DocumentStart => "`---`",
            Self::DocumentEnd => "`...`",
            Self::BlockSequenceStart | Self::BlockEntry => "`-`",
            Self::BlockMappingStart | Self::Key | Self::MaybeKey { .. } => "a key",
            Self::BlockEnd => "less indentation",
            Self::FlowSequenceStart => "`[`",
            Self::FlowSequenceEnd => "`]`",
            Self::FlowMappingStart => "`{`",
            Self::FlowMappingEnd => "`}`",
            Self::FlowEntry => "`,`",
            Self::Value => "`:`",
            Self::Alias(_) => "an alias",
            Self::Anchor(_) => "an anchor",
            Self::Tag(_) => "a tag",
            Self::Scalar { .. } => "a value",
            Self::Nothing => "nothing",
        }
    }
}
