//! Semantic versions.

use std::rc::Rc;

use plumb_core::version::{Constraint, Version};

use super::table::{Row, Type, text};
use crate::budget::Fault;
use crate::value::Value;
use crate::version::suffixes;

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
    let version = Version::parse(written).ok_or_else(|| Fault::new("invalid semantic version"))?;
    let is_padded = |part: &str| {
        part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if suffixes(&version).0.split('.').any(is_padded) {
        return Err(Fault::new("version segment starts with 0"));
    }
    Ok(version)
}
