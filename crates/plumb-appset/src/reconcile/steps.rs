//! `strategy.rollingSync.steps`: which Application belongs to which step.

use std::collections::BTreeMap;

use plumb_crd::ApplicationSet;
use plumb_crd::application_set::{ApplicationMatchExpression, RolloutStep};
use plumb_crd::wire::IntOrString;
use serde_json::Value as Json;

use super::validate::name_of;

/// The steps of a set, if it rolls out in steps. The list is empty if a user forgot them.
pub(super) fn steps_of(set: &ApplicationSet) -> Option<&[RolloutStep]> {
    let strategy = set.spec.strategy.as_ref().filter(|strategy| strategy.strategy_type == "RollingSync")?;
    strategy.rolling_sync.as_ref().map(|rolling| rolling.steps.as_slice())
}

/// True if the Applications of a deleted set go one after the other, the last step first.
pub(super) fn deletes_in_reverse(set: &ApplicationSet) -> bool {
    let reverse = |order: &str| order.eq_ignore_ascii_case("Reverse");
    steps_of(set).is_some_and(|steps| !steps.is_empty())
        && set.spec.strategy.as_ref().is_some_and(|strategy| reverse(&strategy.deletion_order))
}

/// Which Applications are in which step.
pub(super) struct Assignment {
    /// The names in each step.
    pub(super) in_step: Vec<Vec<String>>,
    /// The first step of each Application, from 0.
    step_of: BTreeMap<String, usize>,
    /// What is wrong with the steps, the most important first.
    pub(super) issue: Option<String>,
}

impl Assignment {
    pub(super) fn new(steps: &[RolloutStep], applications: &[Json]) -> Self {
        let mut in_step: Vec<Vec<String>> = vec![Vec::new(); steps.len()];
        let mut step_of = BTreeMap::new();
        let (mut operators, mut twice) = (None, None);
        for application in applications {
            let name = name_of(application);
            for (index, step) in steps.iter().enumerate() {
                let labels = &application["metadata"]["labels"];
                match selects(step, labels) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(operator) => {
                        operators = operators.or_else(|| {
                            Some(format!(
                                "Step {} has an invalid matchExpression operator: {operator}",
                                index + 1
                            ))
                        });
                        continue;
                    }
                }
                if let Some(first) = step_of.get(name) {
                    let (first, second) = (first + 1, index + 1);
                    twice = twice.or_else(|| {
                        Some(format!(
                            "Application {name} is selected by more than one step: {first} and {second}"
                        ))
                    });
                } else {
                    step_of.insert(name.to_owned(), index);
                }
                in_step[index].push(name.to_owned());
            }
        }
        let issue = operators.or(twice).or_else(|| wrong_max_update(steps)).or_else(|| empty_steps(&in_step));
        Self { in_step, step_of, issue }
    }

    /// The step of an Application, from 0.
    pub(super) fn step(&self, name: &str) -> Option<usize> {
        self.step_of.get(name).copied()
    }

    /// The step as the status has it: from 1, or -1 for none.
    pub(super) fn written_step(&self, name: &str) -> String {
        self.step(name).map_or_else(|| "-1".to_owned(), |step| (step + 1).to_string())
    }
}

/// The error is an operator that nobody knows.
fn selects<'a>(step: &'a RolloutStep, labels: &Json) -> Result<bool, &'a str> {
    for expression in &step.match_expressions {
        let ApplicationMatchExpression { key, operator, values } = expression;
        let selected = match (labels[key.as_str()].as_str(), operator.as_str()) {
            (None, operator) => operator != "In",
            (Some(value), "In") => values.iter().any(|known| known == value),
            (Some(value), "NotIn") => !values.iter().any(|known| known == value),
            (Some(_), operator) => return Err(operator),
        };
        if !selected {
            return Ok(false);
        }
    }
    Ok(true)
}

fn wrong_max_update(steps: &[RolloutStep]) -> Option<String> {
    steps.iter().enumerate().find_map(|(index, step)| match &step.max_update {
        Some(IntOrString::String(text)) if percent(text).is_none() => {
            Some(format!("Step {} has an invalid maxUpdate value: {text}", index + 1))
        }
        _ => None,
    })
}

fn empty_steps(in_step: &[Vec<String>]) -> Option<String> {
    let empty = in_step.iter().enumerate().filter(|(_, names)| names.is_empty());
    let empty: Vec<String> = empty.map(|(index, _)| (index + 1).to_string()).collect();
    (!empty.is_empty())
        .then(|| format!("Steps [{}] have no applications matching their criteria", empty.join(" ")))
}

fn percent(text: &str) -> Option<usize> {
    text.strip_suffix('%')?.parse().ok()
}

/// How many Applications of a step may be updated at the same time; `None` for all.
pub(super) fn max_update(step: &RolloutStep, n_applications: usize) -> Option<usize> {
    match step.max_update.as_ref()? {
        IntOrString::Int(number) => Some(usize::try_from(*number).unwrap_or_default()),
        IntOrString::String(text) if text == "0%" => Some(0),
        IntOrString::String(text) => {
            let share = percent(text).map_or(0, |percent| n_applications.saturating_mul(percent) / 100);
            Some(share.max(1))
        }
    }
}
