//! jq paths, in the part of the language that always ends.
//!
//! Any user who may write an Application can set an expression, and it runs inside the controller. So it is
//! checked before it is kept: no recursion, no definitions, no loops, nothing that reads the world. What passes is
//! evaluated under a budget of steps, bytes and nesting, counted without a clock: the same expression on the same
//! object always ends in the same way.

mod arithmetic;
mod budget;
mod evaluate;
mod expression;
mod functions;
mod number;
mod path;
mod regex;
mod syntax;
mod text;
mod value;
mod walk;

#[cfg(test)]
mod tests;

use serde_json::Value;

use self::budget::{Budget, Stop};
use self::evaluate::{Evaluation, Item, Scope};
use self::expression::Expression;
use self::path::Path;
use self::value::Val;
use crate::object::FieldPath;

pub(super) use self::budget::Limit;

/// Most places that all expressions of an app may name in one object.
const MOST_PLACES: usize = 10_000;

/// A checked jq path.
#[derive(Debug)]
pub(super) struct JqPath {
    expression: Expression,
    is_costly: bool,
}

/// What an expression says about one object.
#[derive(Debug)]
pub(super) struct Places {
    /// The places that it names, or the limit that it reached.
    pub(super) places: Result<Vec<FieldPath>, Limit>,
    /// The steps that it took.
    pub(super) steps: u64,
}

impl JqPath {
    /// Checks an expression.
    pub(super) fn compile(expression: &str) -> Result<Self, String> {
        let checked = syntax::check(expression)?;
        Ok(Self { expression: checked.expression, is_costly: checked.is_costly })
    }

    /// True if the cost can outgrow the object's size. Such an expression does not belong on a thread that others need.
    pub(super) fn is_costly(&self) -> bool {
        self.is_costly
    }

    /// The places that the expression names in this value. After an error it names no more: `.a.b` on an object
    /// without `a` is not an error. `taken` places of the object were named by other expressions.
    pub(super) fn places(&self, value: &Value, taken: usize) -> Places {
        let budget = Budget::new();
        let evaluation = Evaluation { budget: &budget, patterns: regex::Patterns::default() };
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
