//! Texts with parameters: `{{name}}`, or Go templates.

use std::cell::Cell;

use jiff::Timestamp;
use plumb_gotemplate::{Limits, Options, Scope, Template, TemplateError, Value};
use serde_json::{Map, Value as Json};

use crate::field_order::in_go_order;
use crate::params::{Data, Params, map_value};

/// How texts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `{{name}}` is replaced by the parameter of that name.
    Flat,
    /// Go templates, with `goTemplateOptions`.
    Go(Vec<String>),
}

/// What all renderings of one generation have left. It is shared, so that many small templates cost no more than a large
/// one.
#[derive(Debug)]
pub struct Budget {
    total: Total,
    steps: Cell<u64>,
    bytes: Cell<u64>,
}

/// What one generation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Steps of templates and of path patterns.
    pub steps: u64,
    /// Bytes of parameters and of rendered texts.
    pub bytes: u64,
}

impl Default for Total {
    /// Enough for ten thousand Applications; at most about ten seconds of work.
    fn default() -> Self {
        Self { steps: 20_000_000, bytes: 512 << 20 }
    }
}

impl Budget {
    /// A full budget.
    pub fn new(total: Total) -> Self {
        Self::with_steps(total, total.steps)
    }

    /// A budget of which only these steps are left.
    pub(crate) fn with_steps(total: Total, steps: u64) -> Self {
        Self { total, steps: Cell::new(steps), bytes: Cell::new(total.bytes) }
    }

    pub(crate) fn steps_left(&self) -> u64 {
        self.steps.get()
    }

    /// Takes steps.
    pub(crate) fn step(&self, n: u64) -> Result<(), String> {
        let left = self.steps.get().checked_sub(n);
        let limit = self.total.steps;
        let message =
            || format!("the ApplicationSet exceeds its limit of {limit} steps; split it into several");
        self.steps.set(left.ok_or_else(message)?);
        Ok(())
    }

    /// Takes bytes.
    pub(crate) fn allocate(&self, n: usize) -> Result<(), String> {
        let left = self.bytes.get().checked_sub(n as u64);
        let limit = self.total.bytes >> 20;
        let message = || {
            format!(
                "the ApplicationSet exceeds its limit of {limit} MiB of parameters and texts; split it into several"
            )
        };
        self.bytes.set(left.ok_or_else(message)?);
        Ok(())
    }
}

/// Renders texts.
#[derive(Debug)]
pub struct Renderer {
    /// How texts are read.
    pub engine: Engine,
    /// What one parameter set may cost.
    pub limits: Limits,
    /// What all of them may cost.
    pub budget: Budget,
    /// The time that `now` returns.
    pub now: Timestamp,
    /// Random functions draw from it.
    pub seed: [u8; 32],
}

impl Renderer {
    /// Renders one text.
    pub fn render(&self, text: &str, params: &Params) -> Result<String, String> {
        self.session(params)?.text(text)
    }

    /// Prepares to render several texts with the same parameters.
    pub(crate) fn session<'a>(&'a self, params: &'a Params) -> Result<Session<'a>, String> {
        match &self.engine {
            Engine::Flat => Ok(Session { renderer: self, params, go: None }),
            Engine::Go(options) => self.go_session(params, options),
        }
    }

    /// The same for Go templates with other options.
    pub(crate) fn go_session<'a>(
        &'a self,
        params: &'a Params,
        options: &[String],
    ) -> Result<Session<'a>, String> {
        let options = Options::read(options).map_err(|fault| fault.0)?;
        let limits = Limits {
            steps: self.limits.steps.min(self.budget.steps.get()),
            bytes: self.limits.bytes.min(self.budget.bytes.get()),
            depth: self.limits.depth,
        };
        let scope = Scope::new(limits, self.now, self.seed);
        let value = map_value(&scope, params).map_err(|fault| fault.0)?;
        Ok(Session { renderer: self, params, go: Some(Go { value, scope, options }) })
    }
}

/// One parameter set that renders texts; they share its budget.
pub(crate) struct Session<'a> {
    renderer: &'a Renderer,
    params: &'a Params,
    go: Option<Go>,
}

/// What Go templates need.
struct Go {
    // The value is dropped before the scope, which takes its parts apart.
    value: Value,
    scope: Scope,
    options: Options,
}

impl Drop for Session<'_> {
    /// What the session cost is no longer there for others.
    fn drop(&mut self) {
        let Some(Go { scope, .. }) = &self.go else { return };
        let budget = &self.renderer.budget;
        let (steps, bytes) =
            (scope.limits().steps - scope.steps_left(), scope.limits().bytes - scope.bytes_left());
        budget.steps.set(budget.steps.get().saturating_sub(steps));
        budget.bytes.set(budget.bytes.get().saturating_sub(bytes));
    }
}

impl Session<'_> {
    pub(crate) fn text(&self, text: &str) -> Result<String, String> {
        // A text costs something even if it renders to nothing.
        self.renderer.budget.step(text.len() as u64 / 16 + 4)?;
        let Some(Go { value, scope, options }) = &self.go else {
            return flat(text, self.params, &self.renderer.budget);
        };
        let rendered = Template::parse("base", text, scope.limits())
            .and_then(|template| template.render(scope, *options, value));
        rendered.map_err(|error| match error {
            TemplateError::Parse(message) => format!("failed to parse template {text}: {message}"),
            TemplateError::Execute(message) => format!("failed to execute go template {text}: {message}"),
        })
    }

    /// Every string of a JSON value, keys too. It is what stands under the key `under`.
    pub(crate) fn json(&self, json: &Json, under: &str) -> Result<Json, String> {
        self.part(json, under, false)
    }

    /// `raw`: inside JSON that Argo CD stores as text, where null entries of maps vanish.
    fn part(&self, json: &Json, under: &str, raw: bool) -> Result<Json, String> {
        Ok(match json {
            Json::String(text) => Json::from(self.text(text)?),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.part(item, under, raw));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Json::Object(map) => {
                let mut rendered = Map::new();
                for (key, value) in in_go_order(if raw { "" } else { under }, map) {
                    if raw && value.is_null() {
                        continue;
                    }
                    let starts_raw = !raw
                        && matches!(key.as_str(), "valuesObject" | "elements" | "parameters")
                        && is_raw(key, value);
                    let value = self.part(value, key, raw || starts_raw).map_err(|error| {
                        if starts_raw {
                            format!("failed to deeply replace JSON field contents: {error}")
                        } else {
                            error
                        }
                    })?;
                    rendered.insert(self.text(key)?, value);
                }
                Json::Object(rendered)
            }
            other => other.clone(),
        })
    }
}

/// `parameters` is raw JSON only in the input of a plugin generator, where it is a map.
fn is_raw(key: &str, value: &Json) -> bool {
    key != "parameters" || value.is_object()
}

/// Replaces `{{name}}`. A name that is not a parameter of type string stays as it is written.
fn flat(text: &str, params: &Params, budget: &Budget) -> Result<String, String> {
    // Only a text with a complete tag on one line is a template.
    let is_template =
        text.split('\n').any(|line| line.find("{{").is_some_and(|start| line[start + 2..].contains("}}")));
    budget.allocate(text.len())?;
    if !is_template {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let Some(end) = inside.find("}}") else {
            return Err(format!(
                "invalid template: Cannot find end tag=\"}}}}\" in the template={} starting from {}",
                plumb_gotemplate::format::quote(text),
                plumb_gotemplate::format::quote(inside)
            ));
        };
        let tag = &inside[..end];
        match params.get(tag.trim()) {
            Some(Data::Text(value)) if !tag.trim().is_empty() => {
                budget.allocate(value.len())?;
                out.push_str(value);
            }
            _ => {
                out.push_str("{{");
                out.push_str(tag);
                out.push_str("}}");
            }
        }
        rest = &inside[end + 2..];
    }
    out.push_str(rest);
    Ok(out)
}
