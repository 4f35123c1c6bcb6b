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
#[derive(Default)]
pub(super) struct Assignment {
    /// The names in each step.
    pub(super) in_step: Vec<Vec<String>>,
    /// The first step of each Application, from 0.
    step_of: BTreeMap<String, usize>,
    /// Operators that are neither `In` nor `NotIn`, with their step.
    wrong_operators: Vec<(usize, String)>,
    /// The steps of Applications that are in several.
    selected_again: BTreeMap<String, Vec<usize>>,
}

impl Assignment {
    pub(super) fn new(steps: &[RolloutStep], applications: &[Json]) -> Self {
        let mut found = Self { in_step: vec![Vec::new(); steps.len()], ..Self::default() };
        for application in applications {
            let name = name_of(application);
            for (index, step) in steps.iter().enumerate() {
                match selects(step, &application["metadata"]["labels"]) {
                    Ok(true) => found.add(name, index),
                    Ok(false) => {}
                    Err(operator) => {
                        let wrong = (index, operator.to_owned());
                        if !found.wrong_operators.contains(&wrong) {
                            found.wrong_operators.push(wrong);
                        }
                    }
                }
            }
        }
        found
    }

    fn add(&mut self, name: &str, step: usize) {
        match self.step_of.get(name) {
            Some(first) => {
                self.selected_again.entry(name.to_owned()).or_insert_with(|| vec![*first]).push(step);
            }
            None => {
                self.step_of.insert(name.to_owned(), step);
            }
        }
        self.in_step[step].push(name.to_owned());
    }

    /// What is wrong with the steps, in Argo CD's words: the most important issue. `existing` are the names of the
    /// Applications that exist.
    pub(super) fn issue<'a>(
        &self,
        steps: &[RolloutStep],
        existing: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        self.operator_issue()
            .or_else(|| self.selection_issue())
            .or_else(|| self.max_update_issue(steps, existing))
            .or_else(|| self.empty_issue())
    }

    fn operator_issue(&self) -> Option<String> {
        const SUPPORTED: &str = "Supported Operators are 'In' and 'NotIn'";
        let (numbers, operators): (Vec<String>, Vec<&str>) =
            self.wrong_operators.iter().map(|(step, operator)| (number(*step), operator.as_str())).unzip();
        let (steps, operators) = (numbers.join(", "), operators.join(", "));
        match numbers.len() {
            0 => None,
            1 => {
                Some(format!("Step {steps} has invalid matchExpression operators: {operators}. {SUPPORTED}"))
            }
            _ => Some(format!(
                "Steps {steps} have invalid matchExpression operators: {operators}. {SUPPORTED}"
            )),
        }
    }

    fn selection_issue(&self) -> Option<String> {
        let numbers = |steps: &Vec<usize>| steps.iter().copied().map(number).collect::<Vec<_>>().join("-");
        let (names, steps): (Vec<&str>, Vec<String>) =
            self.selected_again.iter().map(|(name, steps)| (name.as_str(), numbers(steps))).unzip();
        match names.as_slice() {
            [] => None,
            [name] => {
                Some(format!("Application '{name}' is selected by multiple steps: ({})", steps.join(", ")))
            }
            _ => Some(format!(
                "Applications '{}' are selected by multiple steps: [({})]",
                names.join("', '"),
                steps.join("), (")
            )),
        }
    }

    /// As in Argo CD: only of steps with an Application that exists. One that is in no step counts for the first.
    fn max_update_issue<'a>(
        &self,
        steps: &[RolloutStep],
        existing: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let mut wrong: Vec<(usize, &str)> = Vec::new();
        for index in existing.into_iter().map(|name| self.step(name).unwrap_or_default()) {
            if let Some(IntOrString::String(text)) =
                steps.get(index).and_then(|step| step.max_update.as_ref())
                && percent(text).is_none()
                && !wrong.iter().any(|(known, _)| *known == index)
            {
                wrong.push((index, text));
            }
        }
        let numbers = wrong.iter().map(|(step, _)| number(*step)).collect::<Vec<_>>().join(", ");
        let values = wrong.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(", ");
        match wrong.len() {
            0 => None,
            1 => Some(format!("Step {numbers} has an invalid maxUpdate value: {values}")),
            _ => Some(format!("Steps {numbers} have invalid maxUpdate values: [{values}]")),
        }
    }

    fn empty_issue(&self) -> Option<String> {
        let empty = self.in_step.iter().enumerate().filter(|(_, names)| names.is_empty());
        let empty: Vec<String> = empty.map(|(index, _)| number(index)).collect();
        (!empty.is_empty())
            .then(|| format!("Steps [{}] have no applications matching their criteria", empty.join(" ")))
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

/// A step as users count.
fn number(step: usize) -> String {
    (step + 1).to_string()
}

fn percent(text: &str) -> Option<i64> {
    text.strip_suffix('%')?.parse().ok()
}

/// How many Applications of a step may be updated at the same time; `None` for all.
pub(super) fn max_update(step: &RolloutStep, n_applications: usize) -> Option<usize> {
    match step.max_update.as_ref()? {
        IntOrString::Int(number) => Some(usize::try_from(*number).unwrap_or_default()),
        IntOrString::String(text) if text == "0%" => Some(0),
        IntOrString::String(text) => {
            let percent = percent(text).and_then(|percent| usize::try_from(percent).ok()).unwrap_or_default();
            Some((n_applications.saturating_mul(percent) / 100).max(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_crd::wire::Wire as _;
    use serde_json::json;

    use super::*;

    fn issue(steps: &Json, applications: &[(&str, &str)], existing: &[&str]) -> String {
        let steps: Vec<RolloutStep> =
            steps.as_array().unwrap().iter().map(|step| RolloutStep::read(step).unwrap()).collect();
        let applications: Vec<Json> = applications
            .iter()
            .map(|(name, env)| json!({"metadata": {"name": name, "labels": {"env": env}}}))
            .collect();
        let assignment = Assignment::new(&steps, &applications);
        assignment.issue(&steps, existing.iter().copied()).unwrap_or_default()
    }

    fn step(operator: &str, value: &str, max_update: &Json) -> Json {
        let mut step = json!({"matchExpressions": [{"key": "env", "operator": operator, "values": [value]}]});
        if !max_update.is_null() {
            step["maxUpdate"] = max_update.clone();
        }
        step
    }

    #[test]
    fn issues_have_the_words_of_argo_cd() {
        let (applications, existing) = ([("a", "dev"), ("b", "prod")], ["a", "b"]);
        let steps = |steps: &[(&str, &str, Json)]| -> Json {
            steps.iter().map(|(operator, value, max)| step(operator, value, max)).collect()
        };
        let none = || json!(null);
        let cases = [
            (steps(&[("In", "dev", none()), ("In", "prod", json!("50%"))]), ""),
            (
                steps(&[("Exists", "dev", none()), ("In", "dev", none())]),
                "Step 1 has invalid matchExpression operators: Exists. Supported Operators are 'In' and 'NotIn'",
            ),
            (
                steps(&[("Gt", "dev", none()), ("Lt", "dev", none())]),
                "Steps 1, 2 have invalid matchExpression operators: Gt, Lt. Supported Operators are 'In' and 'NotIn'",
            ),
            (
                steps(&[("In", "dev", none()), ("NotIn", "x", none()), ("In", "prod", none())]),
                "Applications 'a', 'b' are selected by multiple steps: [(1-2), (2-3)]",
            ),
            (
                steps(&[("In", "dev", none()), ("In", "dev", none())]),
                "Application 'a' is selected by multiple steps: (1-2)",
            ),
            (
                steps(&[("In", "dev", json!("many")), ("In", "prod", none())]),
                "Step 1 has an invalid maxUpdate value: many",
            ),
            (
                steps(&[("In", "dev", json!("x")), ("In", "prod", json!("y"))]),
                "Steps 1, 2 have invalid maxUpdate values: [x, y]",
            ),
            (
                steps(&[("In", "dev", none()), ("In", "q", none()), ("In", "r", json!("x"))]),
                "Steps [2 3] have no applications matching their criteria",
            ),
        ];
        for (steps, expected) in cases {
            assert_eq!(issue(&steps, &applications, &existing), expected, "{steps}");
        }
        let steps = json!([step("In", "dev", &json!("many")), step("In", "prod", &none())]);
        assert_eq!(issue(&steps, &applications, &[]), "", "none exists yet");
    }
}
