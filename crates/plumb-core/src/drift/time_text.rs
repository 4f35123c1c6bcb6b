//! Texts that a chart prints from the time.

/// Do these values of a field differ in a date, and in nothing else? Both have the same marks and words around it. A number
/// alone is a time only if the name of the field says so: any other number may be a level or a limit.
pub(in crate::drift) fn differ_in_time(field: &str, desired: &str, live: &str) -> bool {
    let (desired, live) = (tokens(desired), tokens(live));
    if desired.len() != live.len() {
        return false;
    }
    let pairs: Vec<(Token<'_>, Token<'_>)> = desired.into_iter().zip(live).collect();
    let mut runs = pairs.split(|(desired, live)| !desired.is_of_date() || !live.is_of_date());
    let outside = pairs.iter().filter(|(desired, live)| !desired.is_of_date() || !live.is_of_date());
    let is_same_outside = outside.into_iter().all(|(desired, live)| desired == live);
    is_same_outside
        && runs.all(|run| is_same(run) || is_date(run) || (is_named_after_time(field) && is_part(run)))
}

/// Are these two hashes of one kind, in lower-case hexadecimal?
pub(in crate::drift) fn are_hashes(desired: &str, live: &str) -> bool {
    const SHORTEST: usize = 8;
    let is_hash = |text: &str| {
        text.len() >= SHORTEST
            && text.chars().all(|c| c.is_ascii_digit() || matches!(c, 'a'..='f'))
            && text.chars().any(|c| c.is_ascii_alphabetic())
    };
    desired.len() == live.len() && is_hash(desired) && is_hash(live)
}

/// A part of a text: a number, a word, or one other character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Number(&'t str),
    Word(&'t str),
    Mark(char),
}

type Pair<'t> = (Token<'t>, Token<'t>);

impl Token<'_> {
    /// May it be part of a date: a number, the name of a day or month, what stands between them?
    fn is_of_date(self) -> bool {
        match self {
            Self::Number(_) => true,
            Self::Word(word) => is_of_calendar(word) || matches!(word, "T" | "Z" | "AM" | "PM" | "am" | "pm"),
            Self::Mark(mark) => matches!(mark, '-' | '/' | ':' | '.' | ',' | '+' | '_' | ' '),
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let kind = |c: char| (c.is_ascii_digit(), c.is_alphabetic());
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (is_digit, is_letter) = kind(first);
        let is_run = is_digit || is_letter;
        let end = rest.char_indices().skip(1).find(|(_, c)| !is_run || kind(*c) != kind(first));
        let (token, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        tokens.push(match (is_digit, is_letter) {
            (true, _) => Token::Number(token),
            (false, true) => Token::Word(token),
            (false, false) => Token::Mark(first),
        });
        rest = after;
    }
    tokens
}

/// The name of a day or of a month, whole or its first three letters.
fn is_of_calendar(word: &str) -> bool {
    const NAMES: [&str; 19] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_ascii_lowercase();
    NAMES.iter().any(|name| word == *name || name.get(..3) == Some(&word))
}

fn is_same(run: &[Pair<'_>]) -> bool {
    run.iter().all(|(desired, live)| desired == live)
}

/// A date on both sides: a year, or the name of a day or month, with plausible numbers.
fn is_date(run: &[Pair<'_>]) -> bool {
    let is_anchor = |(desired, live): &Pair<'_>| match (desired, live) {
        (Token::Number(desired), Token::Number(live)) => is_dated(desired, live),
        (Token::Word(desired), Token::Word(live)) => is_of_calendar(desired) && is_of_calendar(live),
        _ => false,
    };
    run.iter().any(is_anchor) && is_part(run)
}

/// Do they differ only in what may be a part of a date?
fn is_part(run: &[Pair<'_>]) -> bool {
    run.iter().all(|(desired, live)| match (desired, live) {
        _ if desired == live => true,
        (Token::Number(desired), Token::Number(live)) => {
            is_dated(desired, live) || (is_small(desired) && is_small(live))
        }
        (Token::Word(_), Token::Word(_)) => true,
        _ => false,
    })
}

/// A day, a month, an hour, a minute, a second.
fn is_small(number: &str) -> bool {
    number.len() <= 2 && number.parse().is_ok_and(|number: u8| number < 60)
}

/// Does each begin with a year, as `2026`, `202611`, `20261117` or with the time of the day? What is in the cluster was
/// rendered earlier, and not long ago.
fn is_dated(desired: &str, live: &str) -> bool {
    let year = |number: &str| {
        let year: u16 = number.get(..4)?.parse().ok()?;
        let rest = number.get(4..)?;
        let pair = |at: usize| rest.get(at..at + 2).and_then(|pair| pair.parse::<u8>().ok());
        let is_whole = matches!(rest.len(), 0 | 2 | 4 | 8 | 10);
        let is_plausible = [12, 31, 23, 59, 59]
            .iter()
            .enumerate()
            .all(|(at, most)| pair(2 * at).is_none_or(|number| number <= *most));
        (is_whole && is_plausible && (1970..2100).contains(&year)).then_some(year)
    };
    desired.len() == live.len()
        && year(desired).zip(year(live)).is_some_and(|(desired, live)| desired == live || desired == live + 1)
}

/// Does the name say that the field holds a part of a date?
fn is_named_after_time(field: &str) -> bool {
    const ENDINGS: [&str; 5] = ["day", "date", "month", "week", "timestamp"];
    let field = field.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| field.ends_with(ending)) && !field.ends_with("update")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_told_from_any_other_value() {
        for (field, desired, live) in [
            ("day", "16", "15"),
            ("x", "Tue", "Mon"),
            ("x", "2026-11-17", "2026-11-16"),
            ("x", "2027-01-01", "2026-12-31"),
            ("x", "2020-02-29T00:00:00Z", "2020-02-28T23:59:59Z"),
            ("x", "backup-20261117", "backup-20261116"),
            ("x", "17 Nov 26 10:02 UTC", "16 Nov 26 09:00 UTC"),
            ("x", "Tuesday, 17 November", "Monday, 16 November"),
            ("x", "day_2026_11_17", "day_2026_11_16"),
            ("build-date", "17", "9"),
        ] {
            assert!(differ_in_time(field, desired, live), "{field} {desired} {live}");
        }
        for (field, desired, live) in [
            ("level", "info", "off"),
            ("level", "5", "1"),
            ("timeout", "30", "5"),
            ("update", "1", "2"),
            ("day", "16", "160"),
            ("day", "16", "evil"),
            ("day", "16", "99"),
            ("cidr", "10.0.0.0/8", "0.0.0.0/0"),
            ("replicas", "3", "0"),
            ("schedule", "0 3 * * *", "0 4 * * *"),
            ("x", "2026-11-17", "2099-11-16"),
            ("x", "2026-11-17", "2026-11-16 evil"),
            ("x", "good-2026-11-17", "evil-2026-11-17"),
            ("x", "good-2026-11-17", "evil-2026-11-16"),
            ("x", "<secret value 1>", "<secret value 2>"),
            ("x", "v1.2.3", "v1.0.0"),
            ("x", "", "a"),
            ("x", "é", "è"),
        ] {
            assert!(!differ_in_time(field, desired, live), "{field} {desired} {live}");
        }
    }

    #[test]
    fn a_hash_is_told_from_a_word() {
        assert!(are_hashes("d41d8cd98f00b204", "9800998ecf8427e0"));
        for (desired, live) in
            [("d41d8cd9", "d41d8cd98f"), ("d41d8cd9", "evil0000"), ("abc", "def"), ("10000000", "20000000")]
        {
            assert!(!are_hashes(desired, live), "{desired} {live}");
        }
    }
}
