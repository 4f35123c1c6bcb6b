//! Texts of others, made safe before they are written to the cluster.
//!
//! Messages quote tools, servers, objects and addresses. What is written to a status, an event or a report is read by
//! every user who may read the app, so logins in addresses and plumb's own directories are removed, and characters that a
//! terminal obeys become visible. Cleaning a text twice changes nothing: a status that did not change is not written again.

use std::borrow::Cow;
use std::path::Path;

use plumb_core::text::{visible_lines, without_logins};

/// Cleans texts before they are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownText {
    /// The directory of plumb's caches.
    private: Option<String>,
}

impl ShownText {
    /// Hides this directory.
    pub(crate) fn hiding(directory: &Path) -> Self {
        let text = directory.to_string_lossy().trim_end_matches('/').to_owned();
        Self { private: Some(text).filter(|text| text.len() > 1) }
    }

    /// The text as it may be written; several lines stay several lines.
    pub(crate) fn clean(&self, text: &mut String) {
        if let Some(private) = &self.private
            && text.contains(private.as_str())
        {
            *text = text.replace(private.as_str(), "(cache)");
        }
        if let Cow::Owned(changed) = without_logins(text) {
            *text = changed;
        }
        if let Cow::Owned(changed) = visible_lines(text) {
            *text = changed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_has_no_logins_no_own_paths_and_no_hidden_characters() {
        let shown = ShownText::hiding(Path::new("/home/plumb/.cache/plumb/"));
        let mut text =
            "accumulating /home/plumb/.cache/plumb/render/x: https://bob:s3cret@host/x\n\u{1b}[2K".to_owned();
        shown.clean(&mut text);
        assert_eq!(text, "accumulating (cache)/render/x: https://••••@host/x\n\\u{1b}[2K");
        let again = text.clone();
        shown.clean(&mut text);
        assert_eq!(text, again);
    }
}
