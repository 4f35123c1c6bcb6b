//! A refusal of the API server.

/// A refusal of the API server (`Status` with `status: Failure`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP code.
    pub code: u16,
    /// `Invalid`, `Conflict`, `NotFound` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// `details.causes`.
    pub causes: Vec<FailureCause>,
}

impl ApiFailure {
    /// A value of the wrong type, which the API server reports as an internal error with the fields in its text:
    /// `failed to create typed patch object (ns/name; apps/v1, Kind=Deployment): .spec.replicas: expected …`.
    pub fn mistyped(message: &str) -> Self {
        let details = message.split_once("): ").map_or(message, |(_, details)| details);
        let causes = details
            .lines()
            .filter_map(|line| {
                let (field, problem) = line.trim().strip_prefix('.')?.split_once(": ")?;
                Some(FailureCause {
                    reason: "FieldValueTypeInvalid".to_owned(),
                    message: problem.to_owned(),
                    field: field.to_owned(),
                })
            })
            .collect();
        Self { code: 422, reason: "Invalid".to_owned(), message: message.to_owned(), causes }
    }

    /// The same refusal with every text changed.
    pub(super) fn with_texts(&self, change: impl Fn(&str) -> String) -> Self {
        let cause = |cause: &FailureCause| FailureCause { message: change(&cause.message), ..cause.clone() };
        Self {
            message: change(&self.message),
            causes: self.causes.iter().map(cause).collect(),
            ..self.clone()
        }
    }

    /// Does the API server refuse the object itself, instead of being too busy or broken to answer? A webhook may deny with
    /// any code, also 404 and 409.
    pub(super) fn is_final(&self) -> bool {
        (400..500).contains(&self.code) && self.code != 429 && !self.is_temporary()
    }

    /// Is the cause that the namespace or the kind does not exist yet, or that the object was created or changed in the
    /// meantime? A sync or another comparison gets past it.
    fn is_temporary(&self) -> bool {
        matches!(self.code, 404 | 409) && !self.message.contains("denied the request")
    }
}

/// One `details.causes` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCause {
    /// `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueDuplicate` …
    pub reason: String,
    /// The message.
    pub message: String,
    /// The field, as the API server writes it: `spec.template.spec.containers[0].image`.
    pub field: String,
}
