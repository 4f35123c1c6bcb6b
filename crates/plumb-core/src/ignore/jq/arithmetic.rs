//! `+` and `-`, charged by the size of what they build.

use std::rc::Rc;

use super::budget::{Budget, Stop};
use super::value::{Val, View};

pub(super) fn add<'v>(left: Val<'v>, right: Val<'v>, budget: &Budget) -> Result<Val<'v>, Stop> {
    let sum = match (left.view(), right.view()) {
        (View::Null, _) => None,
        (_, View::Null) => return Ok(left),
        (View::Number(left), View::Number(right)) => Some(Val::Number(left.add(right))),
        (View::Text(left), View::Text(right)) => {
            budget.build(left.len().saturating_add(right.len()))?;
            Some(Val::Text(format!("{left}{right}").into()))
        }
        (View::Array(left), View::Array(right)) => {
            let mut items = left.copied(right.len(), budget)?;
            items.extend((0..right.len()).filter_map(|index| right.get(index)));
            Some(Val::Array(Rc::new(items)))
        }
        (View::Object(left), View::Object(right)) => {
            let mut map = left.copied(right.len(), budget)?;
            map.extend(right.copied(0, budget)?);
            Some(Val::Object(Rc::new(map)))
        }
        _ => return Err(Stop::Error),
    };
    Ok(sum.unwrap_or(right))
}

pub(super) fn subtract<'v>(left: &Val<'v>, right: &Val<'v>, budget: &Budget) -> Result<Val<'v>, Stop> {
    match (left.view(), right.view()) {
        (View::Number(left), View::Number(right)) => Ok(Val::Number(left.subtract(right))),
        (View::Array(left), View::Array(right)) => {
            let mut items = Vec::new();
            for item in left.copied(0, budget)? {
                let mut is_taken = false;
                for index in 0..right.len() {
                    let Some(other) = right.get(index) else { break };
                    is_taken = item.compare(&other, budget)?.is_eq();
                    if is_taken {
                        break;
                    }
                }
                if !is_taken {
                    items.push(item);
                }
            }
            Ok(Val::Array(Rc::new(items)))
        }
        _ => Err(Stop::Error),
    }
}
