//! What the schemas of custom resources take in memory. Alone in its file, so that the memory of the process is that of
//! this test.

use plumb_core::object::GroupVersionKind;
use plumb_core::schema::SchemaSet;

/// A figure about this process in bytes, if the system says so.
#[expect(clippy::disallowed_methods, reason = "the kernel keeps this figure in a file")]
fn figure(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

const KINDS: usize = 40;
const SECTIONS: usize = 40;

/// The document of a group with many large kinds, as operators that embed the types of Kubernetes have them.
fn document() -> String {
    let mut kinds = Vec::new();
    for kind in 0..KINDS {
        let sections: Vec<String> =
            (0..SECTIONS).map(|at| format!("\"section{kind}x{at}\": {}", section(kind))).collect();
        kinds.push(format!(
            "\"io.mix.v1.Kind{kind}\": {{\"type\": \"object\", \
             \"x-kubernetes-group-version-kind\": [{{\"group\": \"mix.io\", \"version\": \"v1\", \"kind\": \"Kind{kind}\"}}], \
             \"properties\": {{\"metadata\": {{\"type\": \"object\"}}, \"spec\": {{\"type\": \"object\", \"properties\": {{{}}}}}}}}}",
            sections.join(",")
        ));
    }
    format!(
        "{{\"paths\": {{\"/apis/mix.io/v1/kinds\": {{}}}}, \"components\": {{\"schemas\": {{{}}}}}}}",
        kinds.join(",")
    )
}

fn section(kind: usize) -> String {
    let fields: Vec<String> = (0..12)
        .map(|at| {
            let text = format!("field {at} of kind {kind} selects what the controller does. ").repeat(3);
            format!("\"field{at}\": {{\"type\": \"string\", \"description\": \"{text}\"}}")
        })
        .collect();
    format!("{{\"type\": \"object\", \"properties\": {{{}}}}}", fields.join(","))
}

#[test]
fn only_what_is_wanted_is_parsed_and_kept() {
    let document = document();
    let peak = || figure("VmHWM:").unwrap_or_default();
    if peak() == 0 {
        println!("memory is not measured on this system");
        return;
    }
    assert!(document.len() > 3 << 20, "{}", document.len());
    let kind = |at: usize| GroupVersionKind::from_api_version("mix.io/v1", &format!("Kind{at}"));
    let before = peak();
    let one = SchemaSet::default().with_openapi(document.as_bytes(), |wanted| *wanted == kind(7));
    let for_one = peak() - before;
    assert!(one.kind(&kind(7)).is_some() && one.kind(&kind(8)).is_none());
    println!("{} bytes of text; one kind took {for_one} bytes", document.len());
    assert!(for_one < document.len() / 2, "{for_one} bytes for one kind");
    let before = peak();
    let all = SchemaSet::default().with_openapi(document.as_bytes(), |_| true);
    let for_all = peak() - before;
    assert!((0..KINDS).all(|at| all.kind(&kind(at)).is_some()));
    println!("all kinds took {for_all} bytes");
    assert!(for_all < document.len() / 2, "{for_all} bytes for all kinds");
}
