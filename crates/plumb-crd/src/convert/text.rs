//! Texts of the wire format.

/// `None` for the empty string: on the wire both mean "not set".
pub(super) fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// True for the texts that Go's `strconv.ParseBool` reads as true; everything else is false.
pub(crate) fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}
