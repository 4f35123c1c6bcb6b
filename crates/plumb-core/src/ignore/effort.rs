//! How much the expressions of one app took, and which of them are switched off for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::IgnoreProblem;
use super::jq::Limit;
use super::limits::quoted;

/// Steps of all expressions of an app in one run, before the costliest are switched off.
const MOST_STEPS_A_RUN: u64 = 50_000_000;
/// Steps in one run after which all expressions are switched off.
const LAST_STEP_OF_A_RUN: u64 = 2 * MOST_STEPS_A_RUN;

/// What a user can do.
const ADVICE: &str =
    "It ignores nothing until it changes or the app is refreshed hard. Name the fields directly";

/// The effort of all expressions of one app. Shared by the copies of its rules. Without expressions, nothing is counted.
#[derive(Debug, Default)]
pub(super) struct Effort {
    expressions: Vec<OneEffort>,
    /// Steps since the run started.
    steps: AtomicU64,
    /// Changes with each expression that is switched off or on.
    changes: AtomicU64,
}

#[derive(Debug)]
struct OneEffort {
    text: String,
    steps: AtomicU64,
    is_off: AtomicBool,
    /// The limit of one object that it reached, as a code; 0 for that of a run.
    limit: AtomicU64,
}

impl Effort {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let expressions = texts.into_iter().map(|text| OneEffort {
            text,
            steps: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
            limit: AtomicU64::new(0),
        });
        Self { expressions: expressions.collect(), ..Self::default() }
    }

    pub(super) fn start_run(&self) {
        self.steps.store(0, Ordering::Relaxed);
        for one in &self.expressions {
            one.steps.store(0, Ordering::Relaxed);
        }
    }

    /// Switches everything on again.
    pub(super) fn try_again(&self) {
        for one in &self.expressions {
            if one.is_off.swap(false, Ordering::Relaxed) {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(super) fn is_off(&self, expression: usize) -> bool {
        self.expressions.get(expression).is_some_and(|one| one.is_off.load(Ordering::Relaxed))
    }

    /// Counts an evaluation. Switches the expression off if it reached a limit, and the costliest ones if the app did.
    pub(super) fn add(&self, expression: usize, steps: u64, limit: Option<Limit>) {
        let Some(one) = self.expressions.get(expression) else { return };
        one.steps.fetch_add(steps, Ordering::Relaxed);
        if let Some(limit) = limit {
            self.switch_off(one, limit.code());
        }
        let all = self.steps.fetch_add(steps, Ordering::Relaxed) + steps;
        if all > LAST_STEP_OF_A_RUN {
            self.expressions.iter().for_each(|one| self.switch_off(one, 0));
        } else if all > MOST_STEPS_A_RUN {
            self.switch_costliest_off();
        }
    }

    /// Until those that are left took no more than half of what a run may take.
    fn switch_costliest_off(&self) {
        let is_on = |one: &&OneEffort| !one.is_off.load(Ordering::Relaxed);
        let steps = |one: &OneEffort| one.steps.load(Ordering::Relaxed);
        let mut on: Vec<&OneEffort> = self.expressions.iter().filter(is_on).collect();
        on.sort_by_key(|one| std::cmp::Reverse(steps(one)));
        let mut left: u64 = on.iter().map(|one| steps(one)).sum();
        for one in on {
            if left <= MOST_STEPS_A_RUN / 2 {
                return;
            }
            left = left.saturating_sub(steps(one));
            self.switch_off(one, 0);
        }
    }

    fn switch_off(&self, one: &OneEffort, limit: u64) {
        if !one.is_off.swap(true, Ordering::Relaxed) {
            one.limit.store(limit, Ordering::Relaxed);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The expressions that are switched off, and why.
    pub(super) fn problems(&self) -> Vec<IgnoreProblem> {
        let off = self.expressions.iter().filter(|one| one.is_off.load(Ordering::Relaxed));
        off.map(|one| {
            let why = match Limit::of_code(one.limit.load(Ordering::Relaxed)) {
                Some(limit) => limit.to_string(),
                None => format!("the jq paths of this app take more than {MOST_STEPS_A_RUN} steps together"),
            };
            IgnoreProblem { expression: quoted(&one.text), message: format!("{why}. {ADVICE}") }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(expressions: usize) -> Effort {
        Effort::new((0..expressions).map(|n| format!(".a{n}")).collect())
    }

    fn off(effort: &Effort) -> Vec<String> {
        effort.problems().into_iter().map(|problem| problem.expression).collect()
    }

    #[test]
    fn the_costliest_are_switched_off_and_the_others_stay() {
        let effort = effort(3);
        for (expression, steps) in [(0, 10_000_000), (1, 39_000_000), (2, 500_000)] {
            effort.add(expression, steps, None);
        }
        assert_eq!(off(&effort), [""; 0]);
        effort.add(2, 600_000, None);
        assert_eq!(off(&effort), [".a1"]);
        let message = &effort.problems()[0].message;
        assert!(message.starts_with("the jq paths of this app take more than 50000000 steps together. "));
    }

    #[test]
    fn no_run_takes_more_than_twice_as_much() {
        let effort = effort(200);
        let mut steps = 0;
        for _ in 0..1_000 {
            for expression in 0..200 {
                if !effort.is_off(expression) {
                    effort.add(expression, 900_000, None);
                    steps += 900_000;
                }
            }
        }
        assert_eq!(off(&effort).len(), 200);
        assert!(steps <= LAST_STEP_OF_A_RUN + 900_000, "{steps}");
    }

    #[test]
    fn each_run_counts_from_zero() {
        let effort = effort(1);
        for _ in 0..1_000 {
            effort.start_run();
            effort.add(0, 40_000_000, None);
        }
        assert_eq!(off(&effort), [""; 0]);
    }
}
