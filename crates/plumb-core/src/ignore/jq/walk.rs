//! Evaluates paths such as `.a[.b][]`.

use super::budget::{Flow, Stop};
use super::evaluate::{Evaluation, Item, Out, Scope};
use super::expression::{Expression, Part};
use super::path::slice_segment;
use super::value::{Val, View};

/// A part of a path whose index is known.
enum Step<'v> {
    At(Val<'v>),
    All,
    Slice(Option<Val<'v>>, Option<Val<'v>>),
}

/// Takes paths, each step with whether it is optional.
type OutPath<'o, 'v> = &'o mut dyn FnMut(&[(Step<'v>, bool)]) -> Flow;

impl Evaluation<'_> {
    /// The indexes are evaluated on the input of the whole term, and each combination of them is one path.
    pub(super) fn path<'v>(
        &self,
        from: &'v Expression,
        parts: &'v [(Part, bool)],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: Out<'_, 'v>,
    ) -> Flow {
        self.run(from, scope, input, &mut |item| {
            let mut steps = Vec::with_capacity(parts.len());
            self.combine(parts, scope, input, &mut steps, &mut |steps| self.walk(steps, &item, out))
        })
    }

    /// Each combination of the values of all indexes.
    fn combine<'v>(
        &self,
        parts: &'v [(Part, bool)],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        steps: &mut Vec<(Step<'v>, bool)>,
        out: OutPath<'_, 'v>,
    ) -> Flow {
        let before = steps.len();
        let mut rest = parts;
        while let [(Part::Known(_) | Part::All, optional), ..] = rest {
            let [(part, _), after @ ..] = rest else { break };
            steps.push((part.known(), *optional));
            rest = after;
        }
        let flow = match rest {
            [] => out(steps),
            [(Part::At(index), optional), rest @ ..] => self.values(index, scope, input, &mut |index| {
                self.next_step(Step::At(index), *optional, rest, scope, input, steps, out)
            }),
            [(Part::Slice(from, to), optional), rest @ ..] => {
                self.bound(from.as_ref(), scope, input, &mut |from| {
                    self.bound(to.as_ref(), scope, input, &mut |to| {
                        let slice = Step::Slice(from.clone(), to);
                        self.next_step(slice, *optional, rest, scope, input, steps, out)
                    })
                })
            }
            [(Part::Known(_) | Part::All, _), ..] => Ok(()),
        };
        steps.truncate(before);
        flow
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `combine`, with all that it knows")]
    fn next_step<'v>(
        &self,
        step: Step<'v>,
        optional: bool,
        rest: &'v [(Part, bool)],
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        steps: &mut Vec<(Step<'v>, bool)>,
        out: OutPath<'_, 'v>,
    ) -> Flow {
        steps.push((step, optional));
        let flow = self.budget.deeper(|| self.combine(rest, scope, input, steps, out));
        steps.pop();
        flow
    }

    fn bound<'v>(
        &self,
        bound: Option<&'v Expression>,
        scope: &Scope<'_, 'v>,
        input: &Item<'v>,
        out: &mut dyn FnMut(Option<Val<'v>>) -> Flow,
    ) -> Flow {
        match bound {
            None => out(None),
            Some(bound) => self.values(bound, scope, input, &mut |value| out(Some(value))),
        }
    }

    fn walk<'v>(&self, steps: &[(Step<'v>, bool)], item: &Item<'v>, out: Out<'_, 'v>) -> Flow {
        let mut item = item.clone();
        let mut rest = steps;
        while let [(step, optional), after @ ..] = rest {
            rest = after;
            let next = match step {
                Step::At(index) => self.child(&item, index),
                Step::Slice(from, to) => self.slice(&item, from.as_ref(), to.as_ref()),
                Step::All if matches!(item.value.view(), View::Array(_) | View::Object(_)) => {
                    return self
                        .budget
                        .deeper(|| self.children(&item, &mut |child| self.walk(after, &child, out)));
                }
                Step::All => Err(Stop::Error),
            };
            match next {
                Ok(next) => item = next,
                Err(Stop::Error) if *optional => return Ok(()),
                Err(stop) => return Err(stop),
            }
        }
        out(item)
    }

    fn slice<'v>(
        &self,
        item: &Item<'v>,
        from: Option<&Val<'v>>,
        to: Option<&Val<'v>>,
    ) -> Result<Item<'v>, Stop> {
        let value = item.value.slice(from, to, self.budget)?;
        let path =
            item.path.as_ref().map(|path| path.join(slice_segment(from, to), self.budget)).transpose()?;
        Ok(Item { value, path })
    }
}

impl Part {
    /// The step, for a part whose index is written out.
    fn known(&self) -> Step<'_> {
        match self {
            Self::Known(index) => Step::At(Val::Json(index)),
            Self::All | Self::At(_) | Self::Slice(..) => Step::All,
        }
    }
}
