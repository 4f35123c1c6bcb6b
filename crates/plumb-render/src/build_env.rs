//! The build environment: `ARGOCD_APP_NAME` and similar variables, and `$VAR` in options.

use std::collections::BTreeMap;

use crate::request::RenderRequest;

/// Variables that options may use and that tools get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildEnvironment(BTreeMap<String, String>);

impl BuildEnvironment {
    /// The variables of one source of one app.
    pub fn of(request: &RenderRequest) -> Self {
        let source = &request.source;
        let revision = request.revision.as_str();
        let start = |n: usize| revision.get(..n).unwrap_or(revision).to_owned();
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Self(
            [
                ("ARGOCD_APP_NAME", request.app.instance.clone()),
                ("ARGOCD_APP_NAMESPACE", request.app.namespace.clone()),
                ("ARGOCD_APP_PROJECT_NAME", request.app.project.clone()),
                ("ARGOCD_APP_REVISION", revision.to_owned()),
                ("ARGOCD_APP_REVISION_SHORT", start(7)),
                ("ARGOCD_APP_REVISION_SHORT_8", start(8)),
                ("ARGOCD_APP_SOURCE_PATH", text(&source.path)),
                ("ARGOCD_APP_SOURCE_REPO_URL", source.repo_url.clone()),
                ("ARGOCD_APP_SOURCE_TARGET_REVISION", text(&source.target_revision)),
            ]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        )
    }

    /// Replaces `$VAR` and `${VAR}`; unknown ones become empty, `$$` is a dollar.
    pub fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(position) = rest.find('$') {
            expanded.push_str(&rest[..position]);
            rest = &rest[position + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                expanded.push('$');
                rest = after;
            } else if let Some(braced) = rest.strip_prefix('{') {
                let Some((name, after)) = braced.split_once('}') else {
                    // As Go does: an unclosed brace is dropped.
                    rest = braced;
                    continue;
                };
                expanded.push_str(self.0.get(name).map_or("", String::as_str));
                rest = after;
            } else {
                let end = rest
                    .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
                    .unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                expanded.push_str(self.0.get(name).map_or("", String::as_str));
                rest = after;
            }
        }
        expanded.push_str(rest);
        expanded
    }

    /// True if a variable of this name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_in_a_shell() {
        let environment = BuildEnvironment([("ARGOCD_APP_NAME".to_owned(), "web".to_owned())].into());
        for (text, expected) in [
            ("plain", "plain"),
            ("$ARGOCD_APP_NAME-x", "web-x"),
            ("a${ARGOCD_APP_NAME}b", "awebb"),
            ("$UNKNOWN.", "."),
            ("$$ARGOCD_APP_NAME", "$ARGOCD_APP_NAME"),
            ("100$", "100"),
        ] {
            assert_eq!(environment.expand(text), expected, "{text}");
        }
    }
}
