//! What is not edited, and the reasons.

use expect_test::{Expect, expect};
use serde_json::json;

use super::operations::*;

fn check(file: &[u8], operation: Operation, expected: &Expect) {
    let refusal = edit_document(file, 0, &[operation]).expect_err("refused");
    expected.assert_eq(&refusal.to_string());
}

#[test]
fn files_that_are_not_plain_yaml() {
    let change = || set("/a", json!(2));
    check(b"a: 1\nb: \xe9\n", change(), &expect!["the file is not UTF-8 (line 2); convert it first"]);
    check(b"\xff\xfea\0:\0 \x001\0", change(), &expect!["the file is not UTF-8 (line 1); convert it first"]);
    check(
        "a: 1\rb: 2\r".as_bytes(),
        change(),
        &expect!["line 1 has a line break (U+000D) that is neither LF nor CRLF; convert the file first"],
    );
    check(
        "a: 1\nb: \"x\u{2028}y\"\n".as_bytes(),
        change(),
        &expect!["line 2 has a line break (U+2028) that is neither LF nor CRLF; convert the file first"],
    );
    check(
        b"a:\n\tb: 1\n",
        change(),
        &expect![
            "the file is not plain YAML: line 2, column 1: a value cannot start with this character: quote it"
        ],
    );
    check(
        b"a: 1\n{{- if .Values.x }}\nb: 1\n{{- end }}\n",
        change(),
        &expect!["the file is not plain YAML: line 2, column 1: this should be a key, but no `:` follows"],
    );
    check(
        b"",
        change(),
        &expect!["the file has 0 documents, so there is none with the number 0 (counted from 0)"],
    );
}

#[test]
fn places_that_are_not_there() {
    let text = b"a: 1\nlist: [x]\n";
    check(text, set("/a/b", json!(1)), &expect!["/a is a number, so it has no field or item `b`"]);
    check(text, set("/list/3", json!(1)), &expect!["the list in /list has no item 3"]);
    check(text, append("/a", json!(1)), &expect!["/a is a number, so it has no field or item `-`"]);
    check(text, rename("/a", "list"), &expect!["the document already has a field `list`"]);
    check(text, remove(""), &expect!["the path names the whole document"]);
    // What is not there need not be removed.
    assert_eq!(edited("a: 1\n", remove("/b/c")), "a: 1\n");
}

#[test]
fn forms_that_are_left_alone() {
    check(
        b"[a: 1]\n",
        set("/0/b", json!(1)),
        &expect!["line 1 has a map without braces inside `[ ]`, which plumb does not edit"],
    );
    check(
        b"? a\n? b\n",
        set("/a", json!(1)),
        &expect!["line 1 has a key (`?`) without a value, which plumb does not edit"],
    );
}

/// The text above keeps its blank lines, so it would grow by those below.
#[test]
fn a_text_that_keeps_its_blank_lines_does_not_grow() {
    let refusal = refused("a: |+\n  x\nb: 1\n\nc: 2\n", remove("/b"));
    expect!["no change of the text near line 1 was found that changes /b and nothing else"]
        .assert_eq(&refusal.to_string());
}
