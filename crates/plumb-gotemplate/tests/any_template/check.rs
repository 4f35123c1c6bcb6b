//! What holds for any text as a template. The test here and a fuzz target share it.

use jiff::Timestamp;
use plumb_gotemplate::{Limits, Options, Scope, Template, Value};
use serde_json::json;

/// Small, so that a template that escapes its budget is seen.
pub(crate) const LIMITS: Limits = Limits { steps: 20_000, bytes: 1 << 20, depth: 60 };

/// The text of a template, or its error. Neither parsing nor rendering panics, the same input gives the same answer, and
/// what is created stays within the budget.
pub(crate) fn any_template(text: &str) -> Result<String, String> {
    let first = render(text);
    assert_eq!(first, render(text), "the same template renders differently");
    if let Ok(rendered) = &first {
        assert!(rendered.len() as u64 <= LIMITS.bytes, "{} bytes", rendered.len());
    }
    first
}

fn render(text: &str) -> Result<String, String> {
    let scope = Scope::new(LIMITS, Timestamp::UNIX_EPOCH, [7; 32]);
    let parameters = json!({
        "s": "Hello, Wörld", "n": [3, 1, 2], "l": ["b", "a"], "m": {"k": "v", "d": {"x": 1.5}}, "z": 0, "t": true,
        "nil": null,
    });
    let parameters = Value::from_json(&scope, &parameters).map_err(|fault| fault.to_string())?;
    let template = Template::parse("base", text, scope.limits()).map_err(|error| error.to_string())?;
    template.render(&scope, Options::default(), &parameters).map_err(|error| error.to_string())
}
