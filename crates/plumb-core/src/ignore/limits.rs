//! How much one app may ask of the ignore rules.

use super::IgnoreProblem;
use crate::app::IgnoreRule;

/// Most rules of an Application, and of the settings.
const MOST_RULES: usize = 500;
/// Most jq paths in all rules together.
const MOST_EXPRESSIONS: usize = 200;
/// Most JSON pointers in all rules together.
const MOST_POINTERS: usize = 1_000;
/// Most managers in all rules together.
const MOST_MANAGERS: usize = 200;
/// Most rules whose group or kind is a pattern. Each pattern takes some kilobytes.
const MOST_PATTERNS: usize = 100;
/// Longest group and longest kind, in bytes.
const LONGEST_PATTERN: usize = 253;
/// Longest JSON pointer, in bytes.
const LONGEST_POINTER: usize = 2_000;
/// Most segments of a JSON pointer.
const MOST_SEGMENTS: usize = 200;
/// Longest manager. The API server accepts no longer ones.
const LONGEST_MANAGER: usize = 128;
/// Most problems that are told one by one.
const MOST_PROBLEMS: usize = 20;
/// Longest expression that a problem quotes, in characters.
const LONGEST_QUOTE: usize = 200;

/// The rules within the limits. What exceeds them ignores nothing, and is a problem.
pub(super) fn within_limits(rules: Vec<IgnoreRule>, problems: &mut Problems) -> Vec<IgnoreRule> {
    let mut rules = rules;
    problems.cut("ignoreDifferences", &mut rules, MOST_RULES);
    let mut patterns = 0;
    rules.retain(|rule| {
        let is_pattern = |text: &str| text != "*" && text.contains(['*', '?', '[', '{', '\\']);
        patterns += [&rule.group, &rule.kind].into_iter().filter(|text| is_pattern(text)).count();
        let is_fine = |text: &str| text.len() <= LONGEST_PATTERN;
        problems.check(&rule.group, "a group", is_fine(&rule.group), LONGEST_PATTERN)
            && problems.check(&rule.kind, "a kind", is_fine(&rule.kind), LONGEST_PATTERN)
            && problems.check_patterns(patterns)
    });
    let (mut expressions, mut pointers, mut managers) = (MOST_EXPRESSIONS, MOST_POINTERS, MOST_MANAGERS);
    for rule in &mut rules {
        rule.json_pointers.retain(|pointer| {
            problems.check(pointer, "a JSON pointer", pointer.len() <= LONGEST_POINTER, LONGEST_POINTER)
                && problems.check_segments(pointer)
        });
        rule.managed_fields_managers.retain(|manager| {
            problems.check(manager, "a field manager", manager.len() <= LONGEST_MANAGER, LONGEST_MANAGER)
        });
        for (name, list, left, most) in [
            ("jqPathExpressions", &mut rule.jq_path_expressions, &mut expressions, MOST_EXPRESSIONS),
            ("jsonPointers", &mut rule.json_pointers, &mut pointers, MOST_POINTERS),
            ("managedFieldsManagers", &mut rule.managed_fields_managers, &mut managers, MOST_MANAGERS),
        ] {
            if list.len() > *left {
                list.truncate(*left);
                problems.add(
                    name,
                    format!("more than {most} in all rules together: the ones after these ignore nothing. Remove some"),
                );
            }
            *left -= list.len();
        }
    }
    rules
}

/// The problems of a set of rules, no more than a condition can show.
#[derive(Debug, Default)]
pub(super) struct Problems {
    told: Vec<IgnoreProblem>,
    untold: usize,
}

impl Problems {
    pub(super) fn add(&mut self, expression: &str, message: String) {
        let problem = IgnoreProblem { expression: quoted(expression), message };
        if self.told.contains(&problem) {
            return;
        }
        if self.told.len() < MOST_PROBLEMS {
            self.told.push(problem);
        } else {
            self.untold += 1;
        }
    }

    pub(super) fn into_vec(self) -> Vec<IgnoreProblem> {
        let mut problems = self.told;
        if self.untold > 0 {
            let message = format!("{} more problems of other rules", self.untold);
            problems.push(IgnoreProblem { expression: "…".to_owned(), message });
        }
        problems
    }

    fn cut<T>(&mut self, name: &str, list: &mut Vec<T>, most: usize) {
        if list.len() > most {
            list.truncate(most);
            self.add(
                name,
                format!("more than {most} rules: the ones after these ignore nothing. Remove some"),
            );
        }
    }

    fn check(&mut self, text: &str, what: &str, is_fine: bool, most: usize) -> bool {
        if !is_fine {
            self.add(text, format!("{what} has at most {most} bytes"));
        }
        is_fine
    }

    fn check_patterns(&mut self, patterns: usize) -> bool {
        let is_fine = patterns <= MOST_PATTERNS;
        if !is_fine {
            let message = "the rules after these ignore nothing. Remove some";
            self.add("group, kind", format!("more than {MOST_PATTERNS} patterns: {message}"));
        }
        is_fine
    }

    fn check_segments(&mut self, pointer: &str) -> bool {
        let is_fine = pointer.matches('/').count() <= MOST_SEGMENTS;
        if !is_fine {
            self.add(pointer, format!("a JSON pointer has at most {MOST_SEGMENTS} segments"));
        }
        is_fine
    }
}

/// The beginning of a text.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(LONGEST_QUOTE).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted
}
