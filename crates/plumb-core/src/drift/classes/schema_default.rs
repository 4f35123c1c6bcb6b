//! A: the server filled in a default.

use crate::compare::{Addition, Fill};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// A field with the very value that the server fills in when it is left out, whoever wrote it.
pub(in crate::drift) fn addition(addition: &Addition<'_>) -> Option<Explained> {
    let evidence = match addition.fill {
        Fill::Schema => "the default of the kind's schema",
        Fill::BuiltIn => "a default of the API server",
        Fill::Allocated | Fill::None => return None,
    };
    Some(Explained::new(DriftClass::SchemaDefault, addition.path.clone(), false, evidence))
}

/// A field that nobody wrote, and no admission configuration that could have.
pub(in crate::drift) fn unowned(addition: &Addition<'_>) -> Explained {
    let evidence = match addition.fill {
        Fill::Allocated => "an allocation of the API server",
        Fill::Schema | Fill::BuiltIn | Fill::None => "no field manager owns it: the API server filled it in",
    };
    Explained::new(DriftClass::SchemaDefault, addition.path.clone(), false, evidence)
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(
        FixKind::None,
        "nothing needs to be done; pin the value in Git if a later change of it should show",
    )
}
