//! The whole `ApplicationSet` object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::generator::ApplicationSetGenerator;
use crate::application::{ApplicationSpec, HealthStatus, ResourceStatus};
use crate::metadata::Metadata;
use crate::wire::{IntOrString, Wire, WireError, read_map, wire};

wire! {
    /// A template for Applications and the generators of its parameters.
    pub struct ApplicationSet {
        /// Name and annotations.
        "metadata" metadata: Metadata = required,
        /// The desired state.
        "spec" spec: ApplicationSetSpec = required,
        /// The observed state.
        "status" status: ApplicationSetStatus,
    }

    /// `spec` of an `ApplicationSet`.
    pub struct ApplicationSetSpec {
        /// Use Go templates.
        "goTemplate" go_template: bool,
        /// The generators of the parameters.
        "generators" generators: Vec<ApplicationSetGenerator> = required,
        /// The template of the Applications.
        "template" template: ApplicationSetTemplate = required,
        /// How Applications are created, updated and deleted.
        "syncPolicy" sync_policy: Option<ApplicationSetSyncPolicy>,
        /// The order in which Applications are updated and deleted.
        "strategy" strategy: Option<ApplicationSetStrategy>,
        /// Metadata of Applications that is preserved.
        "preservedFields" preserved_fields: Option<PreservedFields>,
        /// Options of the Go template engine, such as `missingkey=error`.
        "goTemplateOptions" go_template_options: Vec<String>,
        /// Ignored: nested selectors are always applied.
        "applyNestedSelectors" apply_nested_selectors: bool,
        /// Fields of Applications that are preserved.
        "ignoreApplicationDifferences" ignore_application_differences: Vec<IgnoreApplicationDifferences>,
        /// A template whose result is merged over each Application.
        "templatePatch" template_patch: Option<String>,
    }

    /// The template of an Application.
    pub struct ApplicationSetTemplate {
        /// Its metadata.
        "metadata" metadata: TemplateMetadata = required,
        /// Its spec.
        "spec" spec: ApplicationSpec = required,
    }

    /// Metadata of an Application that is made.
    pub struct TemplateMetadata {
        /// Name.
        "name" name: String,
        /// Namespace.
        "namespace" namespace: String,
        /// Labels.
        "labels" labels: BTreeMap<String, String>,
        /// Annotations.
        "annotations" annotations: BTreeMap<String, String>,
        /// Finalizers.
        "finalizers" finalizers: Vec<String>,
    }

    /// `spec.syncPolicy` of an `ApplicationSet`.
    pub struct ApplicationSetSyncPolicy {
        /// Keep the objects in the cluster when an Application is deleted.
        "preserveResourcesOnDeletion" preserve_resources_on_deletion: bool,
        /// Which changes to Applications are allowed.
        "applicationsSync" applications_sync: Option<String>
            where {"enum": ["create-only", "create-update", "create-delete", "sync"]},
    }

    /// `spec.strategy` of an `ApplicationSet`.
    pub struct ApplicationSetStrategy {
        /// `AllAtOnce` or `RollingSync`.
        "type" strategy_type: String,
        /// The steps.
        "rollingSync" rolling_sync: Option<RolloutStrategy>,
        /// `AllAtOnce` or `Reverse`.
        "deletionOrder" deletion_order: String,
    }

    /// `spec.strategy.rollingSync`.
    pub struct RolloutStrategy {
        /// In order.
        "steps" steps: Vec<RolloutStep>,
    }

    /// One step.
    pub struct RolloutStep {
        /// The Applications of this step.
        "matchExpressions" match_expressions: Vec<ApplicationMatchExpression>,
        /// How many at a time: a number, or a share such as `20%`.
        "maxUpdate" max_update: Option<IntOrString>,
    }

    /// A condition on an Application's label.
    pub struct ApplicationMatchExpression {
        /// The label.
        "key" key: String,
        /// `In` or `NotIn`.
        "operator" operator: String,
        /// Its values.
        "values" values: Vec<String>,
    }

    /// Metadata that is preserved.
    pub struct PreservedFields {
        /// Annotation keys.
        "annotations" annotations: Vec<String>,
        /// Label keys.
        "labels" labels: Vec<String>,
    }

    /// Fields that are preserved.
    pub struct IgnoreApplicationDifferences {
        /// Of this Application; empty: of all.
        "name" name: String,
        /// RFC 6901 pointers.
        "jsonPointers" json_pointers: Vec<String>,
        /// jq paths.
        "jqPathExpressions" jq_path_expressions: Vec<String>,
    }

    /// `status` of an `ApplicationSet`.
    pub struct ApplicationSetStatus {
        /// Errors and other conditions.
        "conditions" conditions: Vec<ApplicationSetCondition>,
        /// State of each Application in a rollout.
        "applicationStatus" application_status: Vec<ApplicationSetApplicationStatus>,
        /// The Applications; at most 5000.
        "resources" resources: Vec<ResourceStatus>,
        /// How many Applications there are.
        "resourcesCount" resources_count: i64,
        /// Health over all Applications.
        "health" health: HealthStatus,
    }

    /// An error or other condition.
    pub struct ApplicationSetCondition {
        /// Such as `ErrorOccurred`.
        "type" condition_type: String = required,
        /// A message for users.
        "message" message: String = required,
        /// Since when.
        "lastTransitionTime" last_transition_time: Option<Timestamp>,
        /// `True`, `False` or `Unknown`.
        "status" status: String = required,
        /// A short reason.
        "reason" reason: String = required,
    }

    /// State of one Application in a rollout.
    pub struct ApplicationSetApplicationStatus {
        /// Name of the Application.
        "application" application: String = required,
        /// Since when.
        "lastTransitionTime" last_transition_time: Option<Timestamp>,
        /// A message for users.
        "message" message: String = required,
        /// `Waiting`, `Pending`, `Progressing` or `Healthy`.
        "status" status: String = required,
        /// The step of the Application.
        "step" step: String = required,
        /// The revisions to update to.
        "targetRevisions" target_revisions: Vec<String> = required,
    }
}

impl ApplicationSet {
    /// `apiVersion` of an `ApplicationSet`.
    pub const API_VERSION: &'static str = "argoproj.io/v1alpha1";
    /// `kind` of an `ApplicationSet`.
    pub const KIND: &'static str = "ApplicationSet";

    /// Reads an `ApplicationSet`.
    pub fn from_json(object: &Value) -> Result<Self, WireError> {
        read_map(object)?;
        Self::read(object)
    }

    /// The whole object.
    pub fn to_json(&self) -> Value {
        let mut object = self.write();
        object["apiVersion"] = Value::from(Self::API_VERSION);
        object["kind"] = Value::from(Self::KIND);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_reading_and_writing() {
        let object: Value = serde_json::from_str(include_str!("complete.json")).expect("JSON");
        let set = ApplicationSet::from_json(&object).expect("readable");
        // `health` and `resources` have the same types as in Applications.
        assert_eq!(set.status.resources_count, 1);
        let written = set.to_json();
        for part in ["metadata", "spec", "status"] {
            let show = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
            assert!(written[part] == object[part], "{}\n{}", show(&written[part]), show(&object[part]));
        }
    }

    #[test]
    fn a_broken_generator_is_named() {
        let mut object: Value = serde_json::from_str(include_str!("complete.json")).expect("JSON");
        object["spec"]["generators"][2]["git"]["directories"][1]["exclude"] = Value::from("yes");
        let error = ApplicationSet::from_json(&object).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "spec.generators[2].git.directories[1].exclude: expected true or false, found a string"
        );
    }
}
