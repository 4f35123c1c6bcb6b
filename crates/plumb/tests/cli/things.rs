//! A kind of its own, for tests without a cluster.

/// `Thing`, with defaults outside and inside of a list.
pub(crate) const CRDS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
              colour: {type: string}
              note: {type: string}
              ports: {type: array, items: {type: object, properties: {name: {type: string}, protocol: {type: string, default: TCP}}}}
";
