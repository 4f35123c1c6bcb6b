//! Brackets, JSON, line ends, explicit keys, several documents: each with one change.

use expect_test::expect;
use serde_json::json;

use super::operations::*;

#[test]
fn brackets_on_one_line_and_on_many() {
    check("a: { x: 1, w: 2 } # c\n", set("/a/z", json!([1])), &expect!["a: { x: 1, w: 2, z: [1] } # c\n"]);
    check("a: {x: 1, w: 2,}\n", remove("/a/w"), &expect!["a: {x: 1, }\n"]);
    check("a: {x: 1, w: 2}\n", remove("/a/w"), &expect!["a: {x: 1}\n"]);
    check("a: {x: 1}\n", remove("/a/x"), &expect!["a: {}\n"]);
    check("a: { # c\n  x: 1 # d\n}\n", remove("/a/x"), &expect!["a: { # c\n}\n"]);
    let text = "a: [\n  one, # first\n  # about two\n  two\n]\n";
    check(
        text,
        append("/a", json!("three")),
        &expect![[r"
        a: [
          one, # first
          # about two
          two,
          three
        ]
    "]],
    );
    check(
        text,
        remove("/a/0"),
        &expect![[r"
        a: [
          # about two
          two
        ]
    "]],
    );
    check(
        text,
        remove("/a/1"),
        &expect![[r"
        a: [
          one # first
          # about two
        ]
    "]],
    );
    check(
        "a: {b: {}, c: [ ]}\n",
        set("/a/b/x", json!("y, z")),
        &expect![[r#"
        a: {b: {x: "y, z"}, c: [ ]}
    "#]],
    );
}

#[test]
fn json_stays_json() {
    let text = "{\n  \"kind\": \"X\",\n  \"spec\": {\"a\":1, \"list\": []}\n}\n";
    check(
        text,
        set("/spec/b", json!({"c": ["x", null]})),
        &expect![[r#"
        {
          "kind": "X",
          "spec": {"a":1, "list": [], "b": {"c": ["x", null]}}
        }
    "#]],
    );
    check(
        text,
        set("/metadata", json!({"name": "x"})),
        &expect![[r#"
        {
          "kind": "X",
          "spec": {"a":1, "list": []},
          "metadata": {"name": "x"}
        }
    "#]],
    );
    check(
        text,
        remove("/spec"),
        &expect![[r#"
        {
          "kind": "X"
        }
    "#]],
    );
    let tabs = "{\n\t\"a\": 1,\n\t\"b\": 2\n}\n";
    check(tabs, set("/c", json!(3)), &expect!["{\n\t\"a\": 1,\n\t\"b\": 2,\n\t\"c\": 3\n}\n"]);
    check(tabs, remove("/b"), &expect!["{\n\t\"a\": 1\n}\n"]);
    check("{}", set("/a", json!("b")), &expect![[r#"{"a": "b"}"#]]);
}

#[test]
fn line_ends_stay() {
    check(
        "a:\r\n  b: 1\r\nc: 2\r\n",
        set("/a/d", json!({"e": 1})),
        &expect!["a:\r\n  b: 1\r\n  d:\r\n    e: 1\r\nc: 2\r\n"],
    );
    check("a: 1\r\nb: 2\r\n", remove("/b"), &expect!["a: 1\r\n"]);
    check("a: 1", set("/b", json!(2)), &expect!["a: 1\nb: 2"]);
    check("a: 1\nb: 2", remove("/b"), &expect!["a: 1"]);
    check("a: 1\r\nb:\r\n  - x", append("/b", json!("z")), &expect!["a: 1\r\nb:\r\n  - x\r\n  - z"]);
    check("a: 1 \nb: 2  \n\n\n", set("/c", json!(3)), &expect!["a: 1 \nb: 2  \nc: 3\n\n\n"]);
    check("\u{feff}a: 1\n", set("/a", json!(2)), &expect!["\u{feff}a: 2\n"]);
}

#[test]
fn names_change_in_their_quotes() {
    check(
        "spec:\n  replica: 3 # c\n",
        rename("/spec/replica", "replicas"),
        &expect![[r"
        spec:
          replicas: 3 # c
    "]],
    );
    check(
        "- {\"a\": 1}\n- 'b': 2\n",
        rename("/0/a", "c"),
        &expect![[r#"
        - {"c": 1}
        - 'b': 2
    "#]],
    );
    check(
        "- {\"a\": 1}\n- 'b': 2\n",
        rename("/1/b", "on"),
        &expect![[r#"
        - {"a": 1}
        - 'on': 2
    "#]],
    );
}

#[test]
fn explicit_keys() {
    check(
        "? a\n: 1\n? b\n: - x\n  - y\n",
        set("/a", json!(2)),
        &expect![[r"
        ? a
        : 2
        ? b
        : - x
          - y
    "]],
    );
    check(
        "? a\n: 1\n? b\n: - x\n  - y\n",
        remove("/a"),
        &expect![[r"
        ? b
        : - x
          - y
    "]],
    );
    check(
        "? a\n: 1\n? b\n: - x\n  - y\n",
        remove("/b/0"),
        &expect![[r"
        ? a
        : 1
        ? b
        : - y
    "]],
    );
}

#[test]
fn other_documents_stay() {
    let text = "# head\n--- # one\na: 1\n---\n\n---\nb: 1\n...\n--- \nc: 1";
    let edit =
        |document, operation| edit_document(text.as_bytes(), document, &[operation]).expect("edited").text;
    assert_eq!(edit(0, set("/a", json!(2))), text.replace("a: 1", "a: 2"));
    assert_eq!(edit(1, set("/x", json!(2))), text.replace("b: 1\n", "b: 1\nx: 2\n"));
    assert_eq!(edit(2, set("/c", json!([1]))), text.replace("c: 1", "c:\n  - 1"));
}

#[test]
fn several_operations_are_one_edit() {
    let operations = [remove("/spec/a"), set("/spec/b", json!(2)), append("/spec/list", json!("z"))];
    let edited = edit_document(b"spec:\n  a: 1\n  list: [x]\n", 0, &operations).expect("edited");
    assert_eq!(edited.text, "spec:\n  list: [x, z]\n  b: 2\n");
    assert_eq!(edited.value, json!({"spec": {"list": ["x", "z"], "b": 2}}));
}

/// A comment inside the removed value would become part of the text above.
#[test]
fn comments_of_a_removed_value_go_with_it() {
    check(
        "a: |\n  x\nb:\n  c: 1\n  # about d\n  # d: 2\nd: 1\n",
        remove("/b"),
        &expect![[r"
        a: |
          x
        d: 1
    "]],
    );
}

#[test]
fn an_item_comes_with_the_reason_above_it() {
    let append = Operation::Append {
        path: FieldPath::from_pointer("/spec/ignoreDifferences"),
        value: json!({"kind": "Secret", "jsonPointers": ["/data/x"]}),
        comment: Some("rendered anew each time".to_owned()),
    };
    check(
        "spec:\n  project: x # c\n",
        append.clone(),
        &expect![[r"
        spec:
          project: x # c
          ignoreDifferences:
            # rendered anew each time
            - kind: Secret
              jsonPointers:
                - /data/x
    "]],
    );
    check(
        "spec:\n  ignoreDifferences:\n  - kind: A\n",
        append,
        &expect![[r"
        spec:
          ignoreDifferences:
          - kind: A
          # rendered anew each time
          - kind: Secret
            jsonPointers:
            - /data/x
    "]],
    );
}

#[test]
fn a_field_comes_with_the_reason_above_it() {
    let explain = Operation::Explain {
        path: FieldPath::from_pointer("/metadata/annotations/b"),
        value: json!("x"),
        comment: "so that it shows".to_owned(),
    };
    check(
        "metadata:\n  name: a # c\nspec: {}\n",
        explain.clone(),
        &expect![[r"
            metadata:
              name: a # c
              annotations:
                # so that it shows
                b: x
            spec: {}
        "]],
    );
    check(
        "metadata:\n  annotations:\n    a: 1\n    b: y\n    c: 2\n",
        explain.clone(),
        &expect![[r"
            metadata:
              annotations:
                a: 1
                # so that it shows
                b: x
                c: 2
        "]],
    );
    let twice = "metadata:\n  annotations:\n    b: x\n";
    check(
        twice,
        explain.clone(),
        &expect![[r"
        metadata:
          annotations:
            b: x
    "]],
    );
    check(
        "metadata: {name: a}\n",
        explain,
        &expect![[r"
            metadata: {name: a, annotations: {b: x}}
        "]],
    );
}
