//! Compare options of an app or an object.

/// `argocd.argoproj.io/compare-options`, on an Application or on one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// `Strict=true`: fields and list items that Git does not mention count as drift.
    pub strict: bool,
    /// `IgnoreExtraneous`: this object's presence without Git does not make the app `OutOfSync`.
    pub ignore_extraneous: bool,
    /// `ServerSideDiff=true` or `=false`: does every comparison ask the server? Without it, the settings say.
    pub server_side_diff: Option<bool>,
    /// `IncludeMutationWebhook=true`, beside `ServerSideDiff=true`: what admission would add counts, too.
    pub include_mutation_webhook: bool,
}

impl CompareOptions {
    /// The annotation's key.
    pub const ANNOTATION: &'static str = "argocd.argoproj.io/compare-options";

    /// Reads the annotation's comma-separated text; unknown entries are ignored, as Argo CD does.
    pub fn parse(text: &str) -> Self {
        let has = |option: &str| text.split(',').any(|entry| entry.trim() == option);
        Self {
            strict: has("Strict=true"),
            ignore_extraneous: has("IgnoreExtraneous"),
            server_side_diff: match (has("ServerSideDiff=false"), has("ServerSideDiff=true")) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            },
            include_mutation_webhook: has("IncludeMutationWebhook=true"),
        }
    }

    /// Both sets of options together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            strict: self.strict || other.strict,
            ignore_extraneous: self.ignore_extraneous || other.ignore_extraneous,
            server_side_diff: self.server_side_diff.or(other.server_side_diff),
            include_mutation_webhook: self.include_mutation_webhook || other.include_mutation_webhook,
        }
    }
}
