//! What a rendering may cost.

use std::fmt;

/// An error of a template, with the text that Go would give where Go has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Bounds of one rendering, or of several that share a [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of the evaluation: nodes visited, items ranged over, items handled by functions.
    pub steps: u64,
    /// Bytes of text and values that the evaluation creates.
    pub bytes: u64,
    /// Nesting of actions and parentheses, in the text of a template and while it is evaluated. There each `{{template}}`
    /// call may add a few levels, up to [`MAX_CALLS`] of them.
    pub depth: usize,
}

impl Default for Limits {
    /// Far more than any template of a real `ApplicationSet` needs; at most about a second of work.
    fn default() -> Self {
        Self { steps: 2_000_000, bytes: 32 << 20, depth: 60 }
    }
}

/// Most `{{template}}` calls in each other. Go permits 100,000; the stack of a thread here is smaller.
pub const MAX_CALLS: usize = 100;

/// Deepest nesting of a value that functions walk. A template can nest values in each other without end.
pub const MAX_VALUE_DEPTH: usize = 200;

pub(crate) fn too_deep() -> Fault {
    Fault(format!("a value is nested deeper than {MAX_VALUE_DEPTH} levels"))
}
