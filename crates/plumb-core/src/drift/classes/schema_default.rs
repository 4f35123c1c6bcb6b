//! The API server filled in a default.

use crate::compare::{Addition, Fill};
use crate::drift::explained::Explained;
use crate::drift::{DriftClass, Fix, FixKind};

/// A field with exactly the value that the API server fills in if it is left out, whatever its writer.
pub(in crate::drift) fn addition(addition: &Addition<'_>) -> Option<Explained> {
    let evidence = match addition.fill {
        Fill::Schema => "default value of the kind's schema",
        Fill::BuiltIn => "default value of the API server",
        Fill::Allocated | Fill::None => return None,
    };
    Some(Explained::new(DriftClass::SchemaDefault, addition.path.clone(), false, evidence))
}

/// A field without an owner, and no webhook or policy that could have added it.
pub(in crate::drift) fn unowned(addition: &Addition<'_>) -> Explained {
    let evidence = match addition.fill {
        Fill::Allocated => "allocated by the cluster",
        Fill::Schema | Fill::BuiltIn | Fill::None => "no field manager owns it: the API server filled it in",
    };
    Explained::new(DriftClass::SchemaDefault, addition.path.clone(), false, evidence)
}

pub(in crate::drift) fn fix() -> Fix {
    Fix::new(FixKind::None, "nothing to do; set the value in Git if you want to see later changes of it")
}
