//! Timestamps. They stay text, so it only matters what may carry the tag `!!timestamp`.

/// Is it one of the forms that Go takes for a timestamp? A date, or a date and a time with `T`, `t` (and a
/// zone) or a space (and no zone) between them.
pub(super) fn is_timestamp(text: &str) -> bool {
    let mut rest = Cursor(text.as_bytes());
    let Some(year) = rest.number(4, 4) else { return false };
    let date = (|| {
        rest.byte(b"-")?;
        let month = rest.number(1, 2)?;
        rest.byte(b"-")?;
        Some((month, rest.number(1, 2)?))
    })();
    let Some((month, day)) = date else { return false };
    if !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return false;
    }
    if rest.0.is_empty() {
        return true;
    }
    let Some(separator) = rest.byte(b"Tt ") else { return false };
    if separator == b' ' {
        while rest.byte(b" ").is_some() {}
    }
    rest.time().is_some() && (separator == b' ' || rest.zone().is_some()) && rest.0.is_empty()
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

struct Cursor<'text>(&'text [u8]);

impl Cursor<'_> {
    fn byte(&mut self, any_of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        any_of.contains(first).then(|| self.0 = rest)?;
        Some(*first)
    }

    fn number(&mut self, at_least: usize, at_most: usize) -> Option<u32> {
        let length = self.0.iter().take(at_most).take_while(|byte| byte.is_ascii_digit()).count();
        if length < at_least {
            return None;
        }
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
    }

    fn time(&mut self) -> Option<()> {
        let hour = self.number(1, 2)?;
        self.byte(b":")?;
        let minute = self.number(1, 2)?;
        self.byte(b":")?;
        let second = self.number(1, 2)?;
        if let [b'.' | b',', b'0'..=b'9', ..] = self.0 {
            self.byte(b".,")?;
            let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.0 = self.0.get(digits..)?;
        }
        (hour < 24 && minute < 60 && second < 60).then_some(())
    }

    fn zone(&mut self) -> Option<()> {
        if self.byte(b"Z").is_some() {
            return Some(());
        }
        self.byte(b"+-")?;
        let hour = self.number(2, 2)?;
        self.byte(b":")?;
        let minute = self.number(2, 2)?;
        (hour <= 24 && minute < 60).then_some(())
    }
}
