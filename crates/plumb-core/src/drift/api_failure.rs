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
    /// A value of the wrong type, which the server reports as an internal error with the fields in its text:
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

    /// Does the server refuse the object, rather than being too busy or broken to look at it? A webhook denies
    /// with a code of its choice, 404 and 409 too.
    pub(super) fn is_final(&self) -> bool {
        (400..500).contains(&self.code) && self.code != 429 && !self.is_of_surroundings()
    }

    /// Is it that something around the object is not there yet (its namespace, its kind), or just came, or that the
    /// object changed in the meantime? A sync brings that about, or another look.
    fn is_of_surroundings(&self) -> bool {
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
    /// Where, as the server writes it: `spec.template.spec.containers[0].image`.
    pub field: String,
}
