//! Differences that users chose to ignore.

/// One entry of `spec.ignoreDifferences`, or of the settings' system-wide rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreRule {
    /// Glob; the empty string matches only the core group.
    pub group: String,
    /// Glob.
    pub kind: String,
    /// Exact; `None` matches any.
    pub name: Option<String>,
    /// Exact; `None` matches any.
    pub namespace: Option<String>,
    /// RFC 6901 pointers.
    pub json_pointers: Vec<String>,
    /// jq paths, used as `del(<path>)`.
    pub jq_path_expressions: Vec<String>,
    /// Field managers whose fields do not count.
    pub managed_fields_managers: Vec<String>,
}
