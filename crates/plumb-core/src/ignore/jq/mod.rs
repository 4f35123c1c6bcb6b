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
mod jq_path;
mod number;
mod path;
mod regex;
mod syntax;
mod text;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub(super) use budget::Limit;
pub(super) use jq_path::JqPath;
