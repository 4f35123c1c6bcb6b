use proptest::prelude::*;
use serde_json::{Value, json};

use crate::yaml::*;

fn read(text: &str) -> Vec<(Value, usize)> {
    let documents = parse_documents(text, &Limits::default()).unwrap();
    documents.into_iter().map(|document| (document.value, document.line)).collect()
}

fn refused(text: &str) -> String {
    parse_documents(text, &Limits::default()).unwrap_err().to_string()
}

#[test]
fn documents_know_their_lines() {
    let text = "# head\na: 1\n---\n\n# Source: x\nb: 2\n---\n# nothing\n---\nc: 3";
    let documents = read(text);
    let known: Vec<_> = documents.into_iter().filter(|(value, _)| !value.is_null()).collect();
    assert_eq!(known, [(json!({"a": 1}), 2), (json!({"b": 2}), 6), (json!({"c": 3}), 10)]);
}

#[test]
fn a_key_that_is_there_twice_is_refused_with_both_lines() {
    assert_eq!(refused("x:\n  a: 1\n  b: 2\n  a: 3\n"), "line 4, column 3: key `a` is already set on line 2");
    assert_eq!(refused("1: a\n\"1\": b\n"), "line 2, column 1: key `1` is already set on line 1");
    // A merged key is not there twice.
    assert_eq!(read("a: &a {x: 1}\nb: {<<: *a, x: 2}")[0].0, json!({"a": {"x": 1}, "b": {"x": 2}}));
}

#[test]
fn the_first_document_is_read_alone_and_its_last_key_counts() {
    let first = |text: &str| parse_first(text, &Limits::default()).unwrap().map(|document| document.value);
    assert_eq!(
        first("# head\n---\na: 1\nx: {b: 1, b: 2}\na: 3\n---\nnot: [closed"),
        Some(json!({"a": 3, "x": {"b": 2}}))
    );
    assert_eq!(first("y: 1\ntrue: 2\n"), Some(json!({"true": 2})));
    assert_eq!(first("# nothing\n"), None);
    assert_eq!(first("null\n---\na: 1"), Some(Value::Null));
    assert!(parse_first("a: [", &Limits::default()).is_err());
    let small = Limits { max_bytes: 3, ..Limits::default() };
    assert!(parse_first("a: 1", &small).is_err());
}

#[test]
fn errors_name_the_place_and_no_value() {
    assert_eq!(refused("a: 1\nb: \u{7}"), "line 2, column 4: control character U+0007 is not allowed");
    assert_eq!(refused("a: !!int secret"), "line 1, column 4: the value is not an integer, as its tag says");
    let error = parse_documents_bytes(b"a: 1\nb: \xff", &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 4: the text is not UTF-8");
}

#[test]
fn limits_hold() {
    let what =
        |text: &str, limits: &Limits| parse_documents(text, limits).map_err(|error| error.what).unwrap_err();
    let small = Limits { max_bytes: 4, ..Limits::default() };
    assert_eq!(what("a: 12", &small), YamlProblem::TooLarge { limit: 4 });

    let flat = Limits { max_depth: 3, ..Limits::default() };
    assert_eq!(what("[[[[]]]]", &flat), YamlProblem::TooDeep { limit: 3 });
    assert_eq!(what("a:\n b:\n  c:\n   d: 1", &flat), YamlProblem::TooDeep { limit: 3 });
    // Aliases nest as well.
    assert_eq!(what("a: &a [[1]]\nb: [*a]", &flat), YamlProblem::TooDeep { limit: 3 });
    let deep = "[".repeat(100_000);
    assert_eq!(what(&deep, &Limits::default()), YamlProblem::TooDeep { limit: 200 });
    let deep = "- ".repeat(100_000);
    assert_eq!(what(&deep, &Limits::default()), YamlProblem::TooDeep { limit: 200 });

    let stingy = Limits { max_alias_bytes: 10, ..Limits::default() };
    assert_eq!(what("a: &a 0123456789\nb: [*a, *a]", &stingy), YamlProblem::TooManyAliases);
}

/// A text of about one kilobyte whose aliases would expand to billions of nodes.
fn bomb() -> String {
    let level = |level: usize| {
        let below = if level == 0 { "x,".to_owned() } else { format!("*a{},", level - 1) };
        format!("a{level}: &a{level} [{}]\n", below.repeat(10))
    };
    (0..16).map(level).collect()
}

#[test]
fn bombs_are_refused() {
    assert!(bomb().len() < 1100);
    let error = parse_documents(&bomb(), &Limits::default()).unwrap_err();
    assert_eq!(error.what, YamlProblem::TooManyAliases);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_documents_bytes(&bytes, &Limits::default());
    }

    /// Texts made of what YAML gives a meaning to.
    #[test]
    fn nothing_panics_on_yaml_like_texts(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "b: ", "- ", "? ", ": ", "[", "]", "{", "}", ", ", "\n", "\n  ", "\n    ", "\r\n", "\t",
                "'", "\"", "\\", "|", ">", "|2-", "#", " #", "&a ", "*a", "!!int ", "!x ", "<<: ", "---\n",
                "...\n", "%YAML 1.1\n", "0x", "1", "_", ".", "e", "~", "\u{feff}", "\u{85}", "\u{2028}", "é",
            ]),
            0..40,
        )
    ) {
        let _ = parse_documents(&parts.concat(), &Limits::default());
    }

    /// JSON is YAML: what `serde_json` prints is read back as it was.
    #[test]
    fn json_is_read_back(map in prop::collection::btree_map("[ -~é]{0,6}", any_json(), 0..5)) {
        let value = json!(map);
        prop_assert_eq!(&read(&value.to_string())[0].0, &value);
        prop_assert_eq!(&read(&serde_json::to_string_pretty(&value).unwrap())[0].0, &value);
    }

    #[test]
    fn integers_and_texts_are_what_they_were(int in any::<i64>(), word in "[a-zA-Z]{3,12}") {
        prop_assert_eq!(&read(&int.to_string())[0].0, &json!(int));
        prop_assume!(!["yes", "off", "true", "false", "null"].contains(&word.to_lowercase().as_str()));
        prop_assert_eq!(&read(&word)[0].0, &json!(word));
    }
}

/// JSON whose texts contain no character that YAML forbids or treats as a line break of its own.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é\n\t\"'\\\\]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[ -~]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn small_values_that_take_much_memory_are_refused() {
    let limits = Limits { max_memory: 8 << 20, ..Limits::default() };
    let heavy = |text: &str| parse_documents(text, &limits).map_err(|error| error.what);
    for (name, part) in
        [("numbers", "1,"), ("maps", "{a},"), ("empty maps", "{},"), ("lists", "[],"), ("pairs", "a: 1,")]
    {
        let text = format!("a: [{}]", part.repeat(60_000));
        let problem = heavy(&text).unwrap_err();
        assert_eq!(problem, YamlProblem::TooHeavy { limit: 8 << 20 }, "{name}");
        let short = format!("a: [{}]", part.repeat(1000));
        assert!(heavy(&short).unwrap()[0].memory > 1000 * 64, "{name}");
    }
    // The sum over documents counts, but not the trees of those that are already read.
    let document = format!("---\na: [{}]\n", "1,".repeat(10_000));
    assert!(heavy(&document.repeat(8)).is_ok());
    assert!(heavy(&document.repeat(16)).is_err());
}
