//! Evaluates an expression: each output goes to a function, so that no list of outputs is kept.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::budget::{Budget, Flow, Stop};
use super::expression::{Comparison, Expression, TextPart};
use super::path::Path;
use super::regex::Patterns;
use super::value::{Entries, Val, View};
use super::{arithmetic, text};

/// A value, and where in the object it is if that is what the caller asks for.
#[derive(Clone, Debug)]
pub(super) struct Item<'v> {
    pub(super) value: Val<'v>,
    pub(super) path: Option<Path<'v>>,
}

/// The variables in scope, the innermost first.
#[derive(Clone, Copy)]
pub(super) enum Scope<'s, 'v> {
    Empty,
    Variable(&'s Val<'v>, &'s Scope<'s, 'v>),
}

/// Takes the outputs.
pub(super) type Out<'o, 'v> = &'o mut dyn FnMut(Item<'v>) -> Flow;

/// One evaluation.
pub(super) struct Evaluation<'b> {
    pub(super) budget: &'b Budget,
    pub(super) patterns: Patterns,
}

impl<'v> Item<'v> {
    pub(super) fn plain(value: Val<'v>) -> Self {
        Self { value, path: None }
    }

    /// The same value without its path.
    pub(super) fn without_path(&self) -> Self {
        Self::plain(self.value.clone())
    }

    /// A value that was built, which is no part of the object.
    pub(super) fn built(&self, value: Val<'v>) -> Result<Self, Stop> {
        if self.path.is_some() { Err(Stop::Error) } else { Ok(Self::plain(value)) }
    }
}

impl Evaluation<'_> {
    /// Passes each output to `out`.
    pub(super) fn run<'v>(
        &self,
        expression: &'v Expression,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        self.budget.steps(1)?;
        self.budget.deeper(|| match expression {
            Expression::Identity => out(input.clone()),
            Expression::Recurse => self.recurse(input, out),
            Expression::Literal(value) => out(input.built(Val::Json(value))?),
            Expression::Text(parts) => self.text(parts, scope, input, out),
            Expression::Array(items) => self.array(items.as_deref(), scope, input, out),
            Expression::Object(entries) => self.object(entries, scope, input, BTreeMap::new(), out),
            Expression::Negate(operand) => {
                self.values(operand, scope, input, &mut |value| match value.view() {
                    View::Number(number) => out(input.built(Val::Number(number.negate()))?),
                    _ => Err(Stop::Error),
                })
            }
            Expression::Pipe(pair) => {
                let [left, right] = &**pair;
                self.run(left, scope, input, &mut |item| self.run(right, scope, &item, out))
            }
            Expression::Bind(pair) => {
                let [left, right] = &**pair;
                self.values(left, scope, input, &mut |value| {
                    self.run(right, &Scope::Variable(&value, scope), input, out)
                })
            }
            Expression::Comma(all) => all.iter().try_for_each(|one| self.run(one, scope, input, out)),
            Expression::Alternative(pair) => self.alternative(pair, scope, input, out),
            Expression::Logic(stop, operands) => self.logic(*stop, operands, scope, input, out),
            Expression::Compare(operator, pair) => self.pairs(pair, scope, input, &mut |left, right| {
                let order = left.compare(&right, self.budget)?;
                out(input.built(Val::Bool(operator.holds(order)))?)
            }),
            Expression::Add(pair) => self.pairs(pair, scope, input, &mut |left, right| {
                out(input.built(arithmetic::add(left, right, self.budget)?)?)
            }),
            Expression::Subtract(pair) => self.pairs(pair, scope, input, &mut |left, right| {
                out(input.built(arithmetic::subtract(&left, &right, self.budget)?)?)
            }),
            Expression::Try(body, handler) => self.attempt(body, handler.as_deref(), scope, input, out),
            Expression::If(branches, otherwise) => {
                self.branch(branches, otherwise.as_deref(), scope, input, out)
            }
            Expression::Variable(between) => out(input.built(scope.get(*between)?)?),
            Expression::Path(from, parts) => self.path(from, parts, scope, input, out),
            Expression::Call(function, arguments) => self.call(*function, arguments, scope, input, out),
        })
    }

    /// The outputs as values, wherever they are.
    pub(super) fn values<'v>(
        &self,
        expression: &'v Expression,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: &mut dyn FnMut(Val<'v>) -> Flow,
    ) -> Flow {
        self.run(expression, scope, &input.without_path(), &mut |item| out(item.value))
    }

    /// Every pair of outputs.
    fn pairs<'v>(
        &self,
        [left, right]: &'v [Expression; 2],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: &mut dyn FnMut(Val<'v>, Val<'v>) -> Flow,
    ) -> Flow {
        self.values(left, scope, input, &mut |left| {
            self.values(right, scope, input, &mut |right| out(left.clone(), right))
        })
    }

    /// The item itself, then everything inside it.
    fn recurse<'v>(&self, item: &Item<'v>, out: Out<'_, 'v>) -> Flow {
        self.budget.steps(1)?;
        out(item.clone())?;
        if !matches!(item.value.view(), View::Array(_) | View::Object(_)) {
            return Ok(());
        }
        self.budget.deeper(|| self.children(item, &mut |child| self.recurse(&child, out)))
    }

    /// `.[]`
    pub(super) fn children<'v>(&self, item: &Item<'v>, out: Out<'_, 'v>) -> Flow {
        match &item.path {
            None => item.value.each_value(|value| {
                self.budget.steps(1)?;
                out(Item::plain(value))
            }),
            Some(path) => item
                .value
                .each_child(|key, value| out(Item { value, path: Some(path.join(key, self.budget)?) })),
        }
    }

    /// `.[index]`
    pub(super) fn child<'v>(&self, item: &Item<'v>, index: &Val<'v>) -> Result<Item<'v>, Stop> {
        self.budget.steps(1)?;
        let value = item.value.find(index, self.budget)?.unwrap_or(Val::Null);
        let path = item.path.as_ref().map(|path| path.join(index.clone(), self.budget)).transpose()?;
        Ok(Item { value, path })
    }

    fn text<'v>(
        &self,
        parts: &'v [TextPart],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        self.text_from(parts, scope, input, String::new(), &mut |text| {
            out(input.built(Val::Text(text.into()))?)
        })
    }

    fn text_from<'v>(
        &self,
        parts: &'v [TextPart],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        mut text: String,
        out: &mut dyn FnMut(String) -> Flow,
    ) -> Flow {
        match parts {
            [] => out(text),
            [TextPart::Text(known), rest @ ..] => {
                self.budget.build(known.len())?;
                text.push_str(known);
                self.text_from(rest, scope, input, text, out)
            }
            [TextPart::Value(expression), rest @ ..] => self.values(expression, scope, input, &mut |value| {
                self.budget.build(text.len())?;
                let mut text = text.clone();
                text::write_text(&value, &mut text, self.budget)?;
                self.text_from(rest, scope, input, text, out)
            }),
        }
    }

    fn array<'v>(
        &self,
        items: Option<&'v Expression>,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut all = Vec::new();
        if let Some(items) = items {
            self.values(items, scope, input, &mut |value| {
                self.budget.build(std::mem::size_of::<Val<'_>>())?;
                all.push(value);
                Ok(())
            })?;
        }
        out(input.built(Val::array(all, self.budget)?)?)
    }

    fn object<'v>(
        &self,
        entries: &'v [(Expression, Expression)],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        built: BTreeMap<Rc<str>, Val<'v>>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let [(key, value), rest @ ..] = entries else {
            return out(input.built(Val::object(built, self.budget)?)?);
        };
        self.values(key, scope, input, &mut |key| {
            let key = key.as_text()?;
            self.budget.build(key.len())?;
            let key: Rc<str> = key.into();
            self.values(value, scope, input, &mut |value| {
                let mut built = Entries::Built(&built).copied(1, self.budget)?;
                built.insert(Rc::clone(&key), value);
                self.object(rest, scope, input, built, out)
            })
        })
    }

    /// All outputs of the left side that are true; if there are none, those of the right side.
    fn alternative<'v>(
        &self,
        [left, right]: &'v [Expression; 2],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut any = false;
        if input.path.is_some() {
            match self.values(left, scope, input, &mut |value| {
                any |= value.is_true();
                if any { Err(Stop::Done) } else { Ok(()) }
            }) {
                Err(Stop::Error) => any = true,
                Err(Stop::Done) | Ok(()) => {}
                Err(limit @ Stop::Limit(_)) => return Err(limit),
            }
            return self.run(if any { left } else { right }, scope, input, out);
        }
        self.run(left, scope, input, &mut |item| {
            if !item.value.is_true() {
                return Ok(());
            }
            any = true;
            out(item)
        })?;
        if any { Ok(()) } else { self.run(right, scope, input, out) }
    }

    /// One operand after the other, so that a long chain takes no more stack than a short one.
    fn logic<'v>(
        &self,
        stop: bool,
        operands: &'v [Expression],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut results = vec![!stop];
        for operand in operands {
            let mut next = Vec::new();
            for result in results {
                if result == stop {
                    next.push(stop);
                    continue;
                }
                self.values(operand, scope, input, &mut |value| {
                    self.budget.build(1)?;
                    next.push(value.is_true());
                    Ok(())
                })?;
            }
            results = next;
        }
        results.into_iter().try_for_each(|result| out(input.built(Val::Bool(result))?))
    }

    /// Only errors of the body are caught, not those of what takes its outputs.
    fn attempt<'v>(
        &self,
        body: &'v Expression,
        handler: Option<&'v Expression>,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let mut stopped = None;
        let flow = self.run(body, scope, input, &mut |item| {
            out(item).map_err(|stop| {
                stopped = Some(stop);
                Stop::Done
            })
        });
        match (stopped, flow, handler) {
            (Some(stop), _, _) => Err(stop),
            (None, Err(Stop::Error), Some(handler)) => {
                let message = Item::plain(Val::Key("error"));
                self.run(handler, scope, &message, &mut |item| out(input.built(item.value)?))
            }
            (None, Err(Stop::Error), None) => Ok(()),
            (None, flow, _) => flow,
        }
    }

    fn branch<'v>(
        &self,
        branches: &'v [(Expression, Expression)],
        otherwise: Option<&'v Expression>,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        let [(condition, then), rest @ ..] = branches else {
            return match otherwise {
                Some(otherwise) => self.run(otherwise, scope, input, out),
                None => out(input.clone()),
            };
        };
        self.budget.deeper(|| {
            self.values(condition, scope, input, &mut |value| {
                if value.is_true() {
                    self.run(then, scope, input, out)
                } else {
                    self.branch(rest, otherwise, scope, input, out)
                }
            })
        })
    }
}

impl<'v> Scope<'_, 'v> {
    fn get(&self, between: usize) -> Result<Val<'v>, Stop> {
        let mut scope = self;
        let mut between = between;
        while let Scope::Variable(value, outer) = scope {
            if between == 0 {
                return Ok((*value).clone());
            }
            between -= 1;
            scope = outer;
        }
        Err(Stop::Error)
    }
}

impl Comparison {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}
