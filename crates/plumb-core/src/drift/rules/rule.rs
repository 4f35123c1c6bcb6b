//! What a rule is, and what it can answer.

use crate::drift::DriftClass;
use crate::drift::explained::Explained;

/// One rule of an ordered list. `F` is its function: from a case, and what it decides about, to a [`Ruling`].
pub(super) struct Rule<F> {
    pub(super) name: &'static str,
    /// The classes that it can give. Empty: it only asks, or leaves the difference to another rule.
    pub(super) classes: &'static [DriftClass],
    pub(super) decide: F,
}

/// The name of a rule and the classes that it can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// In kebab case, unique among all rules.
    pub name: &'static str,
    /// Empty: the rule gives no class.
    pub classes: &'static [DriftClass],
}

impl<F> Rule<F> {
    pub(super) fn info(&self) -> RuleInfo {
        RuleInfo { name: self.name, classes: self.classes }
    }
}

/// What a rule says about one difference.
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for a moment; a box would cost an allocation per difference"
)]
pub(super) enum Ruling {
    /// It does not decide: the next rule is tried. It may have noted a question for the next round.
    Pass,
    /// It cannot decide before a question is answered; the question is noted in the case.
    Ask,
    /// There is no finding for this difference: it means nothing, or one finding for the whole object covers it.
    Silent,
    /// The difference, with its class.
    Is(Explained),
}

impl From<Option<Explained>> for Ruling {
    fn from(explained: Option<Explained>) -> Self {
        explained.map_or(Self::Pass, Self::Is)
    }
}

impl Ruling {
    /// The explanation, if there is one. For the end of the last list.
    pub(super) fn explained(self) -> Option<Explained> {
        match self {
            Self::Is(explained) => Some(explained),
            Self::Pass | Self::Ask | Self::Silent => None,
        }
    }

    /// Tries the next list if this one did not decide.
    pub(super) fn or_else(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Pass => next(),
            ruling @ (Self::Ask | Self::Silent | Self::Is(_)) => ruling,
        }
    }
}

/// The answer of the first rule that does not pass, with the name of the rule.
pub(super) fn first_ruling<F: Copy>(rules: &[Rule<F>], decide: impl Fn(F) -> Ruling) -> Ruling {
    for rule in rules {
        match decide(rule.decide) {
            Ruling::Pass => {}
            Ruling::Is(explained) => return Ruling::Is(explained.decided_by(rule.name)),
            ruling @ (Ruling::Ask | Ruling::Silent) => return ruling,
        }
    }
    Ruling::Pass
}

/// Puts the name of the rule on its explanations.
pub(in crate::drift) fn named(
    name: &'static str,
    explained: impl IntoIterator<Item = Explained>,
) -> Vec<Explained> {
    explained.into_iter().map(|explained| explained.decided_by(name)).collect()
}
