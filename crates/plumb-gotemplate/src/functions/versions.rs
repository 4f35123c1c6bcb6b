//! Semantic versions.

use std::rc::Rc;

use plumb_core::version::{Constraint, Version};

use super::table::{Row, Type, text};
use crate::budget::Fault;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("semver", &[Type::Text], None, |_, given| Ok(Value::Version(Rc::new(version(&text(given, 0))?)))),
    ("semverCompare", &[Type::Text, Type::Text], None, |_, given| {
        let written = text(given, 0);
        let constraint = Constraint::parse(&written);
        let constraint = constraint.ok_or_else(|| Fault(format!("improper constraint: {written}")))?;
        Ok(Value::Bool(constraint.matches(&version(&text(given, 1))?)))
    }),
];

pub(super) fn version(written: &str) -> Result<Version, Fault> {
    Version::parse(written).ok_or_else(|| Fault::new("invalid semantic version"))
}
