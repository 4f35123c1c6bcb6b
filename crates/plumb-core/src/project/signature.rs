//! Which commits a project trusts: `sourceIntegrity`, and the older `signatureKeys`.

use super::{ProjectProblem, normalize_repo_url};
use crate::glob::Glob;
use crate::source::RepoAddress;

/// What the commits of some repositories must prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureRule {
    /// Globs on addresses; `*` crosses slashes. Those with `!` in front are exceptions from the others.
    pub repositories: Vec<String>,
    /// How much of the history is looked at.
    pub mode: SignatureMode,
    /// Ids or fingerprints of the keys that are trusted.
    pub keys: Vec<String>,
}

/// How much of the history must be signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignatureMode {
    /// No signature.
    None,
    /// The commit (or the annotated tag) that is synced.
    Head,
    /// That one and all before it, back to a commit that seals the earlier history.
    #[default]
    Strict,
    /// Several rules match, so that none is known to be meant: no commit is trusted.
    Conflict,
}

/// The rules of a project, compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct Signatures {
    rules: Vec<Compiled>,
    /// What counts if several rules match.
    conflict: SignatureRule,
}

#[derive(Clone, Debug)]
struct Compiled {
    repositories: Vec<Glob>,
    exceptions: Vec<Glob>,
    rule: SignatureRule,
}

/// Ways to write the address of one repository.
struct Spellings {
    normal: String,
    without_user: String,
    place: String,
}

impl Spellings {
    fn of(repo_url: &str) -> Self {
        if let Ok(address) = RepoAddress::parse(repo_url) {
            Self { normal: address.normal(), without_user: address.without_user(), place: address.place() }
        } else {
            let normal = normalize_repo_url(repo_url);
            Self { without_user: normal.clone(), place: normal.clone(), normal }
        }
    }
}

impl Compiled {
    /// One spelling of the address is enough to fall under a rule. To be an exception, the address without its user must be
    /// written like the place that it means.
    fn covers(&self, address: &Spellings) -> bool {
        let Spellings { normal, without_user, place } = address;
        let is_named = |glob: &Glob| [normal, without_user, place].into_iter().any(|url| glob.matches(url));
        let is_exception = |glob: &Glob| glob.matches(without_user) && glob.matches(place);
        self.repositories.iter().any(is_named) && !self.exceptions.iter().any(is_exception)
    }
}

impl Signatures {
    /// A pattern that cannot be read matches everything: what it asks for is asked of all repositories. An exception that
    /// cannot be read is none.
    pub(super) fn compile(rules: &[SignatureRule], problems: &mut Vec<ProjectProblem>) -> Self {
        let mut compiled = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            let (mut repositories, mut exceptions) = (Vec::new(), Vec::new());
            let mut problem = |reason: String| {
                let field = format!("sourceIntegrity.git.policies[{index}].repos");
                problems.push(ProjectProblem { field, reason });
            };
            for pattern in &rule.repositories {
                let exception = pattern.strip_prefix('!');
                match (Glob::plain(&normalize_repo_url(exception.unwrap_or(pattern))), exception) {
                    (Ok(glob), None) => repositories.push(glob),
                    (Ok(glob), Some(_)) => exceptions.push(glob),
                    (Err(error), None) => {
                        problem(format!("{error}; it counts for all repositories"));
                        repositories.push(Glob::everything());
                    }
                    (Err(error), Some(_)) => problem(format!("{error}; the exception is ignored")),
                }
            }
            compiled.push(Compiled { repositories, exceptions, rule: rule.clone() });
        }
        let conflict = SignatureRule { mode: SignatureMode::Conflict, ..SignatureRule::default() };
        Self { rules: compiled, conflict }
    }

    /// True if the commits of some repository must prove something.
    pub(super) fn ask_for_anything(&self) -> bool {
        self.rules.iter().any(|compiled| compiled.rule.mode != SignatureMode::None)
    }

    /// The rule for a repository; `None` if its commits need not prove anything. Another spelling of the address does not
    /// get round a rule. As in Argo CD, several rules for one repository are a mistake in the project, and no commit is
    /// trusted until it is mended.
    pub(super) fn of(&self, repo_url: &str) -> Option<&SignatureRule> {
        let address = Spellings::of(repo_url);
        let mut matching = self.rules.iter().filter(|compiled| compiled.covers(&address));
        let first = matching.next()?;
        if matching.next().is_some() {
            return Some(&self.conflict);
        }
        (first.rule.mode != SignatureMode::None).then_some(&first.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::SignatureMode::{Conflict, Head, None as Nothing, Strict};
    use super::*;

    fn rule(repositories: &[&str], mode: SignatureMode) -> SignatureRule {
        let repositories = repositories.iter().map(|pattern| (*pattern).to_owned()).collect();
        SignatureRule { repositories, mode, keys: vec!["K".to_owned()] }
    }

    #[test]
    fn exactly_one_rule_counts() {
        let mut problems = Vec::new();
        let rules = [
            rule(&["https://example.com/open/*"], Nothing),
            rule(&["https://example.com/secure"], Strict),
            rule(
                &[
                    "https://example.com/*",
                    "!https://example.com/open/*",
                    "!https://example.com/secure.git",
                    "!https://example.com/free*",
                ],
                Head,
            ),
            rule(&["!https://example.com/*"], Strict),
            rule(&["https://example.com/twice/*"], Nothing),
        ];
        let signatures = Signatures::compile(&rules, &mut problems);
        for (url, expected) in [
            ("https://example.com/open/a", None),
            ("https://example.com/Secure.git", Some(Strict)),
            ("https://u:p@example.com/secure", Some(Strict)),
            ("https://example.com/a/b", Some(Head)),
            ("git@example.com:a", None),
            ("https://elsewhere.example.com/a", None),
            // An exception is for the address as it is written, not for other spellings of it.
            ("https://example.com/free", None),
            ("https://example.com/free.git", None),
            ("https://u@example.com/free", None),
            ("https://example.com/fr%65e", Some(Head)),
            ("https://example.com//free", Some(Head)),
            // Several rules: nothing is trusted, also if one of them asks for nothing.
            ("https://example.com/twice/a", Some(Conflict)),
        ] {
            assert_eq!(signatures.of(url).map(|rule| rule.mode), expected, "{url}");
        }
        assert_eq!(problems, []);
    }

    #[test]
    fn another_spelling_does_not_get_round_a_rule() {
        let signatures =
            Signatures::compile(&[rule(&["https://example.com/secure"], Strict)], &mut Vec::new());
        for spelling in [
            "https://example.com/Secure.git",
            "https://u:p@example.com/secure",
            "https://example.com:443//s%65cure.git/",
        ] {
            assert_eq!(signatures.of(spelling).map(|rule| rule.mode), Some(Strict), "{spelling}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_asks_for_more() {
        let mut problems = Vec::new();
        let signatures = Signatures::compile(&[rule(&["["], Head)], &mut problems);
        assert_eq!(signatures.of("https://any.example.com").map(|rule| rule.mode), Some(Head));
        let signatures = Signatures::compile(&[rule(&["*", "!["], Head)], &mut problems);
        assert_eq!(signatures.of("https://any.example.com").map(|rule| rule.mode), Some(Head));
        let signatures = Signatures::compile(&[rule(&["!*"], Strict), rule(&[], Strict)], &mut Vec::new());
        assert_eq!(signatures.of("https://any.example.com"), None, "exceptions alone name no repository");
        assert_eq!(problems.len(), 2);
    }
}
