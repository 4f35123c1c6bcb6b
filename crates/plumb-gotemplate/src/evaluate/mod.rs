//! Evaluates a parsed template. The rules are those of Go's `text/template`; `reflect` is what the comments mean by
//! "interface": a value that Go holds in an `interface {}` behaves differently from the value itself.

mod call;
mod operand;
mod state;
mod walk;

pub(crate) use state::run;
