//! What a kilobyte of YAML may cost: 50 MB and one second, whatever it says. Alone in its file, so that the
//! peak of the process is the peak of this test.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use plumb_core::yaml::{Limits, parse_documents};

/// Texts of at most a kilobyte that try to cost more.
fn hostile_texts() -> Vec<(&'static str, String)> {
    let levels = |first: &str, n: usize, level: &dyn Fn(usize) -> String| {
        let mut text = first.to_owned();
        for number in 1..n {
            let _ = write!(text, "\na{number}: &a{number} {}", level(number - 1));
        }
        text
    };
    let fill = |part: &str| part.repeat(1024 / part.len());
    vec![
        (
            "lists of aliases",
            levels("a0: &a0 [x]", 20, &|below| format!("[{}]", format!("*a{below},").repeat(8))),
        ),
        (
            "a long text, many times",
            levels(&format!("a0: &a0 {}", "x".repeat(400)), 8, &|below| {
                format!("[{}]", format!("*a{below},").repeat(16))
            }),
        ),
        (
            "maps of aliases",
            levels("a0: &a0 {x: 1}", 14, &|below| {
                let entries = [0, 1, 2, 3, 4, 5].map(|key| format!("{key}: *a{below},")).concat();
                format!("{{{entries}}}")
            }),
        ),
        (
            "merges of merges",
            levels("a0: &a0 {x: 1}", 20, &|below| format!("{{<<: [{}]}}", format!("*a{below},").repeat(6))),
        ),
        (
            "merges that add a key each",
            levels("a0: &a0 {x: 1}", 24, &|below| format!("{{<<: [*a{below},*a{below}],k{below}: 1}}")),
        ),
        ("an anchor in itself", "&a [*a,*a,*a,*a,*a,*a,*a,*a]".to_owned()),
        ("open lists", fill("[")),
        ("open maps", fill("{")),
        ("open maps with keys", fill("{a: ")),
        ("lists in lists", fill("- ")),
        ("keys in keys", fill("? ")),
        ("values of nothing", fill(": ")),
        ("entries of nothing", format!("[{}]", "a,".repeat(500))),
        ("keys of one letter", fill("a: ")),
        ("documents", fill("---\na\n")),
        ("empty documents", fill("---\n")),
        ("comments", fill("#\n")),
        ("line breaks in a block", format!("a: |+{}", "\n".repeat(1000))),
        ("line breaks in a quote", format!("a: \"{}\"", "\n".repeat(1000))),
        ("underscores", format!("a: 1{}", "_".repeat(1000))),
        ("a large number", format!("a: {}", "9".repeat(1000))),
        ("a large exponent", "a: 1e999999999999999999999".to_owned()),
        ("tags", fill("!!str ")),
        ("anchors", fill("&a ")),
    ]
}

/// The most memory that this process has used, if the system says so.
#[expect(clippy::disallowed_methods, reason = "the kernel keeps this figure in a file")]
fn peak_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "time is what is measured")]
fn a_kilobyte_is_cheap() {
    let before = peak_bytes();
    for (name, text) in hostile_texts() {
        assert!(text.len() <= 1024, "{name} has {} bytes", text.len());
        let start = Instant::now();
        let outcome = parse_documents(&text, &Limits::default());
        let spent = start.elapsed();
        drop(outcome);
        assert!(spent < Duration::from_secs(1), "{name} took {spent:?}");
    }
    let (Some(before), Some(after)) = (before, peak_bytes()) else {
        println!("memory is not measured on this system");
        return;
    };
    let grown = after - before;
    println!("grown by {grown} bytes");
    assert!(grown < 50_000_000, "reading a kilobyte took {grown} bytes");
}
