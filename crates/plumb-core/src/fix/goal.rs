//! For whom Git is changed.

/// Whose verdict the changes shall turn green.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixGoal {
    /// Argo CD's: also differences that mean nothing, where Argo CD shows the object as `OutOfSync`.
    ArgoCd,
    /// plumb's own: only lines of Git that plumb itself asks to change.
    Plumb,
}
