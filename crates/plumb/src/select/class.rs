//! A drift class on the command line.

use plumb_core::drift::DriftClass;

/// A class by its name, in any case.
pub(crate) fn class(name: &str) -> Result<DriftClass, String> {
    let found = DriftClass::ALL.into_iter().find(|class| class.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<&str> = DriftClass::ALL.iter().map(|class| class.name()).collect();
        format!("the classes are {}", names.join(", "))
    })
}
