//! A jq path: checked, and evaluated on an object.

use serde_json::Value;

use super::budget::{Budget, Limit, Stop};
use super::evaluate::{Evaluation, Item, Scope};
use super::expression::Expression;
use super::path::Path;
use super::regex::Patterns;
use super::syntax;
use super::value::Val;
use crate::object::FieldPath;

/// Most places that all expressions of an app may name in one object.
pub(super) const MOST_PLACES: usize = 10_000;

/// A checked jq path.
#[derive(Debug)]
pub(in crate::ignore) struct JqPath {
    expression: Expression,
    is_costly: bool,
}

/// What an expression says about one object.
#[derive(Debug)]
pub(in crate::ignore) struct Places {
    /// The places that it names, or the limit that it reached.
    pub(in crate::ignore) places: Result<Vec<FieldPath>, Limit>,
    /// The steps that it took.
    pub(in crate::ignore) steps: u64,
}

impl JqPath {
    /// Checks an expression.
    pub(in crate::ignore) fn compile(expression: &str) -> Result<Self, String> {
        let checked = syntax::check(expression)?;
        Ok(Self { expression: checked.expression, is_costly: checked.is_costly })
    }

    /// True if the cost can outgrow the object's size. Such an expression does not belong on a thread that others need.
    pub(in crate::ignore) fn is_costly(&self) -> bool {
        self.is_costly
    }

    /// The places that the expression names in this value. After an error it names no more: `.a.b` on an object
    /// without `a` is not an error. `taken` places of the object were named by other expressions.
    pub(in crate::ignore) fn places(&self, value: &Value, taken: usize) -> Places {
        let budget = Budget::new();
        let evaluation = Evaluation { budget: &budget, patterns: Patterns::default() };
        let input = Item { value: Val::Json(value), path: Some(Path::default()) };
        let mut places = Vec::new();
        let flow = evaluation.run(&self.expression, &Scope::Empty, &input, &mut |item| {
            if taken + places.len() >= MOST_PLACES {
                return Err(Stop::Limit(Limit::Places));
            }
            places.extend(item.path.and_then(|path| path.place()));
            Ok(())
        });
        let places = match flow {
            Ok(()) | Err(Stop::Error | Stop::Done) => Ok(places),
            Err(Stop::Limit(limit)) => Err(limit),
        };
        Places { places, steps: budget.used() }
    }
}
