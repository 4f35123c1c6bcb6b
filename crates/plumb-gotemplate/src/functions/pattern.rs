//! Regular expressions in Go's syntax, rewritten for the crate `regex`.
//!
//! The two differ where users notice: in Go `\d`, `\w`, `\s` and `\b` mean ASCII, a brace that is no repetition is a
//! character, brackets and `&&` inside a class are characters, and a repetition of a repetition is an error.

use std::iter::Peekable;
use std::str::CharIndices;

/// Most repetitions that Go accepts.
const MAX_REPEAT: u32 = 1000;
const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = "\\t\\n\\x0C\\r ";

/// An expression for the crate `regex`, and about how many states its automaton has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) weight: u64,
}

/// Rewrites an expression. The error is what Go says about it.
pub(super) fn rewrite(source: &str) -> Result<Pattern, String> {
    let mut rewriting = Rewriting {
        source,
        rest: source.char_indices().peekable(),
        out: String::with_capacity(source.len() + 16),
        groups: vec![Group::default()],
        repeated_at: None,
        can_repeat: false,
    };
    rewriting.run()?;
    let [group] = rewriting.groups.as_slice() else { return Err(format!("missing closing ): `{source}`")) };
    Ok(Pattern { weight: group.weight(), text: rewriting.out })
}

/// What is known of an open group.
#[derive(Default)]
struct Group {
    before: u64,
    last: u64,
}

impl Group {
    fn weight(&self) -> u64 {
        self.before.saturating_add(self.last)
    }
}

struct Rewriting<'a> {
    source: &'a str,
    rest: Peekable<CharIndices<'a>>,
    out: String,
    groups: Vec<Group>,
    /// Where the repetition before this place starts.
    repeated_at: Option<usize>,
    /// True after something that can be repeated.
    can_repeat: bool,
}

impl Rewriting<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some((at, character)) = self.rest.next() {
            match character {
                '\\' => self.escape(at)?,
                '[' => self.class(at)?,
                '(' => self.open(at)?,
                ')' => self.close()?,
                '|' => {
                    self.out.push('|');
                    self.can_repeat = false;
                    self.repeated_at = None;
                }
                '*' | '+' | '?' => self.repeat(at, at + 1, 2)?,
                '{' => match repetition(&self.source[at..]) {
                    Some((length, low, high)) => self.count(at, length, low, high)?,
                    None => self.literal('{'),
                },
                '.' => self.atom(".", 10),
                '^' | '$' => self.atom(character.encode_utf8(&mut [0; 4]), 1),
                other => self.literal(other),
            }
        }
        Ok(())
    }

    /// Appends something that can be repeated.
    fn atom(&mut self, text: &str, weight: u64) {
        self.out.push_str(text);
        if let Some(group) = self.groups.last_mut() {
            group.before = group.weight();
            group.last = weight;
        }
        self.can_repeat = true;
        self.repeated_at = None;
    }

    fn literal(&mut self, character: char) {
        self.atom(&escaped(character), 1);
    }

    fn repeat(&mut self, at: usize, end: usize, times: u64) -> Result<(), String> {
        let written = &self.source[at..end];
        if let Some(before) = self.repeated_at {
            return Err(format!("invalid nested repetition operator: `{}`", &self.source[before..end]));
        }
        if !self.can_repeat {
            return Err(format!("missing argument to repetition operator: `{written}`"));
        }
        self.out.push_str(written);
        if self.rest.next_if(|(_, next)| *next == '?').is_some() {
            self.out.push('?');
        }
        if let Some(group) = self.groups.last_mut() {
            group.last = group.last.saturating_mul(times);
        }
        self.repeated_at = Some(at);
        Ok(())
    }

    fn count(&mut self, at: usize, length: usize, low: u32, high: Option<u32>) -> Result<(), String> {
        let end = at + length;
        for _ in 1..length {
            self.rest.next();
        }
        if low > MAX_REPEAT || high.is_some_and(|high| high > MAX_REPEAT || high < low) {
            return Err(format!("invalid repeat count: `{}`", &self.source[at..end]));
        }
        self.repeat(at, end, u64::from(high.unwrap_or(low)).max(1))
    }

    fn open(&mut self, at: usize) -> Result<(), String> {
        let after = &self.source[at + 1..];
        self.groups.push(Group::default());
        self.can_repeat = false;
        self.repeated_at = None;
        self.out.push('(');
        if !after.starts_with('?') {
            return Ok(());
        }
        let is_name = after.starts_with("?P<") || after.starts_with("?<");
        if is_name && !after.starts_with("?<=") && !after.starts_with("?<!") {
            return self.named(at, after);
        }
        let length = after.find([')', ':']).ok_or_else(|| format!("missing closing ): `{}`", self.source))?;
        let flags = &after[1..length];
        if let Some(bad) = flags.find(|flag| !"imsU-".contains(flag)) {
            let shown = after.get(..bad + 2).unwrap_or(after);
            return Err(format!("invalid or unsupported Perl syntax: `({shown}`"));
        }
        if flags.is_empty() && after[length..].starts_with(')') {
            return Err("missing argument to repetition operator: `?`".to_owned());
        }
        for _ in 0..=length {
            let next = self.rest.next();
            self.out.extend(next.map(|(_, character)| character));
        }
        if after[length..].starts_with(')') {
            // Flags for what follows; no group.
            self.groups.pop();
        }
        Ok(())
    }

    fn named(&mut self, at: usize, after: &str) -> Result<(), String> {
        let start = after.find('<').map_or(0, |at| at + 1);
        let end =
            after.find('>').ok_or_else(|| format!("invalid named capture: `{}`", &self.source[at..]))?;
        let name = &after[start..end];
        if name.is_empty()
            || !name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        {
            return Err(format!("invalid named capture: `({}`", &after[..=end]));
        }
        for _ in after[..=end].chars() {
            self.rest.next();
        }
        self.out.push_str("?P<");
        // Go allows a name that starts with a digit.
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            self.out.push('_');
        }
        self.out.push_str(name);
        self.out.push('>');
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if self.groups.len() < 2 {
            return Err(format!("unexpected ): `{}`", self.source));
        }
        let weight = self.groups.pop().map_or(0, |group| group.weight());
        self.atom(")", weight.saturating_add(2));
        Ok(())
    }

    fn escape(&mut self, at: usize) -> Result<(), String> {
        let Some((_, character)) = self.rest.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match character {
            'd' => self.atom(&format!("[{DIGIT}]"), 2),
            'D' => self.atom(&format!("[^{DIGIT}]"), 16),
            'w' => self.atom(&format!("[{WORD}]"), 4),
            'W' => self.atom(&format!("[^{WORD}]"), 16),
            's' => self.atom(&format!("[{SPACE}]"), 4),
            'S' => self.atom(&format!("[^{SPACE}]"), 16),
            'b' => self.atom("(?-u:\\b)", 2),
            'B' => self.atom("(?-u:\\B)", 2),
            'A' | 'z' => self.atom(&format!("\\{character}"), 1),
            'Q' => {
                let inside = &self.source[at + 2..];
                let inside = inside.find("\\E").map_or(inside, |end| &inside[..end]);
                for literal in inside.chars() {
                    self.rest.next();
                    self.literal(literal);
                }
            }
            'E' => {}
            'p' | 'P' => {
                let class = self.unicode_class(at, character)?;
                self.atom(&class, 300);
            }
            _ => {
                let literal = self.escaped_character(at, character)?;
                self.literal(literal);
            }
        }
        Ok(())
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`.
    fn unicode_class(&mut self, at: usize, letter: char) -> Result<String, String> {
        let after = &self.source[at + 2..];
        let length = if after.starts_with('{') {
            after.find('}').map(|end| end + 1)
        } else {
            after.chars().next().map(char::len_utf8)
        };
        let length =
            length.ok_or_else(|| format!("invalid character class range: `{}`", &self.source[at..]))?;
        for _ in after[..length].chars() {
            self.rest.next();
        }
        let name = after[..length].trim_start_matches('{').trim_end_matches('}');
        let (name, is_negated) =
            name.strip_prefix('^').map_or((name, letter == 'P'), |name| (name, letter == 'p'));
        let rewritten = format!("\\{}{{{name}}}", if is_negated { 'P' } else { 'p' });
        if regex::Regex::new(&rewritten).is_err() {
            return Err(format!("invalid character class range: `{}`", &self.source[at..at + 2 + length]));
        }
        Ok(rewritten)
    }

    /// The character that an escape sequence means.
    fn escaped_character(&mut self, at: usize, character: char) -> Result<char, String> {
        let invalid = |end: usize| {
            format!("invalid escape sequence: `{}`", self.source.get(at..end).unwrap_or_default())
        };
        let end = at + 1 + character.len_utf8();
        let plain = match character {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => return self.hexadecimal(at),
            '0'..='7' => {
                let more = self.source[end..].chars().take(2).take_while(|digit| digit.is_digit(8)).count();
                if character != '0' && more == 0 {
                    return Err(invalid(end));
                }
                for _ in 0..more {
                    self.rest.next();
                }
                let code =
                    u32::from_str_radix(&self.source[at + 1..end + more], 8).ok().and_then(char::from_u32);
                return code.ok_or_else(|| invalid(end));
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => other,
            _ => return Err(invalid(end)),
        };
        Ok(plain)
    }

    fn hexadecimal(&mut self, at: usize) -> Result<char, String> {
        let after = &self.source[at + 2..];
        let invalid = |length: usize| {
            let end = at + 2 + length.min(after.len());
            format!("invalid escape sequence: `{}`", self.source.get(at..end).unwrap_or(self.source))
        };
        let (digits, length) = match after.strip_prefix('{') {
            Some(inside) => match inside.find('}') {
                Some(end) => (&inside[..end], end + 2),
                None => return Err(invalid(1)),
            },
            None => (after.get(..2).ok_or_else(|| invalid(after.len()))?, 2),
        };
        let code =
            u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or_else(|| invalid(length))?;
        for _ in 0..length {
            self.rest.next();
        }
        Ok(code)
    }

    fn class(&mut self, at: usize) -> Result<(), String> {
        let missing = format!("missing closing ]: `{}`", &self.source[at..]);
        let mut class = String::from("[");
        let mut weight = 4;
        if self.rest.next_if(|(_, next)| *next == '^').is_some() {
            class.push('^');
            weight = 16;
        }
        let mut is_first = true;
        loop {
            let Some((here, character)) = self.rest.next() else { return Err(missing) };
            match character {
                ']' if !is_first => break,
                '[' if self.source[here..].starts_with("[:") && self.source[here..].contains(":]") => {
                    class.push_str(&self.posix(here)?);
                    weight += 4;
                }
                '\\' if self.source[here + 1..].starts_with(['d', 'D', 'w', 'W', 's', 'S', 'p', 'P']) => {
                    let letter = self.rest.next().map_or('d', |(_, letter)| letter);
                    let inner = match letter {
                        'd' => DIGIT.to_owned(),
                        'w' => WORD.to_owned(),
                        's' => SPACE.to_owned(),
                        'D' => format!("[^{DIGIT}]"),
                        'W' => format!("[^{WORD}]"),
                        'S' => format!("[^{SPACE}]"),
                        _ => self.unicode_class(here, letter)?,
                    };
                    class.push_str(&inner);
                    weight += if matches!(letter, 'p' | 'P') { 300 } else { 8 };
                }
                _ => {
                    class.push_str(&self.range(here, character, &missing)?);
                    weight += 2;
                }
            }
            is_first = false;
        }
        class.push(']');
        self.atom(&class, weight);
        Ok(())
    }

    /// `[:alpha:]` inside a class.
    fn posix(&mut self, at: usize) -> Result<String, String> {
        const KNOWN: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        let length = self.source[at..].find(":]").map_or(2, |end| end + 2);
        let written = &self.source[at..at + length];
        let name = written.trim_start_matches("[:").trim_end_matches(":]");
        if !KNOWN.contains(&name.trim_start_matches('^')) {
            return Err(format!("invalid character class range: `{written}`"));
        }
        for _ in 1..written.chars().count() {
            self.rest.next();
        }
        Ok(written.to_owned())
    }

    /// A character of a class, or a range that starts with it.
    fn range(&mut self, at: usize, first: char, missing: &str) -> Result<String, String> {
        let low = self.class_character(at, first, missing)?;
        let mut ahead = self.rest.clone();
        let is_range = ahead.next().is_some_and(|(_, next)| next == '-')
            && ahead.next().is_some_and(|(_, next)| next != ']');
        if !is_range {
            return Ok(escaped(low));
        }
        self.rest.next();
        let Some((here, next)) = self.rest.next() else { return Err(missing.to_owned()) };
        let high = self.class_character(here, next, missing)?;
        if high < low {
            let end = self.rest.peek().map_or(self.source.len(), |(end, _)| *end);
            return Err(format!("invalid character class range: `{}`", &self.source[at..end]));
        }
        Ok(format!("{}-{}", escaped(low), escaped(high)))
    }

    fn class_character(&mut self, at: usize, character: char, missing: &str) -> Result<char, String> {
        if character != '\\' {
            return Ok(character);
        }
        let Some((_, next)) = self.rest.next() else { return Err(missing.to_owned()) };
        self.escaped_character(at, next)
    }
}

/// A character that means itself, inside a class or outside.
fn escaped(character: char) -> String {
    if character.is_alphanumeric() || matches!(character, ' ' | '_') {
        return character.to_string();
    }
    format!("\\x{{{:X}}}", u32::from(character))
}

/// Length and bounds of a text that starts as a repetition: `{2}`, `{2,}`, `{2,3}`.
fn repetition(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let inside = text.strip_prefix('{')?;
    let end = inside.find('}')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (low, high) = match inside[..end].split_once(',') {
        None => (number(&inside[..end])?, Some(number(&inside[..end])?)),
        Some((low, "")) => (number(low)?, None),
        Some((low, high)) => (number(low)?, Some(number(high)?)),
    };
    Some((end + 2, low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go's syntax on the left, what the crate reads on the right, or Go's words.
    fn check(source: &str, expected: &str) {
        let found = rewrite(source).map_or_else(
            |error| error,
            |pattern| {
                assert!(regex::Regex::new(&pattern.text).is_ok(), "{source} became {}", pattern.text);
                pattern.text
            },
        );
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn classes_mean_ascii() {
        check(r"\d+\w?\s*", "[0-9]+[0-9A-Za-z_]?[\\t\\n\\x0C\\r ]*");
        check(r"[\d\W]", "[0-9[^0-9A-Za-z_]]");
        check(r"\bx\B", r"(?-u:\b)x(?-u:\B)");
    }

    #[test]
    fn what_is_no_syntax_in_go_is_a_character() {
        check("{a}", r"\x{7B}a\x{7D}");
        check("a{,2}", r"a\x{7B}\x{2C}2\x{7D}");
        check("[[a&&b~~c]", r"[\x{5B}a\x{26}\x{26}b\x{7E}\x{7E}c]");
        check("[]a]", r"[\x{5D}a]");
        check("[a-c-e]", r"[a-c\x{2D}e]");
        check(r"\Qa.b\E+", r"a\x{2E}b+");
        check(r"\<\>", r"\x{3C}\x{3E}");
    }

    #[test]
    fn what_is_an_error_in_go_is_one() {
        check("a**", "invalid nested repetition operator: `**`");
        check("*a", "missing argument to repetition operator: `*`");
        check("a{2,1}", "invalid repeat count: `{2,1}`");
        check("a{1001}", "invalid repeat count: `{1001}`");
        check("(a", "missing closing ): `(a`");
        check("a)", "unexpected ): `a)`");
        check("[a", "missing closing ]: `[a`");
        check("[z-a]", "invalid character class range: `z-a`");
        check("a(?=b)", "invalid or unsupported Perl syntax: `(?=`");
        check("(?<!b)", "invalid or unsupported Perl syntax: `(?<`");
        check(r"\1", r"invalid escape sequence: `\1`");
        check("a\\", "trailing backslash at end of expression: ``");
    }

    #[test]
    fn repetitions_weigh_what_they_repeat() {
        let weight = |source: &str| rewrite(source).map_or(0, |pattern| pattern.weight);
        assert_eq!(weight("abc"), 3);
        assert_eq!(weight("a{100}"), 100);
        assert_eq!(weight("((a{100}){100}){10}"), ((100 + 2) * 100 + 2) * 10);
        assert!(weight(r"[0-9]{1,3}\.[0-9]{1,3}") < 100);
    }
}
