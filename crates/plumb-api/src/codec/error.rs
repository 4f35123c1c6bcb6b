//! What cannot be converted.

/// A message cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The bytes end inside of a field, or have a type that the field does not have.
    #[error("the message is damaged")]
    Damaged,
    /// Messages are nested too deeply.
    #[error("the message is nested too deeply")]
    TooDeep,
    /// A message has more values than plumb reads.
    #[error("the message has too many values")]
    TooMany,
    /// A value has another type than its field.
    #[error("{field} must be {expected}")]
    Unexpected {
        /// The field.
        field: String,
        /// What it holds.
        expected: &'static str,
    },
}
