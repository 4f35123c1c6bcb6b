//! Which commits a project trusts: `sourceIntegrity`, and the older `signatureKeys`.

use super::{ProjectProblem, normalize_repo_url};
use crate::glob::Glob;
use crate::source::RepoAddress;

/// What the commits of some repositories must prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureRule {
    /// Globs on addresses; `*` crosses slashes.
    pub repositories: Vec<String>,
    /// How much of the history is looked at.
    pub mode: SignatureMode,
    /// Ids or fingerprints of the keys that are trusted.
    pub keys: Vec<String>,
}

/// How much of the history must be signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureMode {
    /// No signature; later rules are not evaluated.
    None,
    /// The commit (or the annotated tag) that is synced.
    Head,
    /// That one and all before it, back to a commit that seals the earlier history.
    #[default]
    Strict,
}

/// The rules of a project, compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Signatures(Vec<Compiled>);

#[derive(Clone, Debug)]
struct Compiled {
    repositories: Vec<Glob>,
    rule: SignatureRule,
}

impl Signatures {
    /// A pattern that cannot be read matches everything: what it asks for is asked of all repositories.
    pub(super) fn compile(rules: &[SignatureRule], problems: &mut Vec<ProjectProblem>) -> Self {
        let compiled = rules.iter().enumerate().map(|(index, rule)| {
            let repositories = rule.repositories.iter().map(|pattern| {
                Glob::plain(&normalize_repo_url(pattern)).unwrap_or_else(|error| {
                    problems.push(ProjectProblem {
                        field: format!("sourceIntegrity.git.policies[{index}].repos"),
                        reason: format!("{error}; it counts for all repositories"),
                    });
                    Glob::everything()
                })
            });
            Compiled { repositories: repositories.collect(), rule: rule.clone() }
        });
        Self(compiled.collect())
    }

    /// True if the commits of some repository must prove something.
    pub(super) fn ask_for_anything(&self) -> bool {
        self.0.iter().any(|compiled| compiled.rule.mode != SignatureMode::None)
    }

    /// The first rule that matches is the only one. Another spelling of the address does not get round it.
    pub(super) fn of(&self, repo_url: &str) -> Option<&SignatureRule> {
        let mut spellings = vec![normalize_repo_url(repo_url)];
        if let Ok(address) = RepoAddress::parse(repo_url) {
            spellings.extend([address.without_user(), address.place()]);
        }
        let is_matching = |glob: &Glob| spellings.iter().any(|url| glob.matches(url));
        let matching = self.0.iter().find(|compiled| compiled.repositories.iter().any(is_matching));
        matching.map(|compiled| &compiled.rule).filter(|rule| rule.mode != SignatureMode::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rule = |repository: &str, mode| SignatureRule {
            repositories: vec![repository.to_owned()],
            mode,
            keys: vec!["K".to_owned()],
        };
        let mut problems = Vec::new();
        let rules = [
            rule("https://example.com/open/*", SignatureMode::None),
            rule("https://example.com/secure", SignatureMode::Strict),
            rule("https://example.com/*", SignatureMode::Head),
        ];
        let signatures = Signatures::compile(&rules, &mut problems);
        let mode = |url: &str| signatures.of(url).map(|rule| rule.mode);
        assert_eq!(mode("https://example.com/open/a"), None);
        assert_eq!(mode("https://example.com/Secure.git"), Some(SignatureMode::Strict));
        for spelling in ["https://u:p@example.com/secure", "https://example.com:443//s%65cure.git/"] {
            assert_eq!(mode(spelling), Some(SignatureMode::Strict), "{spelling}");
        }
        assert_eq!(mode("https://example.com/a/b"), Some(SignatureMode::Head));
        assert_eq!(mode("https://elsewhere.example.com/a"), None);
        assert_eq!(problems, []);
        let signatures = Signatures::compile(&[rule("[", SignatureMode::Head)], &mut problems);
        assert_eq!(signatures.of("https://any.example.com").map(|rule| rule.mode), Some(SignatureMode::Head));
        assert_eq!(problems.len(), 1);
    }
}
