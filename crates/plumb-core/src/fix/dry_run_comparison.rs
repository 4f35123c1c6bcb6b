//! The annotation of an Application by which Argo CD compares with dry runs.

use serde_json::Value;

use crate::app::CompareOptions;
use crate::object::FieldPath;
use crate::yaml::Operation;

/// The words of the annotation.
const WORDS: [&str; 2] = ["ServerSideDiff=true", "IncludeMutationWebhook=true"];

/// Argo CD compares the objects of the app with a dry run, which includes what admission sets. So they are `Synced`, and
/// every later change of Git shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRunComparison {
    /// Why, for the comment above the annotation.
    pub why: String,
    /// What a user has to do where the annotation cannot be written.
    pub instruction: String,
}

impl DryRunComparison {
    /// What the annotation says where it says nothing else.
    pub fn words() -> String {
        WORDS.join(",")
    }

    /// What adds the annotation to the document of an Application. Other words of it stay. `None` if the app asks for no
    /// dry runs.
    pub fn operations(&self, application: &Value) -> Option<Vec<Operation>> {
        let path = FieldPath::from_pointer("/metadata/annotations").field(CompareOptions::ANNOTATION);
        let written = path.find(application).and_then(Value::as_str).unwrap_or_default();
        if CompareOptions::parse(written).server_side_diff == Some(false) {
            return None;
        }
        let mut words: Vec<&str> =
            written.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let lacking: Vec<&str> = WORDS.into_iter().filter(|word| !words.contains(word)).collect();
        if lacking.is_empty() {
            return Some(Vec::new());
        }
        words.extend(lacking);
        Some(vec![Operation::Explain {
            path,
            value: Value::from(words.join(",")),
            comment: self.why.clone(),
        }])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_the_annotation_stay() {
        let comparison = DryRunComparison { why: "because".to_owned(), instruction: String::new() };
        let written = |text: Option<&str>| {
            let annotations = text.map(|text| json!({CompareOptions::ANNOTATION: text}));
            let operations = comparison.operations(&json!({"metadata": {"annotations": annotations}}))?;
            let value = operations.first().map(|operation| match operation {
                Operation::Explain { value, .. } => value.as_str().unwrap_or_default().to_owned(),
                other => panic!("{other}"),
            });
            Some(value.unwrap_or_else(|| "nothing".to_owned()))
        };
        let both = "ServerSideDiff=true,IncludeMutationWebhook=true";
        assert_eq!(written(None).as_deref(), Some(both));
        assert_eq!(
            written(Some("Strict=true, ServerSideDiff=true")).as_deref(),
            Some("Strict=true,ServerSideDiff=true,IncludeMutationWebhook=true")
        );
        assert_eq!(written(Some(both)).as_deref(), Some("nothing"));
        assert_eq!(written(Some("ServerSideDiff=false")), None);
    }
}
