//! Go's `fmt`: `Sprint`, `Sprintln` and `Sprintf`.

use crate::budget::{Fault, MAX_VALUE_DEPTH, too_deep};
use crate::number;
use crate::value::{Items, Scope, Value};
use crate::version::complete;

/// Widest column and highest precision that a format may ask for.
const MAX_WIDTH: usize = 1_000_000;

/// The text of one value, as `%v` prints it.
pub fn print_value(scope: &Scope, value: &Value) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer { scope, out: Vec::new() };
    printer.value(value, &Spec::plain('v'), 0)?;
    scope.allocate(printer.out.len())?;
    Ok(printer.out)
}

/// `fmt.Sprint`: a blank between two operands of which neither is a string.
pub fn sprint(scope: &Scope, values: &[Value]) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer { scope, out: Vec::new() };
    let mut before_is_text = true;
    for (index, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Text(_));
        if index > 0 && !is_text && !before_is_text {
            printer.out.push(b' ');
        }
        printer.value(value, &Spec::plain('v'), 0)?;
        before_is_text = is_text;
    }
    scope.allocate(printer.out.len())?;
    Ok(printer.out)
}

/// `fmt.Sprintln`: blanks between all operands, and a line break.
pub fn sprintln(scope: &Scope, values: &[Value]) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer { scope, out: Vec::new() };
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.out.push(b' ');
        }
        printer.value(value, &Spec::plain('v'), 0)?;
    }
    printer.out.push(b'\n');
    scope.allocate(printer.out.len())?;
    Ok(printer.out)
}

/// `fmt.Sprintf`.
pub fn sprintf(scope: &Scope, format: &[u8], values: &[Value]) -> Result<Vec<u8>, Fault> {
    let format = String::from_utf8_lossy(format).into_owned();
    let mut run = Formatting {
        printer: Printer { scope, out: Vec::new() },
        format: format.chars().collect(),
        at: 0,
        values,
        next: 0,
        reordered: false,
        good_index: true,
    };
    run.run()?;
    scope.allocate(run.printer.out.len())?;
    Ok(run.printer.out)
}

/// One directive of a format.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a directive are independent")]
struct Spec {
    verb: char,
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Spec {
    fn plain(verb: char) -> Self {
        Self { verb, ..Self::default() }
    }

    fn go_syntax(&self) -> bool {
        self.verb == 'v' && self.sharp
    }
}

/// The walk over a format.
struct Formatting<'a> {
    printer: Printer<'a>,
    format: Vec<char>,
    at: usize,
    values: &'a [Value],
    next: usize,
    reordered: bool,
    good_index: bool,
}

impl Formatting<'_> {
    fn peek(&self) -> Option<char> {
        self.format.get(self.at).copied()
    }

    fn run(&mut self) -> Result<(), Fault> {
        while let Some(character) = self.peek() {
            self.printer.scope.step(1)?;
            self.at += 1;
            if character == '%' {
                self.directive()?;
            } else {
                self.printer.push_char(character);
            }
        }
        if !self.reordered && self.next < self.values.len() {
            self.printer.push("%!(EXTRA ");
            for (index, value) in self.values[self.next..].iter().enumerate() {
                if index > 0 {
                    self.printer.push(", ");
                }
                if matches!(value, Value::Nil) {
                    self.printer.push("<nil>");
                } else {
                    self.printer.push(value.type_name());
                    self.printer.push("=");
                    self.printer.value(value, &Spec::plain('v'), 0)?;
                }
            }
            self.printer.push(")");
        }
        Ok(())
    }

    fn directive(&mut self) -> Result<(), Fault> {
        let mut spec = Spec::default();
        self.good_index = true;
        while let Some(flag) = self.peek() {
            match flag {
                '+' => spec.plus = true,
                '-' => spec.minus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                '0' => spec.zero = true,
                _ => break,
            }
            self.at += 1;
        }
        self.argument_index()?;
        if self.peek() == Some('*') {
            self.at += 1;
            match self.star() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.width = Some(usize::try_from(width.unsigned_abs()).unwrap_or(0));
                }
                None => self.printer.push("%!(BADWIDTH)"),
            }
        } else {
            spec.width = self.number();
        }
        if self.peek() == Some('.') {
            self.at += 1;
            self.argument_index()?;
            if self.peek() == Some('*') {
                self.at += 1;
                match self.star() {
                    Some(precision) if precision >= 0 => spec.precision = usize::try_from(precision).ok(),
                    Some(_) => {}
                    None => self.printer.push("%!(BADPREC)"),
                }
            } else {
                spec.precision = Some(self.number().unwrap_or(0));
            }
        }
        self.argument_index()?;
        self.verb(spec)
    }

    fn verb(&mut self, mut spec: Spec) -> Result<(), Fault> {
        let Some(verb) = self.peek() else {
            self.printer.push("%!(NOVERB)");
            return Ok(());
        };
        self.at += 1;
        spec.verb = verb;
        if verb == '%' {
            self.printer.push("%");
            return Ok(());
        }
        if !self.good_index {
            self.printer.push(&format!("%!{verb}(BADINDEX)"));
            return Ok(());
        }
        let Some(value) = self.values.get(self.next) else {
            self.printer.push(&format!("%!{verb}(MISSING)"));
            return Ok(());
        };
        self.next += 1;
        self.printer.value(value, &spec, 0)
    }

    /// A number in the format; one that is too large counts as absent.
    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|character| character.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.format[start..self.at].iter().collect();
        digits.parse().ok().filter(|number| *number <= MAX_WIDTH)
    }

    /// The width or precision that the next operand gives.
    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let number = i64::try_from(value.as_integer()?).ok()?;
        (number.unsigned_abs() <= MAX_WIDTH as u64).then_some(number)
    }

    /// `[2]`: the number of the operand to use.
    fn argument_index(&mut self) -> Result<(), Fault> {
        if self.peek() != Some('[') {
            return Ok(());
        }
        self.reordered = true;
        let Some(length) = self.format[self.at..].iter().position(|character| *character == ']') else {
            self.printer.scope.step((self.format.len() - self.at) / 16)?;
            self.good_index = false;
            self.at += 1;
            return Ok(());
        };
        let inside: String = self.format[self.at + 1..self.at + length].iter().collect();
        self.at += length + 1;
        match inside.parse::<usize>() {
            Ok(number) if number >= 1 && number <= self.values.len() => self.next = number - 1,
            _ => self.good_index = false,
        }
        Ok(())
    }
}

struct Printer<'a> {
    scope: &'a Scope,
    out: Vec<u8>,
}

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn push_char(&mut self, character: char) {
        self.push(character.encode_utf8(&mut [0; 4]));
    }

    /// Prints one value. Lists and maps apply the directive to their items.
    fn value(&mut self, value: &Value, spec: &Spec, depth: usize) -> Result<(), Fault> {
        self.scope.step(1)?;
        if depth > MAX_VALUE_DEPTH {
            return Err(too_deep());
        }
        // What is printed counts while it grows: a list can hold one long text many times.
        self.scope.check_growth(self.out.len())?;
        if spec.verb == 'T' {
            self.pad(value.type_name().as_bytes(), spec);
            return Ok(());
        }
        match value {
            Value::Nil if depth > 0 || spec.verb == 'v' => self.pad(b"<nil>", spec),
            Value::Nil => self.push(&format!("%!{}(<nil>)", spec.verb)),
            Value::Bool(truth) if matches!(spec.verb, 't' | 'v') => {
                self.pad(if *truth { b"true" } else { b"false" }, spec);
            }
            Value::Int(_) | Value::Int64(_) | Value::Uint64(_) | Value::Byte(_) => {
                return self.integer(value, value.as_integer().unwrap_or_default(), spec);
            }
            Value::Float(number) => return self.float(value, *number, spec),
            Value::Text(text) => return self.text(value, text, spec),
            Value::Duration(nanoseconds) if matches!(spec.verb, 's' | 'v' | 'q' | 'x' | 'X') => {
                let shown = crate::time::duration_text(*nanoseconds);
                return self.text(value, shown.as_bytes(), spec);
            }
            Value::Duration(nanoseconds) => return self.integer(value, i128::from(*nanoseconds), spec),
            Value::Time(time) => {
                let shown = crate::time::go_text(time);
                return self.text(value, shown.as_bytes(), spec);
            }
            Value::Version(version) => return self.text(value, complete(version).as_bytes(), spec),
            Value::List(list) if list.is_nil && spec.go_syntax() => {
                self.push(&format!("{}(nil)", value.type_name()));
            }
            Value::List(list) => return self.list(value, list.of, &list.items, spec, depth),
            Value::Map(map) => {
                let entries: Vec<(String, Value)> =
                    map.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                return self.map(value, &entries, spec, depth);
            }
            Value::Raw(raw) => {
                // A struct with one field, a slice of bytes.
                self.scope.step(raw.len())?;
                let bytes: Vec<String> = raw.bytes().map(|byte| byte.to_string()).collect();
                self.push(&format!("{{[{}]}}", bytes.join(" ")));
            }
            Value::Bool(_) => return self.bad_verb(value, spec),
        }
        Ok(())
    }

    fn list(
        &mut self,
        value: &Value,
        of: Items,
        items: &[Value],
        spec: &Spec,
        depth: usize,
    ) -> Result<(), Fault> {
        if spec.go_syntax() {
            self.push(value.type_name());
            self.push("{");
        } else {
            self.push("[");
        }
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(if spec.go_syntax() { ", " } else { " " });
            }
            // A nil among typed items cannot occur; among any items it prints as <nil>.
            debug_assert!(of == Items::Any || !matches!(item, Value::Nil));
            self.value(item, spec, depth + 1)?;
        }
        self.push(if spec.go_syntax() { "}" } else { "]" });
        Ok(())
    }

    fn map(
        &mut self,
        value: &Value,
        entries: &[(String, Value)],
        spec: &Spec,
        depth: usize,
    ) -> Result<(), Fault> {
        if spec.go_syntax() {
            self.push(value.type_name());
            self.push("{");
        } else {
            self.push("map[");
        }
        for (index, (key, item)) in entries.iter().enumerate() {
            if index > 0 {
                self.push(if spec.go_syntax() { ", " } else { " " });
            }
            self.value(&Value::text(key), spec, depth + 1)?;
            self.push(":");
            self.value(item, spec, depth + 1)?;
        }
        self.push(if spec.go_syntax() { "}" } else { "]" });
        Ok(())
    }

    fn bad_verb(&mut self, value: &Value, spec: &Spec) -> Result<(), Fault> {
        self.push(&format!("%!{}({}=", spec.verb, value.type_name()));
        self.value(value, &Spec::plain('v'), 1)?;
        self.push(")");
        Ok(())
    }

    fn integer(&mut self, value: &Value, number: i128, spec: &Spec) -> Result<(), Fault> {
        let size = number.unsigned_abs();
        let mut digits = match spec.verb {
            'v' | 'd' => size.to_string(),
            'b' => format!("{size:b}"),
            'o' | 'O' => format!("{size:o}"),
            'x' => format!("{size:x}"),
            'X' => format!("{size:X}"),
            'c' | 'q' | 'U' => {
                self.character(number, spec);
                return Ok(());
            }
            _ => return self.bad_verb(value, spec),
        };
        let prefix = match spec.verb {
            'O' => "0o",
            'b' if spec.sharp => "0b",
            'o' if spec.sharp => "0",
            'x' if spec.sharp => "0x",
            'X' if spec.sharp => "0X",
            _ => "",
        };
        let sign = if number < 0 {
            "-"
        } else if spec.plus {
            "+"
        } else if spec.space {
            " "
        } else {
            ""
        };
        let mut spec = spec.clone();
        if let Some(precision) = spec.precision {
            if precision == 0 && number == 0 {
                digits.clear();
            }
            digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
            spec.zero = false;
        } else if spec.zero && !spec.minus {
            let width = spec.width.unwrap_or(0).saturating_sub(sign.len());
            digits = format!("{}{digits}", "0".repeat(width.saturating_sub(digits.len())));
        }
        spec.zero = false;
        self.pad(format!("{sign}{prefix}{digits}").as_bytes(), &spec);
        Ok(())
    }

    fn character(&mut self, number: i128, spec: &Spec) {
        let character = u32::try_from(number).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
        let text = match spec.verb {
            'c' => character.to_string(),
            'q' => quote_with(&character.to_string(), '\''),
            _ if spec.sharp => format!("U+{number:04X} '{character}'"),
            _ => format!("U+{number:04X}"),
        };
        self.pad(text.as_bytes(), spec);
    }

    fn float(&mut self, value: &Value, number: f64, spec: &Spec) -> Result<(), Fault> {
        let text = match spec.verb {
            'v' => number::general(number, spec.precision, false),
            'g' | 'G' => number::general(number, spec.precision, spec.verb == 'G'),
            'e' | 'E' => number::scientific(number, Some(spec.precision.unwrap_or(6)), spec.verb == 'E'),
            'f' | 'F' => number::fixed(number, Some(spec.precision.unwrap_or(6))),
            _ => return self.bad_verb(value, spec),
        };
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) if text.starts_with('-') => ("-", digits.to_owned()),
            Some(digits) if spec.plus || !number.is_finite() => ("+", digits.to_owned()),
            Some(digits) => ("", digits.to_owned()),
            None if spec.plus => ("+", text),
            None if spec.space => (" ", text),
            None => ("", text),
        };
        let mut spec = spec.clone();
        let mut digits = digits;
        if spec.zero && !spec.minus && number.is_finite() {
            let width = spec.width.unwrap_or(0).saturating_sub(sign.len());
            digits = format!("{}{digits}", "0".repeat(width.saturating_sub(digits.len())));
        }
        spec.zero = false;
        self.pad(format!("{sign}{digits}").as_bytes(), &spec);
        Ok(())
    }

    fn text(&mut self, value: &Value, text: &[u8], spec: &Spec) -> Result<(), Fault> {
        self.scope.step(text.len() / 16)?;
        match spec.verb {
            'v' if spec.sharp => self.pad(quote_bytes(text).as_bytes(), spec),
            'v' | 's' => {
                let cut = spec.precision.map(|precision| {
                    String::from_utf8_lossy(text).chars().take(precision).collect::<String>().into_bytes()
                });
                self.pad(cut.as_deref().unwrap_or(text), spec);
            }
            'q' => {
                let text = String::from_utf8_lossy(text);
                let text: String = match spec.precision {
                    Some(precision) => text.chars().take(precision).collect(),
                    None => text.into_owned(),
                };
                let raw = spec.sharp && !text.contains(['`', '\n', '\r', '\u{feff}']);
                let quoted = if raw { format!("`{text}`") } else { quote(&text) };
                self.pad(quoted.as_bytes(), spec);
            }
            'x' | 'X' => self.pad(hex(text, spec).as_bytes(), spec),
            _ => return self.bad_verb(value, spec),
        }
        Ok(())
    }

    /// Writes a text at the width of the directive, which counts characters.
    fn pad(&mut self, text: &[u8], spec: &Spec) {
        let Some(width) = spec.width else {
            self.out.extend_from_slice(text);
            return;
        };
        let missing = width.saturating_sub(String::from_utf8_lossy(text).chars().count());
        if spec.minus {
            self.out.extend_from_slice(text);
            self.out.resize(self.out.len() + missing, b' ');
        } else {
            let filler = if spec.zero { b'0' } else { b' ' };
            self.out.resize(self.out.len() + missing, filler);
            self.out.extend_from_slice(text);
        }
    }
}

fn hex(text: &[u8], spec: &Spec) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for (index, byte) in text.iter().take(spec.precision.unwrap_or(usize::MAX)).enumerate() {
        if spec.space && index > 0 {
            out.push(' ');
        }
        if spec.sharp && (spec.space || index == 0) {
            out.push_str(if spec.verb == 'X' { "0X" } else { "0x" });
        }
        // Writing to a String cannot fail.
        let _ = if spec.verb == 'X' { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
    }
    out
}

/// Go's `strconv.Quote`.
pub fn quote(text: &str) -> String {
    quote_with(text, '"')
}

/// The same for bytes; those that are part of no character become `\\xff`.
pub(crate) fn quote_bytes(text: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::from("\"");
    for chunk in text.utf8_chunks() {
        let quoted = quote(chunk.valid());
        out.push_str(&quoted[1..quoted.len() - 1]);
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

fn quote_with(text: &str, mark: char) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            same if same == mark => {
                out.push('\\');
                out.push(mark);
            }
            printable if is_print(printable) => out.push(printable),
            other if u32::from(other) < 0x80 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{:02x}", u32::from(other));
            }
            other if u32::from(other) < 0x1_0000 => {
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
            other => {
                let _ = write!(out, "\\U{:08x}", u32::from(other));
            }
        }
    }
    out.push(mark);
    out
}

/// True for characters that are printed as they are: letters, marks, numbers, punctuation, symbols, and the blank.
pub fn is_print(character: char) -> bool {
    let code = u32::from(character);
    let is_format =
        matches!(code, 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe000..=0xf8ff);
    character == ' ' || !(character.is_control() || character.is_whitespace() || is_format)
}
