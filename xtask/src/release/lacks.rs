//! What a machine lacks for a release.

use anyhow::{Result, bail};

use crate::say::say;

/// What happens where a part of a release cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacks {
    /// It is left out, and named.
    Skip,
    /// Nothing is published: users would miss it.
    Fail,
}

impl Lacks {
    /// Names what is left out.
    pub(super) fn say(self, what: &str) -> Result<()> {
        match self {
            Self::Skip => say(&format!("skipped: {what}")),
            Self::Fail => bail!("cannot make every file of the release: {what}; `--dry-run` leaves it out"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dry_run_leaves_something_out() {
        assert!(Lacks::Skip.say("the image").is_ok());
        let error = Lacks::Fail.say("the image: install buildah").unwrap_err().to_string();
        assert!(error.contains("install buildah"), "{error}");
    }
}
