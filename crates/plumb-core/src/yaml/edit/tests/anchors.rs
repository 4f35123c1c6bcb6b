//! Anchors, aliases and merge keys: no other place may change.

use expect_test::expect;
use serde_json::json;

use super::operations::*;

const BASE: &str = "\
base: &base
  image: x
  env: {a: 1}
one: *base
two:
  <<: *base
  own: 1
three: {<<: *base, own: 2}
list:
  - *base
";

#[test]
fn what_an_alias_repeats_is_not_changed() {
    expect!["/base/image is inside the anchor on line 1, which is used again on lines 4, 6, 8, 10: a change would also change what is there"]
        .assert_eq(&refused(BASE, set("/base/image", json!("y"))).to_string());
    let removed = refused(BASE, remove("/base"));
    assert!(matches!(removed, EditRefusal::Shared { anchor_line: 1, .. }), "{removed}");
    // An alias that is removed with its anchor is no reason.
    assert_eq!(edited("a:\n  x: &x 1\n  z: *x\nb: 1\n", remove("/a")), "b: 1\n");
    assert_eq!(edited("a: &x 1\nb: 2\n", set("/a", json!(3))), "a: &x 3\nb: 2\n");
}

#[test]
fn an_alias_is_replaced_or_merged() {
    let changed = |operation, from: &str, to: &str| {
        assert_eq!(edited(BASE, operation), BASE.replacen(from, to, 1));
    };
    changed(set("/one", json!(1)), "one: *base", "one: 1");
    changed(set("/one/image", json!("y")), "one: *base\n", "one:\n  <<: *base\n  image: \"y\"\n");
    changed(set("/list/0/tag", json!(1)), "  - *base\n", "  - <<: *base\n    tag: 1\n");
    changed(append("/list", json!("z")), "  - *base\n", "  - *base\n  - z\n");
    changed(remove("/one"), "one: *base\n", "");
    let text = "a: &a {b: 1}\nc: [*a, 2]\n";
    assert_eq!(edited(text, set("/c/0/d", json!(3))), "a: &a {b: 1}\nc: [{<<: *a, d: 3}, 2]\n");
    expect![
        "/one/image comes from the alias or merge key on line 4, so there is no line of its own to remove"
    ]
    .assert_eq(&refused(BASE, remove("/one/image")).to_string());
}

#[test]
fn a_merged_field_is_set_beside_the_merge_key() {
    let changed = |operation, from: &str, to: &str| {
        assert_eq!(edited(BASE, operation), BASE.replacen(from, to, 1));
    };
    changed(set("/two/image", json!("z")), "  own: 1\n", "  own: 1\n  image: z\n");
    changed(set("/two/own", json!(7)), "  own: 1\n", "  own: 7\n");
    changed(set("/three/env/b", json!(2)), "own: 2}", "own: 2, env: {a: 1, b: 2}}");
    let refusal = refused(BASE, remove("/two/image"));
    assert!(matches!(refusal, EditRefusal::Merged { line: 6, .. }), "{refusal}");
}

/// The reader lets the later one win, as Go's does.
#[test]
fn a_merge_key_that_wins_is_in_the_way() {
    let text = "a: &a {x: 1}\nb:\n  x: 2\n  <<: *a\n";
    let refusal = refused(text, set("/b/x", json!(3)));
    assert!(matches!(refusal, EditRefusal::NotProved { .. }), "{refusal}");
    assert_eq!(edited(text, set("/b/z", json!(3))), format!("{text}  z: 3\n"));
}

/// An alias would silently mean the earlier anchor of the same name.
#[test]
fn an_anchor_of_the_same_name_is_not_laid_bare() {
    let text = "a: &x 1\nb: &x 2\nc: *x\n";
    let refusal = refused(text, remove("/b"));
    assert!(matches!(refusal, EditRefusal::Shared { anchor_line: 2, .. }), "{refusal}");
    assert_eq!(edited(text, remove("/a")), "b: &x 2\nc: *x\n");
}
