//! Fields of custom resources that hold a type of Kubernetes, as the settings say
//! (`resource.customizations.knownTypeFields`). Custom resources are stored as they are written; the type says
//! which spellings mean the same.

use super::node::{Field, Scalar, Schema, Shape};
use super::set::SchemaSet;
use crate::object::GroupKind;

/// A field of one kind that holds a type of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownType {
    /// Whose field.
    pub kind: GroupKind,
    /// Its way from the root, through lists.
    pub field: Vec<String>,
    /// Such as `core/Quantity`, `meta/v1/Duration` or `core/v1/PodSpec`.
    pub type_name: String,
}

impl KnownType {
    /// From what the settings say: a dotted path and a type.
    pub fn new(kind: GroupKind, field: &str, type_name: &str) -> Self {
        let field = field.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Self { kind, field, type_name: type_name.to_owned() }
    }

    /// What Argo CD knows without configuration.
    pub fn built_in() -> Self {
        let kind = GroupKind { group: "argoproj.io".to_owned(), kind: "Rollout".to_owned() };
        Self::new(kind, "spec.template.spec", "core/v1/PodSpec")
    }

    /// The scalar at this place, given by the fields of its path; list indexes are left out.
    pub(super) fn scalar(&self, schemas: &SchemaSet, way: &[&str]) -> Option<Scalar> {
        let inner = way.get(self.field.len()..)?;
        if !self.field.iter().zip(way).all(|(one, other)| one == other) {
            return None;
        }
        match (self.type_name.as_str(), inner) {
            // A map of quantities has no name of its own in the server's schemas.
            ("core/Quantity" | "core/resource/Quantity", []) | ("core/v1/ResourceList", [_]) => {
                Some(Scalar::QuantityText)
            }
            ("meta/v1/Duration", []) => Some(Scalar::Duration),
            (name, inner) => {
                let name = name.strip_prefix("core/v1/")?;
                scalar_of(schemas.definition(&format!("io.k8s.api.core.v1.{name}"))?, inner)
            }
        }
    }
}

fn scalar_of(schema: Schema<'_>, way: &[&str]) -> Option<Scalar> {
    match (schema.shape(), way.split_first()) {
        (Shape::List { items, .. }, _) => scalar_of(items, way),
        (Shape::Scalar(Scalar::Quantity), None) => Some(Scalar::QuantityText),
        (Shape::Scalar(scalar), None) => Some(scalar),
        (Shape::Map { .. }, Some((name, rest))) => match schema.field(name) {
            Field::Known(schema) => scalar_of(schema, rest),
            Field::Open | Field::Unknown => None,
        },
        (Shape::Any | Shape::Map { .. } | Shape::Scalar(_), _) => None,
    }
}
