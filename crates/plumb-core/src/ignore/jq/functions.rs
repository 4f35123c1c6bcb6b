//! The functions.

use super::budget::{Budget, Flow, Stop};
use super::evaluate::{Evaluation, Item, Out, Scope};
use super::expression::{Expression, Function, Kind};
use super::number::Number;
use super::path::Path;
use super::text;
use super::value::{Entries, Val, View, positions};

impl Evaluation<'_> {
    /// Calls a function.
    pub(super) fn call<'v>(
        &self,
        function: Function,
        arguments: &'v [Expression],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        match (function, arguments) {
            (Function::Empty, _) => Ok(()),
            (Function::All | Function::Any, arguments) => {
                let is_any = function == Function::Any;
                let found = self.quantify(is_any, arguments, scope, input)?;
                out(input.built(Val::Bool(found == is_any))?)
            }
            (Function::FirstItem, _) => out(self.child(input, &Val::Number(Number::Int(0)))?),
            (Function::LastItem, _) => out(self.child(input, &Val::Number(Number::Int(-1)))?),
            (Function::FirstOf, [of]) => self.first(of, scope, input, out),
            (Function::LastOf, [of]) => {
                let mut last = None;
                self.run(of, scope, input, &mut |item| {
                    last = Some(item);
                    Ok(())
                })?;
                last.map_or(Ok(()), out)
            }
            (Function::Select, [condition]) => self.values(condition, scope, input, &mut |value| {
                if value.is_true() { out(input.clone()) } else { Ok(()) }
            }),
            (Function::SelectKind(kind), _) => {
                if kind.has(&input.value) {
                    out(input.clone())
                } else {
                    Ok(())
                }
            }
            (Function::GetPath, [path]) => {
                self.values(path, scope, input, &mut |path| out(self.get_path(&path, input)?))
            }
            (Function::Path, [of]) => {
                let rooted = Item { value: input.value.clone(), path: Some(Path::default()) };
                self.run(of, scope, &rooted, &mut |item| {
                    let segments = item.path.unwrap_or_default().segments();
                    out(input.built(Val::array(segments, self.budget)?)?)
                })
            }
            (Function::Map, [of]) => self.map(of, scope, input, out),
            (Function::Test | Function::SplitRegex, [pattern, flags @ ..]) => {
                self.match_pattern(function, pattern, flags.first(), scope, input, out)
            }
            (function, [argument]) => self.values(argument, scope, input, &mut |argument| {
                out(input.built(with_argument(function, &input.value, &argument, self.budget)?)?)
            }),
            (function, _) => out(input.built(of_input(function, &input.value, self.budget)?)?),
        }
    }

    /// Is one condition true (`any`), or one false (`all`)?
    fn quantify<'v>(
        &self,
        is_any: bool,
        arguments: &'v [Expression],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
    ) -> Result<bool, Stop> {
        let mut found = false;
        let mut look = |value: Val<'v>| {
            found |= value.is_true() == is_any;
            if found { Err(Stop::Done) } else { Ok(()) }
        };
        let input = input.without_path();
        let flow = match arguments {
            [] => self.children(&input, &mut |child| look(child.value)),
            [condition] => {
                self.children(&input, &mut |child| self.values(condition, scope, &child, &mut look))
            }
            [of, condition, ..] => {
                self.run(of, scope, &input, &mut |item| self.values(condition, scope, &item, &mut look))
            }
        };
        match flow {
            Ok(()) => Ok(false),
            Err(Stop::Done) if found => Ok(true),
            Err(stop) => Err(stop),
        }
    }

    fn first<'v>(
        &self,
        of: &'v Expression,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut first = None;
        let flow = self.run(of, scope, input, &mut |item| {
            first = Some(item);
            Err(Stop::Done)
        });
        match (first, flow) {
            (Some(first), _) => out(first),
            (None, flow) => flow,
        }
    }

    fn map<'v>(&self, of: &'v Expression, scope: &Scope<'_, 'v>, input: &Item<'v>, out: Out<'_, 'v>) -> Flow {
        let mut all = Vec::new();
        self.children(&input.without_path(), &mut |child| {
            self.values(of, scope, &child, &mut |value| {
                self.budget.build(std::mem::size_of::<Val<'_>>())?;
                all.push(value);
                Ok(())
            })
        })?;
        out(input.built(Val::array(all, self.budget)?)?)
    }

    fn get_path<'v>(&self, path: &Val<'v>, input: &Item<'v>) -> Result<Item<'v>, Stop> {
        let mut item = input.clone();
        path.each_value(|segment| {
            item = self.child(&item, &segment)?;
            Ok(())
        })?;
        Ok(item)
    }

    fn match_pattern<'v>(
        &self,
        function: Function,
        pattern: &'v Expression,
        flags: Option<&'v Expression>,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut apply = |pattern: &Val<'v>, flags: &str| {
            let compiled = self.patterns.get(pattern.as_text()?, flags, self.budget)?;
            let text = input.value.as_text()?;
            let value = if function == Function::Test {
                Val::Bool(compiled.is_match(text, self.budget)?)
            } else {
                texts(compiled.split(text, self.budget)?.into_iter(), self.budget)?
            };
            out(input.built(value)?)
        };
        self.values(pattern, scope, input, &mut |pattern| match flags {
            None => apply(&pattern, ""),
            Some(flags) => self.values(flags, scope, input, &mut |flags| match flags.view() {
                View::Null if function == Function::SplitRegex => apply(&pattern, ""),
                _ => apply(&pattern, flags.as_text()?),
            }),
        })
    }
}

fn texts<'v, 't>(parts: impl Iterator<Item = &'t str>, budget: &Budget) -> Result<Val<'v>, Stop> {
    let mut all = Vec::new();
    for part in parts {
        all.push(Val::text(part, budget)?);
    }
    Val::array(all, budget)
}

/// Functions of their input alone.
fn of_input<'v>(function: Function, input: &Val<'v>, budget: &Budget) -> Result<Val<'v>, Stop> {
    Ok(match function {
        Function::Not => Val::Bool(!input.is_true()),
        Function::Is(kind) => Val::Bool(kind.has(input)),
        Function::Type => Val::Key(type_name(input)),
        Function::Length => Val::Number(match input.view() {
            View::Null => Number::Int(0),
            View::Number(number) => number.absolute(),
            View::Text(text) => {
                budget.look_at(text.len())?;
                Number::from(text.chars().count())
            }
            View::Array(items) => Number::from(items.len()),
            View::Object(entries) => Number::from(entries.len()),
            View::Bool(_) => return Err(Stop::Error),
        }),
        Function::Keys => match input.view() {
            View::Array(items) => {
                budget.build(items.len().saturating_mul(std::mem::size_of::<Val<'_>>()))?;
                Val::array((0..items.len()).map(|index| Val::Number(index.into())).collect(), budget)?
            }
            View::Object(entries) => keys(entries, budget)?,
            _ => return Err(Stop::Error),
        },
        Function::AsciiDowncase | Function::AsciiUpcase => {
            let text = input.as_text()?;
            budget.build(text.len())?;
            let is_down = function == Function::AsciiDowncase;
            Val::Text(if is_down { text.to_ascii_lowercase() } else { text.to_ascii_uppercase() }.into())
        }
        Function::ToText => {
            let mut written = String::new();
            text::write_text(input, &mut written, budget)?;
            Val::Text(written.into())
        }
        _ => return Err(Stop::Error),
    })
}

fn keys<'v>(entries: Entries<'_, 'v>, budget: &Budget) -> Result<Val<'v>, Stop> {
    let sorted = entries.sorted(budget)?;
    texts(sorted.iter().map(|(key, _)| *key), budget)
}

/// Functions of their input and one argument.
fn with_argument<'v>(
    function: Function,
    input: &Val<'v>,
    argument: &Val<'v>,
    budget: &Budget,
) -> Result<Val<'v>, Stop> {
    budget.steps(1)?;
    Ok(match function {
        Function::Has => Val::Bool(input.find(argument, budget)?.is_some()),
        Function::In => Val::Bool(argument.find(input, budget)?.is_some()),
        Function::Contains => Val::Bool(contains(input, argument, budget)?),
        Function::Inside => Val::Bool(contains(argument, input, budget)?),
        Function::Index => index(input, argument, budget)?,
        Function::StartsWith => Val::Bool(input.as_text()?.starts_with(argument.as_text()?)),
        Function::EndsWith => Val::Bool(input.as_text()?.ends_with(argument.as_text()?)),
        Function::LeftTrim => match input.as_text()?.strip_prefix(argument.as_text()?) {
            Some(rest) => Val::text(rest, budget)?,
            None => input.clone(),
        },
        Function::RightTrim => match input.as_text()?.strip_suffix(argument.as_text()?) {
            Some(rest) => Val::text(rest, budget)?,
            None => input.clone(),
        },
        Function::Split => split(input.as_text()?, argument.as_text()?, budget)?,
        _ => return Err(Stop::Error),
    })
}

fn split<'v>(text: &str, separator: &str, budget: &Budget) -> Result<Val<'v>, Stop> {
    budget.look_at(text.len())?;
    if text.is_empty() {
        return Val::array(Vec::new(), budget);
    }
    if separator.is_empty() {
        return texts(text.split("").filter(|part| !part.is_empty()), budget);
    }
    texts(text.split(separator), budget)
}

/// Is `other` a part of `value`?
fn contains(value: &Val<'_>, other: &Val<'_>, budget: &Budget) -> Result<bool, Stop> {
    budget.steps(1)?;
    match (value.view(), other.view()) {
        (View::Text(text), View::Text(part)) => {
            budget.look_at(text.len())?;
            Ok(text.contains(part))
        }
        (View::Array(items), View::Array(parts)) => {
            for part in (0..parts.len()).filter_map(|index| parts.get(index)) {
                let mut is_in = false;
                for item in (0..items.len()).filter_map(|index| items.get(index)) {
                    is_in = contains(&item, &part, budget)?;
                    if is_in {
                        break;
                    }
                }
                if !is_in {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (View::Object(entries), View::Object(parts)) => {
            for (key, part) in parts.sorted(budget)? {
                let Some(item) = entries.get(key) else { return Ok(false) };
                if !contains(&item, &part, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(value.compare(other, budget)?.is_eq()),
    }
}

/// The first position of a part.
fn index<'v>(value: &Val<'v>, part: &Val<'v>, budget: &Budget) -> Result<Val<'v>, Stop> {
    let found = match (value.view(), part.view()) {
        (View::Text(_), View::Text("")) => None,
        (View::Text(text), View::Text(part)) => {
            budget.look_at(text.len())?;
            text.find(part).map(|at| text.get(..at).map_or(0, |before| before.chars().count()))
        }
        (View::Array(items), View::Array(parts)) => positions(items, parts, 1, budget)?.pop(),
        (View::Array(items), _) => {
            let mut found = None;
            for (at, item) in (0..items.len()).filter_map(|at| Some((at, items.get(at)?))) {
                if item.compare(part, budget)?.is_eq() {
                    found = Some(at);
                    break;
                }
            }
            found
        }
        _ => return Err(Stop::Error),
    };
    Ok(found.map_or(Val::Null, |found| Val::Number(found.into())))
}

impl Kind {
    fn has(self, value: &Val<'_>) -> bool {
        match (self, value.view()) {
            (Self::Value, view) => !matches!(view, View::Null),
            (Self::Scalar, view) => !matches!(view, View::Array(_) | View::Object(_)),
            (Self::Iterable, View::Array(_) | View::Object(_))
            | (Self::Array, View::Array(_))
            | (Self::Object, View::Object(_))
            | (Self::Null, View::Null)
            | (Self::Boolean, View::Bool(_))
            | (Self::Number, View::Number(_))
            | (Self::String, View::Text(_)) => true,
            _ => false,
        }
    }
}

fn type_name(value: &Val<'_>) -> &'static str {
    match value.view() {
        View::Null => "null",
        View::Bool(_) => "boolean",
        View::Number(_) => "number",
        View::Text(_) => "string",
        View::Array(_) => "array",
        View::Object(_) => "object",
    }
}
