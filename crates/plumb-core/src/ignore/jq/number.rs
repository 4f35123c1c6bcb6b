//! Numbers: integers are exact, everything else is a float.

use std::cmp::Ordering;
use std::fmt;

#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) fn of_json(number: &serde_json::Number) -> Self {
        number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
    }

    #[expect(clippy::cast_precision_loss, reason = "jq compares integers with floats as floats")]
    fn as_float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    pub(super) fn add(self, other: Self) -> Self {
        self.combine(other, i128::checked_add, |left, right| left + right)
    }

    pub(super) fn subtract(self, other: Self) -> Self {
        self.combine(other, i128::checked_sub, |left, right| left - right)
    }

    pub(super) fn negate(self) -> Self {
        match self {
            Self::Int(int) => int.checked_neg().map_or_else(|| Self::Float(-self.as_float()), Self::Int),
            Self::Float(float) => Self::Float(-float),
        }
    }

    pub(super) fn absolute(self) -> Self {
        match self {
            Self::Int(int) if int < 0 => self.negate(),
            Self::Int(_) => self,
            Self::Float(float) => Self::Float(float.abs()),
        }
    }

    fn combine(
        self,
        other: Self,
        exact: impl Fn(i128, i128) -> Option<i128>,
        float: impl Fn(f64, f64) -> f64,
    ) -> Self {
        if let (Self::Int(left), Self::Int(right)) = (self, other)
            && let Some(int) = exact(left, right)
        {
            return Self::Int(int);
        }
        Self::Float(float(self.as_float(), other.as_float()))
    }

    /// In the order of jq: not-a-number is less than everything, itself included.
    pub(super) fn order(self, other: Self) -> Ordering {
        if let (Self::Int(left), Self::Int(right)) = (self, other) {
            return left.cmp(&right);
        }
        let (left, right) = (self.as_float(), other.as_float());
        if left.is_nan() {
            return Ordering::Less;
        }
        left.partial_cmp(&right).unwrap_or(Ordering::Greater)
    }
}

impl From<usize> for Number {
    fn from(number: usize) -> Self {
        // A position in a list fits.
        i128::try_from(number).map_or(Self::Float(f64::NAN), Self::Int)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => write!(f, "{int}"),
            Self::Float(float) if float.is_nan() => write!(f, "NaN"),
            Self::Float(float) if float.is_infinite() => {
                write!(f, "{}Infinity", if *float < 0.0 { "-" } else { "" })
            }
            Self::Float(float) => match serde_json::Number::from_f64(*float) {
                Some(number) => write!(f, "{number}"),
                None => write!(f, "{float}"),
            },
        }
    }
}
