//! The rules in memory, and how one judges an object.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::super::read::find;
use super::super::{Answer, Health, HealthStatus, general};
use super::parse::{self, Problem};
use super::predicate::Test;
use crate::object::Manifest;

/// What a rule may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// This status.
    Status(HealthStatus),
    /// What the general reading says.
    General,
    /// No opinion.
    Nothing,
}

/// A status and the tests that must all hold for it.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) outcome: Outcome,
    pub(super) tests: Vec<Test>,
}

/// What `status.observedGeneration` says about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// The newest spec was seen, unless it says otherwise.
    Told,
    /// The newest spec was seen if it says so: the controller always does.
    Strict,
    /// Nothing.
    Ignored,
}

impl Generation {
    fn is_observed(self, object: &Value) -> bool {
        match self {
            Self::Told => general::is_observed(object),
            Self::Strict => {
                let number = |path| find(object, path).and_then(general::whole_number);
                let wanted = number("metadata.generation");
                wanted.is_none() || wanted == number("status.observedGeneration")
            }
            Self::Ignored => true,
        }
    }
}

/// What is known of one kind.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) first: Vec<Clause>,
    pub(super) absent: Outcome,
    pub(super) empty: Option<Outcome>,
    pub(super) generation: Generation,
    pub(super) clauses: Vec<Clause>,
    pub(super) otherwise: Outcome,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            absent: Outcome::Status(HealthStatus::Progressing),
            empty: None,
            generation: Generation::Told,
            clauses: Vec::new(),
            otherwise: Outcome::General,
        }
    }
}

/// All rules, by group and kind. `*` means any kind; a group that starts with `*.` means all its subdomains.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) by_group: HashMap<String, HashMap<String, Rule>>,
    pub(super) problems: Vec<Problem>,
}

static RULES: LazyLock<Rules> =
    LazyLock::new(|| parse::parse(include_str!(concat!(env!("OUT_DIR"), "/health.rules"))));

/// What the rule for this kind says.
pub(in crate::health) fn judge(object: &Manifest) -> Answer {
    match RULES.find(object.group(), object.kind()) {
        None => Answer::NotMine,
        Some(rule) => rule.judge(object.value()).map_or(Answer::NoOpinion, Answer::Judged),
    }
}

impl Rules {
    fn find(&self, group: &str, kind: &str) -> Option<&Rule> {
        let in_group = |group: &str| {
            let kinds = self.by_group.get(group)?;
            kinds.get(kind).or_else(|| kinds.get("*"))
        };
        in_group(group).or_else(|| {
            // `a.b.c` is looked for as `*.b.c`, then `*.c`.
            let parents = group.match_indices('.').map(|(dot, _)| &group[dot..]);
            parents.into_iter().find_map(|parent| in_group(&format!("*{parent}")))
        })
    }
}

impl Rule {
    fn judge(&self, object: &Value) -> Option<Health> {
        let waits = "it has not reported its status yet";
        let status = object.get("status").unwrap_or(&Value::Null);
        if let Some(clause) = first_that_holds(&self.first, object) {
            return clause.judge(object);
        }
        if status.is_null() {
            return self.absent.judge(object, waits);
        }
        if general::is_empty(status) {
            return self.empty.unwrap_or(self.absent).judge(object, waits);
        }
        if !self.generation.is_observed(object) {
            return Some(Health::progressing("the controller has not seen the newest spec yet"));
        }
        match first_that_holds(&self.clauses, object) {
            Some(clause) => clause.judge(object),
            None => self.otherwise.judge(object, "its status does not say whether it is healthy"),
        }
    }
}

fn first_that_holds<'rule>(clauses: &'rule [Clause], object: &Value) -> Option<&'rule Clause> {
    clauses.iter().find(|clause| clause.tests.iter().all(|test| test.holds(object)))
}

impl Clause {
    fn judge(&self, object: &Value) -> Option<Health> {
        let evidence = self.tests.iter().find_map(|test| test.evidence(object)).unwrap_or_default();
        self.outcome.judge(object, &evidence)
    }
}

impl Outcome {
    fn judge(self, object: &Value, words: &str) -> Option<Health> {
        match self {
            Self::Status(status) => Some(Health::new(status, words)),
            Self::General => Some(general::read(object).unwrap_or_else(|| Health::progressing(words))),
            Self::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn the_embedded_rules_are_well_formed() {
        assert_eq!(RULES.problems, Vec::new());
        assert!(!RULES.by_group.is_empty());
    }

    fn check(rules: &str, object: &str, expected: &Expect) {
        let rules = parse::parse(rules);
        assert_eq!(rules.problems, Vec::new());
        let object: Value = serde_json::from_str(object).expect("JSON");
        let health = rules.find("a.example.com", "Thing").and_then(|rule| rule.judge(&object));
        expected.assert_eq(&health.map_or("none".to_owned(), |health| health.to_string()));
    }

    const THING: &str = r"
group a.example.com
kind Thing  # a comment
  first Suspended when spec.paused is true
  absent Healthy
  empty Unknown
  Degraded when status.state is Bad | Very Bad and status.n > 2
  Degraded when condition Ready is False and condition Ready reason has fail
  Progressing when every status.parts.*.ok is false
  Progressing when status.n < spec.n
  Missing when status.gone exists
  Healthy when condition Ready in status.parents.* is True
  otherwise none
";

    #[test]
    fn the_first_clause_that_holds_decides() {
        check(THING, r#"{"spec":{"paused":true}}"#, &expect!["Suspended: `spec.paused` is true"]);
        check(THING, r#"{"spec":{}}"#, &expect!["Healthy: it has not reported its status yet"]);
        check(THING, r#"{"status":{}}"#, &expect!["Unknown: it has not reported its status yet"]);
        check(
            THING,
            r#"{"metadata":{"generation":2},"status":{"observedGeneration":1}}"#,
            &expect!["Progressing: the controller has not seen the newest spec yet"],
        );
        check(
            THING,
            r#"{"status":{"state":"Very Bad","n":3}}"#,
            &expect!["Degraded: `status.state` is Very Bad"],
        );
        check(THING, r#"{"status":{"state":"Very Bad","n":1}}"#, &expect!["none"]);
        check(
            THING,
            r#"{"status":{"conditions":[{"type":"Ready","status":"False","reason":"HasFailed","message":"oh"}]}}"#,
            &expect!["Degraded: oh"],
        );
        check(
            THING,
            r#"{"status":{"parts":{"a":{"ok":false},"b":{"ok":false}}}}"#,
            &expect!["Progressing: `status.parts.*.ok` is false"],
        );
        check(THING, r#"{"status":{"parts":{"a":{"ok":false},"b":{"ok":true}}}}"#, &expect!["none"]);
        check(
            THING,
            r#"{"spec":{"n":2},"status":{"x":1}}"#,
            &expect!["Progressing: `status.n` is 0, not `spec.n` 2"],
        );
        check(THING, r#"{"status":{"gone":"x"}}"#, &expect!["Missing: `status.gone` is x"]);
        check(
            THING,
            r#"{"status":{"parents":[{"conditions":[]},{"conditions":[{"type":"Ready","status":"True"}]}]}}"#,
            &expect!["Healthy: Ready"],
        );
    }

    #[test]
    fn a_line_that_cannot_be_parsed_is_reported() {
        let shown = |text: &str| {
            parse::parse(text).problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        expect!["x.rules:2: a kind needs a group first"].assert_eq(&shown("file x.rules\nkind Thing\n"));
        expect!["health rules:3: no status is called `Fine`"]
            .assert_eq(&shown("group a\nkind B\n Fine when status.x is y\n"));
        expect!["health rules:3: `status.x` needs `is`, `is not`, `has`, `has not`, `exists`, `absent` or a comparison"]
            .assert_eq(&shown("group a\nkind B\n Healthy when status.x\n"));
    }
}
