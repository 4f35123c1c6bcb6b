//! The rules of drift: their names, their classes, and that the documentation lists them in their order.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plumb_core::drift::{DriftClass, rule_groups};

const DOCUMENTATION: &str = include_str!("../../../docs/drift-classes.md");

#[test]
fn names_are_unique_and_in_kebab_case() {
    let mut names = BTreeSet::new();
    for rule in rule_groups().iter().flat_map(|group| &group.rules) {
        let is_kebab = rule
            .name
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()));
        assert!(is_kebab, "{}", rule.name);
        assert!(names.insert(rule.name), "{} twice", rule.name);
    }
}

#[test]
fn every_class_is_given_by_some_rule() {
    let groups = rule_groups();
    let given: BTreeSet<DriftClass> =
        groups.iter().flat_map(|group| &group.rules).flat_map(|rule| rule.classes).copied().collect();
    assert_eq!(given, BTreeSet::from(DriftClass::ALL));
}

/// `### title`, then `name: classes` of each rule.
#[test]
fn the_documentation_lists_the_rules_in_their_order() {
    let mut expected = String::new();
    for group in rule_groups() {
        let _ = writeln!(expected, "### {}", group.title);
        for rule in group.rules {
            let classes: Vec<String> = rule.classes.iter().map(|class| format!("`{class}`")).collect();
            let _ = writeln!(expected, "`{}`: {}", rule.name, classes.join(", "));
        }
    }
    let section = DOCUMENTATION.split_once("\n## The rules\n").map_or("", |(_, rest)| rest);
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut documented = String::new();
    for line in section.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            [title] if title.starts_with("### ") => {
                let _ = writeln!(documented, "{title}");
            }
            ["", name, classes, when, ""] if name.starts_with('`') => {
                assert!(!when.is_empty(), "{name} is not explained");
                let _ = writeln!(documented, "{name}: {classes}");
            }
            _ => {}
        }
    }
    assert_eq!(documented, expected);
}

#[test]
fn the_documentation_has_every_class_once() {
    let (table, _) = DOCUMENTATION.split_once("\n## ").unwrap_or((DOCUMENTATION, ""));
    for class in DriftClass::ALL {
        assert_eq!(table.matches(&format!("\n| `{class}` |")).count(), 1, "{class}");
    }
}
