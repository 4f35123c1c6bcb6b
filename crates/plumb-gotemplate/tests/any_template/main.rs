//! Templates that are not trusted: random ones, and those that try to exceed their budget.

#![expect(clippy::expect_used, reason = "a test says what it expects")]

mod check;

use jiff::Timestamp;
use plumb_gotemplate::{Limits, Options, Scope, Template, Value};
use serde_json::Value as Json;

/// Pieces of templates that mean something.
fn pieces() -> Vec<String> {
    let lines = include_str!("../../testdata/recorded.jsonl").lines().skip(1);
    let text = |line: &str| {
        let case: Json = serde_json::from_str(line).expect("a case is one line of JSON");
        case["template"].as_str().expect("a case has a template").to_owned()
    };
    let words =
        |text: String| text.split_inclusive([' ', '}', '|', ')']).map(str::to_owned).collect::<Vec<_>>();
    lines.map(text).flat_map(words).collect()
}

#[test]
fn random_templates_end_within_their_budget() {
    let pieces = pieces();
    // A generator that gives the same numbers on every run.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("small")
    };
    let mut n_rendered = 0;
    for _ in 0..6000 {
        let mut text: String = (0..=next(8)).map(|_| pieces[next(pieces.len())].as_str()).collect();
        if next(2) == 0 {
            text = format!("{{{{{text}}}}}");
        }
        n_rendered += usize::from(check::any_template(&text).is_ok());
    }
    assert!(n_rendered > 300, "{n_rendered} templates were rendered");
}

/// Renders with the usual limits, and returns the error.
fn refusal(template: &str) -> String {
    let scope = Scope::new(Limits::default(), Timestamp::UNIX_EPOCH, [7; 32]);
    let parameters = Value::from_json(&scope, &serde_json::json!({})).expect("nothing fits");
    let parsed = match Template::parse("base", template, scope.limits()) {
        Ok(parsed) => parsed,
        Err(error) => return error.to_string(),
    };
    let result = parsed.render(&scope, Options::default(), &parameters);
    result.map_or_else(|error| error.to_string(), |text| format!("{} bytes", text.len()))
}

/// Each template would take hours or all memory without a budget; each ends with an error that names the limit.
#[test]
fn hostile_templates_are_refused() {
    let long = "{{$a := repeat 1000000 \"a\"}}{{$b := repeat 1000000 \"a\"}}";
    let doubled = "{{$l := list 1}}{{range until 40}}{{$l = list $l $l}}{{end}}";
    let cases = [
        // Loops.
        ("{{range until 100000}}{{range until 100000}}x{{end}}{{end}}".to_owned(), "limit"),
        ("{{range 9223372036854775807}}{{end}}".to_owned(), "limit"),
        ("{{untilStep 0 9223372036854775807 1}}".to_owned(), "limit"),
        ("{{seq 1 9223372036854775807}}".to_owned(), "limit"),
        // Texts that grow.
        ("{{repeat 9223372036854775807 \"aa\"}}".to_owned(), "limit"),
        ("{{$x := \"a\"}}{{range until 60}}{{$x = cat $x $x}}{{end}}".to_owned(), "limit"),
        ("{{printf \"%1000000d%1000000d\" 1 2 | repeat 1000}}".to_owned(), "limit"),
        ("{{range until 1000}}{{printf \"%999999d\" 1}}{{end}}".to_owned(), "limit"),
        ("{{indent 1000000000 \"a\\nb\"}}".to_owned(), "limit"),
        ("{{replace \"\" (repeat 100000 \"a\") (repeat 100000 \"b\")}}".to_owned(), "limit"),
        ("{{regexReplaceAll \"\" (repeat 10000 \"a\") (repeat 100000 \"b\")}}".to_owned(), "limit"),
        ("{{wrapWith 1 (repeat 100000 \"a\") (repeat 100000 \"b\")}}".to_owned(), "limit"),
        ("{{randAlphaNum 2147483647}}".to_owned(), "limit"),
        // Values that refer to themselves, or to one value many times.
        ("{{$d := dict}}{{$_ := set $d \"d\" $d}}{{$d}}".to_owned(), "nested deeper"),
        ("{{$d := dict}}{{$_ := set $d \"d\" $d}}{{$d | toJson}}".to_owned(), "nested deeper"),
        ("{{$d := dict}}{{$_ := set $d \"d\" $d}}{{deepCopy $d}}".to_owned(), "nested deeper"),
        ("{{$d := dict}}{{$_ := set $d \"d\" $d}}{{$e := dict}}{{$_ := set $e \"d\" $e}}{{deepEqual $d $e}}".to_owned(), "nested deeper"),
        (format!("{doubled}{{{{$l}}}}"), "limit"),
        (format!("{doubled}{{{{toJson $l}}}}"), "limit"),
        (format!("{doubled}{{{{toYaml $l}}}}"), "limit"),
        (format!("{doubled}{{{{deepCopy $l}}}}"), "limit"),
        (format!("{doubled}{{{{toPrettyJson $l}}}}"), "limit"),
        (format!("{long}{{{{$d := dict $a 1}}}}{{{{$l := list $d $d $d $d $d $d $d $d}}}}{{{{list $l $l $l $l $l $l $l $l | toJson}}}}"), "limit"),
        // Functions that look at much and create little.
        (format!("{long}{{{{range until 100000}}}}{{{{if eq $a $b}}}}{{{{end}}}}{{{{end}}}}"), "limit"),
        (format!("{long}{{{{range until 100000}}}}{{{{if contains $b $a}}}}{{{{end}}}}{{{{end}}}}"), "limit"),
        (format!("{long}{{{{range until 100000}}}}{{{{if hasPrefix $b $a}}}}{{{{end}}}}{{{{end}}}}"), "limit"),
        (format!("{long}{{{{range until 100000}}}}{{{{$_ := sha256sum $a}}}}{{{{end}}}}"), "limit"),
        (format!("{long}{{{{range until 100000}}}}{{{{$_ := trim (repeat 1000000 \" \")}}}}{{{{end}}}}"), "limit"),
        (format!("{long}{{{{$l := list $a $b}}}}{{{{range until 100000}}}}{{{{$_ := has \"x\" (list $l $l)}}}}{{{{if deepEqual $l (list $b $a)}}}}{{{{end}}}}{{{{end}}}}"), "limit"),
        ("{{splitList \"\" (repeat 10000000 \"a\")}}".to_owned(), "limit"),
        ("{{range until 1000}}{{$_ := splitList (repeat 100000 \"a\") (repeat 200000 \"a\")}}{{end}}".to_owned(), "limit"),
        ("{{$l := splitList \",\" (repeat 200000 \"a,\")}}{{range until 1000}}{{$_ := uniq $l}}{{end}}".to_owned(), "limit"),
        ("{{printf (repeat 2000000 \"%[\")}}".to_owned(), "limit"),
        // Regular expressions.
        ("{{range until 100000}}{{$_ := regexMatch (printf \"(a%d?){100}\" .) \"a\"}}{{end}}".to_owned(), "limit"),
        ("{{regexMatch \"(a*)*b\" (repeat 1000000 \"a\")}}".to_owned(), "longer than"),
        ("{{range until 100000}}{{$_ := regexMatch \"([01]*1[01]{50}|x)*\" (repeat 200000 \"01\" | trunc 200000)}}{{end}}".to_owned(), "limit"),
        ("{{regexFindAll \".*[^A-Z]|[A-Z]\" (repeat 200000 \"A\") -1}}".to_owned(), "limit"),
        ("{{mustRegexMatch \"((a{1000}){1000}){1000}\" \"a\"}}".to_owned(), "too large"),
        // Variables.
        ("{{$a:=1}}".repeat(80_000), "variables"),
        (format!("{}{{{{range until 100000}}}}{{{{if $}}}}{{{{end}}}}{{{{end}}}}", "{{$a:=1}}".repeat(900)), "limit"),
        // Texts that are read.
        ("{{fromJson (repeat 10000000 \"[\")}}".to_owned(), "longer than"),
        ("{{fromYaml (repeat 10000000 \"[\")}}".to_owned(), "longer than"),
        ("{{mustFromJson (repeat 100000 \"[\")}}".to_owned(), "unexpected end"),
        ("{{range until 100000}}{{$_ := fromYaml (repeat 1000 \"a: 1\\n\")}}{{end}}".to_owned(), "limit"),
        // Nesting.
        ("{{define \"t\"}}{{template \"t\" .}}{{end}}{{template \"t\" .}}".to_owned(), "exceeded maximum template depth"),
        ("{{define \"t\"}}{{if true}}{{if true}}{{if true}}{{if true}}{{template \"t\" .}}{{end}}{{end}}{{end}}{{end}}{{end}}{{template \"t\" .}}".to_owned(), "nested deeper"),
        (format!("{{{{{}1{}}}}}", "(".repeat(100_000), ")".repeat(100_000)), "nested deeper"),
        ("{{if true}}".repeat(100_000), "nested deeper"),
    ];
    for (template, expected) in cases {
        let found = refusal(&template);
        let shown = template.get(..120).unwrap_or(&template);
        assert!(found.contains(expected), "{shown} gives {}", found.get(..300).unwrap_or(&found));
    }
}

/// Arithmetic of extreme numbers must not overflow.
#[test]
fn extreme_numbers_do_no_harm() {
    let keys = format!("{{{{toYaml (dict \"1{}\" 1 \"10\" 2)}}}}", u128::MAX);
    assert_eq!(check::any_template(&keys).map(|text| text.lines().count()), Ok(2));
    let chunks = check::any_template("{{chunk -9223372036854775808 (list 1)}}");
    let error = chunks.expect_err("no chunk has this size");
    assert!(error.contains("out of range"), "{error}");
}

#[test]
fn a_template_reads_nothing_but_its_parameters() {
    for name in
        ["env", "expandenv", "getHostByName", "include", "tpl", "lookup", "required", "readFile", "glob"]
    {
        let found = refusal(&format!("{{{{{name} \"HOME\"}}}}"));
        assert_eq!(found, format!("template: base:1: function \"{name}\" not defined"));
    }
    // A name of a time zone is no path.
    let path = refusal("{{dateInZone \"MST\" (int 0) \"../../../../etc/localtime\"}}");
    assert_eq!(path, "3 bytes");
}
