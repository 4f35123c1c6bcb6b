//! Regular expressions of bounded size. A search takes time that is linear in the text.

use std::cell::RefCell;
use std::rc::Rc;

use regex_bites::bytes::{Regex, RegexBuilder};

use super::budget::{Budget, Flow, Stop};

/// Sizes of compiled expressions in bytes, and the steps that each byte of text is charged then.
const SIZES: [(usize, usize); 3] = [(4 << 10, 16), (16 << 10, 64), (64 << 10, 512)];
/// Deepest nesting of groups.
const MOST_GROUPS: u32 = 20;
/// Steps that compiling is charged for each step of the weight.
const COMPILING: usize = 100;
/// Most expressions that one evaluation keeps.
const MOST_KEPT: usize = 4;

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    weight: usize,
    skips_empty: bool,
}

/// The regular expressions of one evaluation, each compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<Vec<(String, String, Rc<Pattern>)>>);

/// Compiles a pattern with jq's flags. `None` if it is wrong or too large.
pub(super) fn compile(pattern: &str, flags: &str) -> Option<Pattern> {
    if !flags.chars().all(|flag| "gnimslxp".contains(flag)) {
        return None;
    }
    let has = |flag: char| flags.contains(flag);
    SIZES.iter().find_map(|&(size, weight)| {
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(has('i'))
            .multi_line(has('m') || has('p'))
            .dot_matches_new_line(has('s') || has('p'))
            .swap_greed(has('l'))
            .ignore_whitespace(has('x'))
            .size_limit(size)
            .nest_limit(MOST_GROUPS)
            .build()
            .ok()?;
        Some(Pattern { regex, weight, skips_empty: has('n') })
    })
}

impl Patterns {
    /// The compiled pattern, charged if it has to be compiled.
    pub(super) fn get(&self, pattern: &str, flags: &str, budget: &Budget) -> Result<Rc<Pattern>, Stop> {
        let known = self.0.borrow().iter().find_map(|(text, options, compiled)| {
            (text == pattern && options == flags).then(|| Rc::clone(compiled))
        });
        if let Some(known) = known {
            return Ok(known);
        }
        budget.look_at(pattern.len())?;
        // Even one that turns out to be too large was built up to the limit.
        let compiled = compile(pattern, flags);
        let weight = compiled.as_ref().map_or(SIZES[SIZES.len() - 1].1, |compiled| compiled.weight);
        budget.steps(COMPILING * weight)?;
        let compiled = Rc::new(compiled.ok_or(Stop::Error)?);
        let mut kept = self.0.borrow_mut();
        if kept.len() < MOST_KEPT {
            kept.push((pattern.to_owned(), flags.to_owned(), Rc::clone(&compiled)));
        }
        Ok(compiled)
    }
}

impl Pattern {
    fn charge(&self, bytes: usize, budget: &Budget) -> Flow {
        budget.steps((1 + bytes).saturating_mul(self.weight))
    }

    pub(super) fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, Stop> {
        self.charge(text.len(), budget)?;
        if self.skips_empty {
            let mut matches = self.regex.find_iter(text.as_bytes());
            return Ok(matches.any(|found| !found.is_empty()));
        }
        Ok(self.regex.is_match(text.as_bytes()))
    }

    /// The texts between the matches.
    pub(super) fn split<'t>(&self, text: &'t str, budget: &Budget) -> Result<Vec<&'t str>, Stop> {
        self.charge(text.len(), budget)?;
        let mut parts = Vec::new();
        let mut from = 0;
        for found in self.regex.find_iter(text.as_bytes()) {
            // Each match starts a new search in the rest.
            self.charge(text.len() - found.end(), budget)?;
            if !(self.skips_empty && found.is_empty()) {
                parts.push(text.get(from..found.start()).ok_or(Stop::Error)?);
                from = found.end();
            }
        }
        parts.push(text.get(from..).ok_or(Stop::Error)?);
        Ok(parts)
    }
}
