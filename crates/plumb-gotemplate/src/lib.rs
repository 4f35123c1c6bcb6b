//! Go's `text/template` with the functions of Sprig, for templates that are not trusted.
//!
//! A template sees its parameters and nothing else: no environment, no files, no network. The time and the source of
//! random bytes are given by the caller, so that the same inputs give the same output. Everything has a budget: the
//! steps of the evaluation, the bytes that it creates, the nesting of templates and of values. A template that exceeds
//! one ends with an error that names the limit.
//!
//! Values have the types that they have in Go, because users see them: `eq .replicas 3` is an error if `replicas` comes
//! from JSON, where every number is a `float64`. Error messages have Go's wording, because users search for it.
//!
//! Modules are listed from the bottom up; each uses only modules above it (`cargo xtask tidy` checks it).

pub mod budget;
mod options;
mod version;
pub mod value;
mod number;
mod time;
pub mod format;
mod url;
pub mod convert;
mod node;
mod lexer;
mod literal;
mod parser;
mod yaml;
mod functions;
mod evaluate;
mod template;

pub use budget::{Fault, Limits};
pub use functions::{normalize, regex_of_go, slug, slugify};
pub use number::general as float_text;
pub use options::{MissingKey, Options};
pub use template::{Template, TemplateError};
pub use value::{Scope, Value};
