//! A: the server filled in a default.

use super::super::case::{Case, Explained};
use super::super::{DriftClass, Fix, FixKind};
use crate::compare::{Addition, Fill};

/// A field that nobody wrote, with the value that the server fills in.
pub(in crate::drift) fn addition(addition: &Addition<'_>) -> Option<Explained> {
    let evidence = match addition.fill {
        Fill::Schema => "the default of the kind's schema",
        Fill::BuiltIn => "a default or an allocation of the API server",
        Fill::None => return None,
    };
    Some(Explained::new(DriftClass::SchemaDefault, addition.path.clone(), false, evidence))
}

/// A field that nobody wrote, and no admission configuration that could have.
pub(in crate::drift) fn unowned(_case: &Case<'_>, addition: &Addition<'_>) -> Explained {
    Explained::new(
        DriftClass::SchemaDefault,
        addition.path.clone(),
        false,
        "no field manager owns it: the API server filled it in",
    )
}

pub(in crate::drift) fn fix() -> Fix {
    super::fix(
        FixKind::None,
        "nothing needs to be done; pin the value in Git if a later change of it should show",
    )
}
