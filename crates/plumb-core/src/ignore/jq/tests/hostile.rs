//! Programs that are written to take all memory, all time or all of the stack.

use serde_json::{Value, json};

use super::super::{JqPath, Limit};

/// A `ConfigMap` of 300 keys.
fn config_map() -> Value {
    let data: serde_json::Map<String, Value> =
        (0..300).map(|n| (format!("key{n}"), json!("x".repeat(100)))).collect();
    json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

/// Lists inside each other, as deep as a reader of JSON lets them be.
fn deep() -> Value {
    (0..120).fold(json!("end"), |inner, _| json!([inner, inner.as_str().is_some()]))
}

fn repeated(text: &str, times: usize) -> String {
    text.repeat(times)
}

#[test]
fn bombs_end_with_a_limit() {
    use Limit::{Bytes, Nesting, PathLength, Places, Steps};
    let doubled = |times| repeated("|.+.", times);
    let all = |expression: &str, times| vec![expression; times].join("|");
    let commas = repeated("(.,.)|", 25);
    let mut wrong = Vec::new();
    for (expression, limits) in [
        // Memory.
        (format!(".data | select((tostring{} | length) > 0)", doubled(40)), vec![Bytes, Steps]),
        (format!(".data | select(([.]{} | length) > 0)", doubled(40)), vec![Bytes, Steps]),
        (format!(".data | select((\"ab\"{} | length) > 0)", doubled(60)), vec![Bytes, Steps]),
        (format!(".data | select([..]{} | length > 0)", repeated("|[.,.]|tostring", 20)), vec![Bytes, Steps]),
        (format!("select([{commas}1] | length > 0)"), vec![Bytes, Steps]),
        (format!("select(([..]{}) | tostring)", repeated("|[.[],.[]]", 30)), vec![Bytes, Steps]),
        (format!("select({}\"\" | length)", repeated(&format!("\"{}\" as $x | ", repeated("\\(.data)", 12)), 9)), vec![Bytes, Steps, Nesting]),
        ("select([.data as $d | $d[] | $d[] | $d[] | {a: ., b: $d}] | length > 0)".to_owned(), vec![Bytes, Steps]),
        ("select([.data | (.. , ..) as $x | .. | [$x, .] | tostring] | length > 0)".to_owned(), vec![Bytes, Steps]),
        // Steps.
        (
            ".data as $d | .data | select(first(($d[]|$d[]|$d[]|$d[]|$d[]|$d[]|empty), true))".to_owned(),
            vec![Steps],
        ),
        (all("..", 8), vec![Steps, Places]),
        (format!("select({})", all("..", 8)), vec![Steps, Places]),
        (format!("select({commas}empty)"), vec![Steps]),
        (format!("{commas}.data"), vec![Steps, Places]),
        (format!("select(.data | any(.[]; . as $x | {} | empty))", all("$x, $x", 20)), vec![Steps]),
        ("select(.data[] == .data[] == .data[] == .data[])".to_owned(), vec![Steps, Places]),
        ("select((.data | keys) as $k | $k | contains($k) and ($k - $k - $k) == [] and ($k[] | inside($k[] | $k[])))"
            .to_owned(), vec![Steps, Places, Bytes]),
        ("select([.data[] | index(\"xxxxy\")] as $a | $a | index($a[]) , index($a[] | $a[]))".to_owned(), vec![Steps, Places, Bytes]),
        ("select(all(.data[]; all(.[]?; .)) and ([.data[]] as $d | all($d[]; . as $x | all($d[]; . as $y | all($d[]; . == $y)))))"
            .to_owned(), vec![Steps, Bytes]),
        ("select(try error catch (..|..|..|..|..|..))".replace("try error", "try .kind.x"), vec![]),
        (".data | try (.[] | .. | $__x) catch .".replace("$__x", ".x"), vec![]),
        // Regular expressions.
        ("select([.data[]] | tostring | .+. | .+. | test(\"(x*x*x*x*x*x*x*x*)*y\"))".to_owned(), vec![Steps]),
        ("select([.data[]] | tostring | test(\"(x{1,9}){1,9}y\"))".to_owned(), vec![Steps]),
        ("select(.data | [.[]] | tostring | split(\"x*y|x\"; \"g\"))".to_owned(), vec![Steps]),
        ("select(.data[] as $x | .data[] | test($x))".to_owned(), vec![Steps, Places]),
        ("select(.data | keys[] as $x | .[] | test($x + \"{900}\"))".to_owned(), vec![Steps]),
        // Paths.
        (format!("getpath([{commas}\"a\"])"), vec![Bytes, Steps, PathLength]),
        ("getpath([.data[], .data[], .data[]])".to_owned(), vec![PathLength]),
        (format!(".data[{}][{}][{}]", vec!["\"a\""; 60].join(","), vec!["\"b\""; 60].join(","), vec!["\"c\""; 60].join(",")), vec![Places]),
        (format!(".x{}", "[(1,2)]?".repeat(38)), vec![Steps, Places, Nesting]),
        (format!(".data{}", "[(1,2):(3,4)]?".repeat(12)), vec![Steps]),
        ("select([path(..), path(.. | ..), path(.. | .. | ..)] as $p | getpath($p[]) , getpath($p[] | $p[]))".to_owned(), vec![Steps, Bytes, Places]),
        (".a".repeat(900), vec![PathLength]),
        // Nesting.
        (format!(".a{}", repeated(" | .a", 99)), vec![Nesting]),
        (format!("{}1", repeated("-", 90)), vec![]),
        (format!("{} .a", repeated("try", 60).replace("try", "try ")), vec![]),
        (format!("{}1", repeated("1 + ", 110)), vec![Nesting]),
    ] {
        let path = match JqPath::compile(&expression) {
            Ok(path) => path,
            Err(why) => {
                wrong.push(format!("refused, {why}: {expression}"));
                continue;
            }
        };
        match path.places(&config_map(), 0).places {
            Ok(_) if limits.is_empty() => {}
            Err(limit) if limits.contains(&limit) => {}
            other => wrong.push(format!("{:?}: {expression}", other.map(|places| places.len()))),
        }
        let _ = path.places(&deep(), 0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_parser_cannot_bear_is_refused() {
    for expression in [
        repeated("(", 100),
        repeated("-", 1_900),
        format!("{}.", repeated("try ", 450)),
        format!(".{}", repeated("|.", 900)),
        format!("{}. end", repeated("if . then ", 190)),
        format!("{}.", repeated(". as $x|", 220)),
        format!("\"{}", repeated("\\(\"", 400)),
        format!("{}.", repeated("def f: ", 250)),
        repeated("{\"\\(", 20) + "1" + &repeated(")\"}", 20),
        "test(\"(a{1000}){1000}\")".to_owned(),
        "test(\"((((((((((((((((((((((((a))))))))))))))))))))))))\")".to_owned(),
        "test(\"(?:){4294967295}\")".to_owned(),
        "@base64 \"\\(.data)\"".to_owned(),
        "$ENV".to_owned(),
        "$__loc__".to_owned(),
        "range(1000000000000)".to_owned(),
        "[limit(9; repeat(.))]".to_owned(),
        "until(false; .)".to_owned(),
        "while(true; .)".to_owned(),
        "def f: f; f".to_owned(),
        "def f: 1 + f; f".to_owned(),
        "recurse(.)".to_owned(),
        "implode".to_owned(),
        "ltrimstr(1; 2)".to_owned(),
        "\"a\" * 1000000000".to_owned(),
        "input".to_owned(),
        "debug".to_owned(),
        "halt".to_owned(),
        "now".to_owned(),
        "env".to_owned(),
        "paths".to_owned(),
        ". |= 1".to_owned(),
        "label $f | break $f".to_owned(),
    ] {
        assert!(JqPath::compile(&expression).is_err(), "{expression}");
    }
}

/// The threads of the engine have two megabytes. A build for tests takes several times what a release takes.
#[test]
fn the_deepest_programs_fit_a_small_stack() {
    let programs = [
        format!(".a{}", repeated(" | .a", 99)),
        format!("{}1", repeated("-", 99)),
        format!("{}.a", repeated("try ", 99)),
        format!("{}1", repeated("1 + ", 499)),
        format!("{}1", repeated("1 == ", 390)),
        format!("{}1", repeated("1 or ", 390)),
        format!("{}.{}", repeated("[", 40), repeated("]", 40)),
        format!("{}.{}", repeated("first(", 40), repeated(")", 40)),
        format!("{}.", repeated(". as $x | ", 49)),
        format!("{}. else . end", repeated("if . then . elif . then ", 1) + &repeated(". elif . then ", 60)),
        vec![".."; 60].join("|"),
        format!(".{}", "[]".repeat(900)),
        format!(".{}", "[.[]]".repeat(300)),
        format!("select({} | tostring)", vec!["[.]"; 100].join("|")),
        format!("select({} | . == . and contains(.))", vec!["[.]"; 100].join("|")),
    ];
    for program in programs {
        // A failure names the thread.
        let name = format!("{} {}…", program.len(), program.chars().take(40).collect::<String>());
        let run = move || {
            if let Ok(path) = JqPath::compile(&program) {
                let _ = path.places(&deep(), 0);
            }
        };
        std::thread::Builder::new().name(name).stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    }
}
