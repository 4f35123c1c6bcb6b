//! Awkward files, each with one change. Only the lines that are meant differ.

use expect_test::expect;
use serde_json::json;

use super::operations::*;

/// The manifest of an External Secret, as people write it.
const SECRET: &str = "\
# Anthropic key
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: paperclip   # the app
spec:
  target:
    name: paperclip-anthropic
    creationPolicy: Owner
  # one entry per key
  data:
    - secretKey: ANTHROPIC_API_KEY
      remoteRef:
        key: ANTHROPIC_API_KEY
";

#[test]
fn a_default_is_pinned_behind_the_last_key() {
    check(
        SECRET,
        set("/spec/target/deletionPolicy", json!("Retain")),
        &expect![[r"
        # Anthropic key
        apiVersion: external-secrets.io/v1
        kind: ExternalSecret
        metadata:
          name: paperclip   # the app
        spec:
          target:
            name: paperclip-anthropic
            creationPolicy: Owner
            deletionPolicy: Retain
          # one entry per key
          data:
            - secretKey: ANTHROPIC_API_KEY
              remoteRef:
                key: ANTHROPIC_API_KEY
    "]],
    );
    check(
        SECRET,
        set("/spec/data/0/remoteRef/decodingStrategy", json!("None")),
        &expect![[r"
        # Anthropic key
        apiVersion: external-secrets.io/v1
        kind: ExternalSecret
        metadata:
          name: paperclip   # the app
        spec:
          target:
            name: paperclip-anthropic
            creationPolicy: Owner
          # one entry per key
          data:
            - secretKey: ANTHROPIC_API_KEY
              remoteRef:
                key: ANTHROPIC_API_KEY
                decodingStrategy: None
    "]],
    );
}

#[test]
fn maps_on_the_way_are_made_in_the_style_of_the_file() {
    check(
        "spec:\n    a:\n        b: 1\n",
        set("/spec/c/d", json!({"e": [{"f": 1}]})),
        &expect![[r"
        spec:
            a:
                b: 1
            c:
                d:
                    e:
                        - f: 1
    "]],
    );
    check(
        "spec:\n  a:\n  - b\n",
        set("/spec/c", json!(["x", "y"])),
        &expect![[r#"
        spec:
          a:
          - b
          c:
          - x
          - "y"
    "#]],
    );
}

#[test]
fn a_phantom_line_goes() {
    let text = "syncPolicy:\n  automated:\n    prune: false # manual\n    selfHeal: true\n";
    check(
        text,
        remove("/syncPolicy/automated/prune"),
        &expect![[r"
        syncPolicy:
          automated:
            selfHeal: true
    "]],
    );
    check(
        "a:\n  automated: # keep\n    # why\n    prune: false\nb: 1\n",
        remove("/a/automated/prune"),
        &expect![[r"
        a:
          automated: {} # keep
            # why
        b: 1
    "]],
    );
}

#[test]
fn the_first_key_behind_a_dash_goes() {
    let text = "list:\n- group: \"\"  # core\n  # the kind\n  kind: Secret\n- {group: \"\", kind: Service}\n";
    check(
        text,
        remove("/list/0/group"),
        &expect![[r#"
        list:
        - # the kind
          kind: Secret
        - {group: "", kind: Service}
    "#]],
    );
    check(
        text,
        remove("/list/1/group"),
        &expect![[r#"
        list:
        - group: ""  # core
          # the kind
          kind: Secret
        - {kind: Service}
    "#]],
    );
    check(
        text,
        remove("/list/0"),
        &expect![[r#"
        list:
        - {group: "", kind: Service}
    "#]],
    );
    check(
        "- - a\n  - b\n- c\n",
        remove("/0/0"),
        &expect![[r"
        - - b
        - c
    "]],
    );
    check(
        "- a: 1\n",
        remove("/0/a"),
        &expect![[r"
        - {}
    "]],
    );
}

#[test]
fn scalars_keep_quotes_and_comments() {
    check(
        "a: 'x' # c\nb: 2\n",
        set("/a", json!("it's")),
        &expect![[r"
        a: 'it''s' # c
        b: 2
    "]],
    );
    check("a: \"x\"\t# c\n", set("/a", json!("y")), &expect!["a: \"y\"\t# c\n"]);
    check(
        "a: 1000m\n",
        set("/a", json!("1")),
        &expect![[r#"
        a: "1"
    "#]],
    );
    check("a:   1   # c\n", set("/a", json!(true)), &expect!["a:   true   # c\n"]);
    check(
        "a: x\n  y\n  z # c\nb: 1\n",
        set("/a", json!("w")),
        &expect![[r"
        a: w # c
        b: 1
    "]],
    );
    check(
        "a: !!str 5\n",
        set("/a", json!("6")),
        &expect![[r#"
        a: "6"
    "#]],
    );
    check(
        "a: &x 5 # c\n",
        set("/a", json!(6)),
        &expect![[r"
        a: &x 6 # c
    "]],
    );
}

#[test]
fn values_that_are_not_there() {
    check(
        "a:\nb: 1\n",
        set("/a", json!(5)),
        &expect![[r"
        a: 5
        b: 1
    "]],
    );
    check(
        "a: # c\nb: 1\n",
        set("/a", json!({"x": 1})),
        &expect![[r"
        a: # c
          x: 1
        b: 1
    "]],
    );
    check(
        "a: ~\n",
        set("/a/b/c", json!(1)),
        &expect![[r"
        a:
          b:
            c: 1
    "]],
    );
    check(
        "-\n-   x\n",
        set("/0", json!({"a": 1, "b": 2})),
        &expect![[r"
        - a: 1
          b: 2
        -   x
    "]],
    );
    check(
        "-   x: 1\n",
        append("", json!({"a": 1, "b": 2})),
        &expect![[r"
        -   x: 1
        -   a: 1
            b: 2
    "]],
    );
    check(
        "{a: , b: }\n",
        set("/c", json!(1)),
        &expect![[r"
        {a: , b: , c: 1 }
    "]],
    );
    check("{a, b}\n", set("/a", json!(1)), &expect!["{a: 1, b}\n"]);
}

#[test]
fn a_value_changes_its_form() {
    check(
        "a: 5 # c\nb: 1\n",
        set("/a", json!([1, 2])),
        &expect![[r"
        a: # c
          - 1
          - 2
        b: 1
    "]],
    );
    check(
        "a: # c\n  # d\n  b: 1\n  c: 2 # e\n  # f\nz: 1\n",
        set("/a", json!("x")),
        &expect![[r"
        a: x # c
          # d
        z: 1
    "]],
    );
    check(
        "- 5 # c\n- 6\n",
        set("/0", json!({"a": 1, "b": [2]})),
        &expect![[r"
        - a: 1 # c
          b:
            - 2
        - 6
    "]],
    );
    check(
        "a: {}  # c\nb: []\n",
        set("/a/x", json!(1)),
        &expect![[r"
        a:  # c
          x: 1
        b: []
    "]],
    );
    check(
        "a: {}\nb: [] # c\n",
        append("/b", json!({"x": 1})),
        &expect![[r"
        a: {}
        b: # c
          - x: 1
    "]],
    );
    check(
        "a: !!map\n  b: 1\n",
        set("/a", json!(1)),
        &expect![[r"
        a: 1
    "]],
    );
}

#[test]
fn block_texts() {
    let text = "a: |  # script\n    one\n     two\n\n# about b\nb: >-\n  x\n  y\nc: |+\n  z\n\n";
    check(
        text,
        set("/a", json!("three\nfour\n")),
        &expect![[r"
        a: |  # script
          three
          four

        # about b
        b: >-
          x
          y
        c: |+
          z

    "]],
    );
    check(
        text,
        set("/b", json!(1)),
        &expect![[r"
        a: |  # script
            one
             two

        # about b
        b: 1
        c: |+
          z

    "]],
    );
    check(
        text,
        set("/d", json!(1)),
        &expect![[r"
        a: |  # script
            one
             two

        # about b
        b: >-
          x
          y
        c: |+
          z

        d: 1
    "]],
    );
    check(
        "a: |2\n   x\n  y\nb: 1\n",
        remove("/a"),
        &expect![[r"
        b: 1
    "]],
    );
    check(
        "a: |\nb: 1\n",
        set("/a", json!("x")),
        &expect![[r"
        a: |-
          x
        b: 1
    "]],
    );
    check(
        "a: 1\n",
        set("/b", json!(" x\ny")),
        &expect![[r#"
        a: 1
        b: " x\ny"
    "#]],
    );
}
