//! Upper and lower case, and names made of words.

use super::table::{Row, Type, bytes, new_text, text};

const TEXT: &[Type] = &[Type::Text];

pub(super) const ROWS: &[Row] = &[
    ("upper", TEXT, None, |scope, given| {
        new_text(scope, text(given, 0).chars().map(upper).collect::<String>())
    }),
    ("lower", TEXT, None, |scope, given| {
        new_text(scope, text(given, 0).chars().map(lower).collect::<String>())
    }),
    ("title", TEXT, None, |scope, given| new_text(scope, title(&text(given, 0)))),
    ("untitle", TEXT, None, |scope, given| new_text(scope, at_word_starts(&text(given, 0), lower))),
    ("swapcase", TEXT, None, |scope, given| new_text(scope, swap(&text(given, 0)))),
    ("camelcase", TEXT, None, |scope, given| new_text(scope, camel(&text(given, 0)))),
    ("snakecase", TEXT, None, |scope, given| new_text(scope, with_connector(&text(given, 0), '_'))),
    ("kebabcase", TEXT, None, |scope, given| new_text(scope, with_connector(&text(given, 0), '-'))),
    ("initials", TEXT, None, |scope, given| new_text(scope, initials(bytes(given, 0)))),
];

/// The upper case of one character, if it is one character.
fn upper(character: char) -> char {
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => character,
    }
}

/// The lower case of one character. `İ` has two in Rust; Go takes the first.
pub(super) fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

/// Letters after anything that is no letter, digit or underscore become upper case.
fn title(text: &str) -> String {
    let mut before = ' ';
    let mut map = |character: char| {
        let starts =
            (before.is_whitespace() || before.is_ascii()) && before != '_' && !before.is_alphanumeric();
        before = character;
        if starts { upper(character) } else { character }
    };
    text.chars().map(&mut map).collect()
}

fn at_word_starts(text: &str, map: fn(char) -> char) -> String {
    let mut at_start = true;
    let mut change = |character: char| {
        let starts = at_start && !character.is_whitespace();
        at_start = character.is_whitespace();
        if starts { map(character) } else { character }
    };
    text.chars().map(&mut change).collect()
}

/// Upper case becomes lower case; lower case becomes upper case.
fn swap(text: &str) -> String {
    let map = |character: char| {
        if character.is_uppercase() {
            lower(character)
        } else if character.is_lowercase() {
            upper(character)
        } else {
            character
        }
    };
    text.chars().map(map).collect()
}

/// The first bytes of words: Sprig takes each byte for a character.
fn initials(text: &[u8]) -> String {
    let words = text.split(|byte| char::from(*byte).is_whitespace());
    words.filter_map(|word| word.first()).map(|byte| char::from(*byte)).collect()
}

fn is_connector(character: char) -> bool {
    character == '-' || character == '_' || character.is_whitespace()
}

/// `http_server` becomes `HttpServer`. Connectors at the start stay, and all but the last of several in a row.
fn camel(text: &str) -> String {
    let n_leading = text.chars().take_while(|character| is_connector(*character)).count();
    let mut out: String = text.chars().take(n_leading).collect();
    let mut rest = text.chars().skip(n_leading);
    let Some(first) = rest.next() else { return out };
    let mut capitals = first.is_uppercase();
    let mut pending = upper(first);
    for character in rest {
        let before = pending;
        pending = character;
        if is_connector(character) && is_connector(before) {
            out.push(before);
        } else if is_connector(before) {
            capitals = character.is_uppercase();
            pending = upper(character);
        } else {
            // A run of capitals is one word: HTTP becomes Http.
            if capitals {
                if character.is_uppercase() {
                    pending = lower(character);
                } else {
                    capitals = false;
                }
            }
            out.push(before);
        }
    }
    out.push(pending);
    out
}

/// The kinds of words that a name is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Connector,
    Punctuation,
    Capital,
    Letters,
    Number,
    Other,
    None,
}

fn is_letter(character: char) -> bool {
    character.is_alphabetic()
        && !matches!(u32::from(character), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7a3)
}

fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_punctuation() && !"$+<=>^`|~".contains(character);
    }
    matches!(u32::from(character), 0xa1 | 0xa7 | 0xab | 0xb6 | 0xb7 | 0xbb | 0xbf | 0x2010..=0x2027 | 0x2030..=0x205e | 0x3001..=0x3011)
}

fn kind(character: char) -> Word {
    match character {
        connector if is_connector(connector) => Word::Connector,
        punctuation if is_punctuation(punctuation) => Word::Punctuation,
        capital if capital.is_uppercase() => Word::Capital,
        letter if is_letter(letter) => Word::Letters,
        number if number.is_numeric() => Word::Number,
        _ => Word::Other,
    }
}

/// The first word of a name. `HTTPStatus` starts with `HTTP`, `Status` with itself.
fn next_word(text: &str) -> (Word, &str, &str) {
    let mut characters = text.char_indices();
    let Some((_, first)) = characters.next() else { return (Word::None, "", "") };
    let of = kind(first);
    let after_first = first.len_utf8();
    let run = |from: usize, keep: &dyn Fn(char) -> bool| {
        text[from..].find(|character| !keep(character)).map_or(text.len(), |at| from + at)
    };
    let small = |character: char| is_letter(character) && !character.is_uppercase();
    let end = match of {
        Word::Connector => run(after_first, &is_connector),
        Word::Punctuation => run(after_first, &is_punctuation),
        Word::Number => run(after_first, &char::is_numeric),
        Word::Letters => run(after_first, &small),
        Word::Capital => {
            let capitals = run(after_first, &char::is_uppercase);
            let follows = text[capitals..].chars().next();
            let last = text[..capitals].chars().next_back().map_or(0, char::len_utf8);
            match follows {
                _ if capitals == after_first => run(after_first, &small),
                Some(letter) if is_letter(letter) => capitals - last,
                _ => capitals,
            }
        }
        Word::Other | Word::None => run(after_first, &|character| kind(character) == Word::Other),
    };
    (of, &text[..end], &text[end..])
}

fn push_lower(out: &mut String, of: Word, word: &str, connector: char) {
    if !matches!(of, Word::Capital | Word::Connector) {
        out.push_str(word);
        return;
    }
    out.extend(
        word.chars().map(|character| if is_connector(character) { connector } else { lower(character) }),
    );
}

/// `HTTPServer Name-2` becomes `http_server_name_2`.
fn with_connector(text: &str, connector: char) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let joins = |of: Word| !matches!(of, Word::None | Word::Connector | Word::Punctuation);
    let (mut of, mut word, mut rest) = next_word(text);
    while !rest.is_empty() {
        if of != Word::Connector {
            push_lower(&mut out, of, word, connector);
        }
        let (before, before_word) = (of, word);
        (of, word, rest) = next_word(rest);
        match before {
            Word::Number => {
                (of, word, rest) = letters_and_numbers(&mut out, (of, word, rest), connector);
                if joins(of) {
                    out.push(connector);
                }
            }
            Word::Connector => push_lower(&mut out, before, before_word, connector),
            Word::Punctuation => {}
            _ if of != Word::Number => {
                if !matches!(of, Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
            _ if rest.is_empty() => {}
            _ => {
                let number = word;
                (of, word, rest) = next_word(rest);
                if of == Word::Letters {
                    // HTTP2xx becomes http_2xx.
                    out.push(connector);
                    out.push_str(number);
                    (of, word, rest) = letters_and_numbers(&mut out, (of, word, rest), connector);
                    if joins(of) {
                        out.push(connector);
                    }
                } else {
                    // Bld4Floor becomes bld4_floor.
                    out.push_str(number);
                    if !matches!(of, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                }
            }
        }
    }
    push_lower(&mut out, of, word, connector);
    out
}

fn letters_and_numbers<'a>(
    out: &mut String,
    (mut of, mut word, mut rest): (Word, &'a str, &'a str),
    connector: char,
) -> (Word, &'a str, &'a str) {
    while matches!(of, Word::Letters | Word::Number) {
        push_lower(out, of, word, connector);
        (of, word, rest) = next_word(rest);
    }
    (of, word, rest)
}
