//! Go's words for what is wrong with a JSON text.

/// What `encoding/json` says about a text that is no JSON, or `None` if nothing is wrong with its syntax.
pub(super) fn complaint(text: &[u8]) -> Option<String> {
    // Go reads a blank after the end, so that a literal or a number ends.
    let mut scan = Scan { text, at: 0 };
    let mut open: Vec<u8> = Vec::new();
    let result = scan.document(&mut open);
    match result {
        Ok(()) => None,
        Err(End::Early) => Some("unexpected end of JSON input".to_owned()),
        Err(End::Character(byte, context)) => Some(format!("invalid character {} {context}", shown(byte))),
    }
}

/// Why a scan stopped.
enum End {
    Early,
    Character(u8, String),
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

fn shown(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let quoted = crate::format::quote(&char::from(byte).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

impl Scan<'_> {
    fn next(&mut self) -> Result<u8, End> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn peek(&self) -> Result<u8, End> {
        match self.text.get(self.at) {
            Some(byte) => Ok(*byte),
            None if self.at == self.text.len() => Ok(b' '),
            None => Err(End::Early),
        }
    }

    fn skip_blanks(&mut self) -> Result<u8, End> {
        while matches!(self.peek()?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        self.peek()
    }

    /// One value and nothing after it. `open` has the brackets that are open; a list, because texts nest without end.
    fn document(&mut self, open: &mut Vec<u8>) -> Result<(), End> {
        loop {
            let is_complete = self.value(open)?;
            if is_complete && !self.after_value(open)? {
                return Ok(());
            }
        }
    }

    /// Reads a value, or the start of one. True if it is complete.
    fn value(&mut self, open: &mut Vec<u8>) -> Result<bool, End> {
        self.skip_blanks()?;
        match self.next()? {
            b'{' => {
                if self.skip_blanks()? == b'}' {
                    self.at += 1;
                    return Ok(true);
                }
                open.push(b'{');
                self.key()?;
                return Ok(false);
            }
            b'[' => {
                if self.skip_blanks()? == b']' {
                    self.at += 1;
                    return Ok(true);
                }
                open.push(b'[');
                return Ok(false);
            }
            b'"' => self.string()?,
            first @ (b'-' | b'0'..=b'9') => self.number(first)?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            other => return Err(End::Character(other, "looking for beginning of value".to_owned())),
        }
        Ok(true)
    }

    /// What follows a complete value. True if another value must follow.
    fn after_value(&mut self, open: &mut Vec<u8>) -> Result<bool, End> {
        loop {
            let Some(bracket) = open.last().copied() else {
                while let Some(byte) = self.text.get(self.at) {
                    if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                        return Err(End::Character(*byte, "after top-level value".to_owned()));
                    }
                    self.at += 1;
                }
                return Ok(false);
            };
            self.skip_blanks()?;
            match (bracket, self.next()?) {
                (b'{', b',') => {
                    self.key()?;
                    return Ok(true);
                }
                (_, b',') => return Ok(true),
                (b'{', b'}') | (b'[', b']') => {
                    open.pop();
                }
                (b'{', other) => return Err(End::Character(other, "after object key:value pair".to_owned())),
                (_, other) => return Err(End::Character(other, "after array element".to_owned())),
            }
        }
    }

    fn key(&mut self) -> Result<(), End> {
        self.skip_blanks()?;
        match self.next()? {
            b'"' => self.string()?,
            other => {
                return Err(End::Character(other, "looking for beginning of object key string".to_owned()));
            }
        }
        self.skip_blanks()?;
        match self.next()? {
            b':' => Ok(()),
            other => Err(End::Character(other, "after object key".to_owned())),
        }
    }

    fn string(&mut self) -> Result<(), End> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next()?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(End::Character(
                                    digit,
                                    "in \\u hexadecimal character escape".to_owned(),
                                ));
                            }
                        }
                    }
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    other => return Err(End::Character(other, "in string escape code".to_owned())),
                },
                control if control < b' ' => {
                    return Err(End::Character(control, "in string literal".to_owned()));
                }
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), End> {
        for expected in word.bytes().skip(1) {
            let found = self.next()?;
            if found != expected {
                let context = format!("in literal {word} (expecting {})", shown(expected));
                return Err(End::Character(found, context));
            }
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Result<(), End> {
        let first = self.next()?;
        if !first.is_ascii_digit() {
            return Err(End::Character(first, context.to_owned()));
        }
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), End> {
        let leading = if first == b'-' { self.peek()? } else { first };
        if first == b'-' && leading != b'0' {
            self.digits("in numeric literal")?;
        } else if first == b'-' {
            self.at += 1;
        } else if first != b'0' {
            while self.peek()?.is_ascii_digit() {
                self.at += 1;
            }
        }
        if self.peek()? == b'.' {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek()?, b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek()?, b'+' | b'-') {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn complaints_are_those_of_go() {
        let cases = [
            ("broken", "invalid character 'b' looking for beginning of value"),
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("[1", "unexpected end of JSON input"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("nil", "invalid character 'i' in literal null (expecting 'u')"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("1 2", "invalid character '2' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-", "invalid character ' ' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
        ];
        for (text, expected) in cases {
            assert_eq!(complaint(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        for text in ["{}", "[]", " [1, {\"a\": [true, null, -0.5e+3, \"\\u00e9\"]}, []] ", "0", "\"x\""] {
            assert_eq!(complaint(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            complaint("[".repeat(100_000).as_bytes()).as_deref(),
            Some("unexpected end of JSON input")
        );
    }
}
