//! The functions of templates: Go's own, those of Sprig, and Argo CD's.
//!
//! Absent on purpose, as in Argo CD: `env`, `expandenv` and `getHostByName`, which read what a template must not see.
//! Functions that create keys and certificates are refused with a message (`refused.rs`).

mod builtin;
mod case;
mod compare;
mod dates;
mod encoding;
mod json_error;
mod lists;
mod maps;
mod methods;
mod names;
mod numbers;
mod paths;
mod pattern;
mod random;
mod reflection;
mod refused;
mod regexes;
mod table;
mod texts;
mod urls;
mod versions;
mod wrap;

pub(crate) use methods::method;
pub use names::{normalize, slug, slugify};
pub(crate) use table::{Function, Type, find};
