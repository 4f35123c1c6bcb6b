//! The part of jq that ignore rules may use.

use serde_json::Value;

/// A checked expression.
#[derive(Debug)]
pub(super) enum Expression {
    /// `.`
    Identity,
    /// `..`
    Recurse,
    /// A number, a text without interpolation, `true`, `false` or `null`.
    Literal(Value),
    /// `"a\(.b)"`
    Text(Vec<TextPart>),
    /// `[…]`
    Array(Option<Box<Expression>>),
    /// `{…}`
    Object(Vec<(Expression, Expression)>),
    /// `-…`
    Negate(Box<Expression>),
    /// `left | right`
    Pipe(Box<[Expression; 2]>),
    /// `left as $x | right`
    Bind(Box<[Expression; 2]>),
    /// `a, b, c`
    Comma(Vec<Expression>),
    /// `left // right`
    Alternative(Box<[Expression; 2]>),
    /// `a or b or c` if the flag is true, `a and b and c` if it is false.
    Logic(bool, Vec<Expression>),
    /// `left == right`
    Compare(Comparison, Box<[Expression; 2]>),
    /// `left + right`
    Add(Box<[Expression; 2]>),
    /// `left - right`
    Subtract(Box<[Expression; 2]>),
    /// `try … catch …`
    Try(Box<Expression>, Option<Box<Expression>>),
    /// `if … then … elif … else … end`
    If(Vec<(Expression, Expression)>, Option<Box<Expression>>),
    /// `$x`: how many binders lie between.
    Variable(usize),
    /// `.a["b"][0][]`, each part with whether it is optional.
    Path(Box<Expression>, Vec<(Part, bool)>),
    /// A function.
    Call(Function, Vec<Expression>),
}

/// A part of an interpolated text.
#[derive(Debug)]
pub(super) enum TextPart {
    Text(String),
    Value(Expression),
}

/// A part of a path.
#[derive(Debug)]
pub(super) enum Part {
    /// `.a`, `["a"]`, `[0]`
    Known(Value),
    /// `[.a]`
    At(Expression),
    /// `[]`
    All,
    /// `[from:to]`
    Slice(Option<Expression>, Option<Expression>),
}

/// A comparison.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// The types that `numbers`, `isnumber` and others tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    Boolean,
    Iterable,
    Null,
    Number,
    Object,
    Scalar,
    String,
    Value,
}

/// Functions that end, and look at nothing but their input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    All,
    Any,
    AsciiDowncase,
    AsciiUpcase,
    Contains,
    Empty,
    EndsWith,
    FirstItem,
    FirstOf,
    GetPath,
    Has,
    In,
    Index,
    Inside,
    Is(Kind),
    Keys,
    LastItem,
    LastOf,
    Length,
    LeftTrim,
    Map,
    Not,
    Path,
    RightTrim,
    Select,
    SelectKind(Kind),
    Split,
    SplitRegex,
    StartsWith,
    Test,
    ToText,
    Type,
}

impl Function {
    /// The function of this name with this many arguments, if it is allowed.
    pub(super) fn named(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("all", 0..=2) => Self::All,
            ("any", 0..=2) => Self::Any,
            ("arrays", 0) => Self::SelectKind(Kind::Array),
            ("ascii_downcase", 0) => Self::AsciiDowncase,
            ("ascii_upcase", 0) => Self::AsciiUpcase,
            ("booleans", 0) => Self::SelectKind(Kind::Boolean),
            ("contains", 1) => Self::Contains,
            ("empty", 0) => Self::Empty,
            ("endswith", 1) => Self::EndsWith,
            ("first", 0) => Self::FirstItem,
            ("first", 1) => Self::FirstOf,
            ("getpath", 1) => Self::GetPath,
            ("has", 1) => Self::Has,
            ("in", 1) => Self::In,
            ("index", 1) => Self::Index,
            ("inside", 1) => Self::Inside,
            ("isarray", 0) => Self::Is(Kind::Array),
            ("isboolean", 0) => Self::Is(Kind::Boolean),
            ("isnumber", 0) => Self::Is(Kind::Number),
            ("isobject", 0) => Self::Is(Kind::Object),
            ("isstring", 0) => Self::Is(Kind::String),
            ("iterables", 0) => Self::SelectKind(Kind::Iterable),
            ("keys", 0) => Self::Keys,
            ("last", 0) => Self::LastItem,
            ("last", 1) => Self::LastOf,
            ("length", 0) => Self::Length,
            ("ltrimstr", 1) => Self::LeftTrim,
            ("map", 1) => Self::Map,
            ("not", 0) => Self::Not,
            ("nulls", 0) => Self::SelectKind(Kind::Null),
            ("numbers", 0) => Self::SelectKind(Kind::Number),
            ("objects", 0) => Self::SelectKind(Kind::Object),
            ("path", 1) => Self::Path,
            ("rtrimstr", 1) => Self::RightTrim,
            ("scalars", 0) => Self::SelectKind(Kind::Scalar),
            ("select", 1) => Self::Select,
            ("split", 1) => Self::Split,
            ("split", 2) => Self::SplitRegex,
            ("startswith", 1) => Self::StartsWith,
            ("strings", 0) => Self::SelectKind(Kind::String),
            ("test", 1 | 2) => Self::Test,
            ("tostring", 0) => Self::ToText,
            ("type", 0) => Self::Type,
            ("values", 0) => Self::SelectKind(Kind::Value),
            _ => return None,
        })
    }

    /// True if a call costs no more than a look at its input.
    pub(super) fn is_cheap(self) -> bool {
        !matches!(
            self,
            Self::AsciiDowncase
                | Self::AsciiUpcase
                | Self::Contains
                | Self::GetPath
                | Self::In
                | Self::Index
                | Self::Inside
                | Self::Keys
                | Self::Map
                | Self::Path
                | Self::Split
                | Self::SplitRegex
                | Self::Test
                | Self::ToText
        )
    }
}
