//! The options of a template.

use crate::budget::Fault;

/// What a key that is not in a map means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// It prints as `<no value>`.
    #[default]
    Invalid,
    /// It is the zero value of the map's type.
    Zero,
    /// It is an error.
    Error,
}

/// The options of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What a missing key means.
    pub missing_key: MissingKey,
}

impl Options {
    /// Reads options such as `missingkey=error`. The last one wins; an unknown one is an error.
    pub fn read<T: AsRef<str>>(options: &[T]) -> Result<Self, Fault> {
        let mut missing_key = MissingKey::Invalid;
        for option in options {
            let option = option.as_ref();
            missing_key = match option {
                "" => return Err(Fault::new("empty option string")),
                "missingkey=default" | "missingkey=invalid" => MissingKey::Invalid,
                "missingkey=zero" => MissingKey::Zero,
                "missingkey=error" => MissingKey::Error,
                _ => return Err(Fault(format!("unrecognized option: {option}"))),
            };
        }
        Ok(Self { missing_key })
    }
}
