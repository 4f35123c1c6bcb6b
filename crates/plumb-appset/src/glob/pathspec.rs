//! Git's pathspecs: `:(glob)envs/*.yaml`, `:!envs/old`, or just a path.

/// What the magic words of a pathspec say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own, in any combination")]
pub(super) struct Magic {
    /// `*` stays within a segment, `**` crosses slashes.
    pub(super) glob: bool,
    /// `*` and the like stand for themselves.
    pub(super) literal: bool,
    /// Case does not count.
    pub(super) icase: bool,
    /// All files but these.
    pub(super) exclude: bool,
}

/// The words of a pathspec, and its pattern.
pub(super) fn magic(pathspec: &str) -> Result<(Magic, &str), String> {
    let mut magic = Magic::default();
    if let Some(long) = pathspec.strip_prefix(":(") {
        let (words, pattern) = long.split_once(')').ok_or("the `)` of its magic words is missing")?;
        for word in words.split(',').filter(|word| !word.is_empty()) {
            match word {
                "glob" => magic.glob = true,
                "literal" => magic.literal = true,
                "icase" => magic.icase = true,
                "exclude" => magic.exclude = true,
                // All patterns start at the top of the repository.
                "top" => {}
                other => return Err(format!("plumb does not know the magic word `{other}`")),
            }
        }
        if magic.glob && magic.literal {
            return Err("`glob` and `literal` exclude each other".to_owned());
        }
        return Ok((magic, pattern));
    }
    let Some(mut rest) = pathspec.strip_prefix(':') else { return Ok((magic, pathspec)) };
    while let Some(sign) = rest.chars().next() {
        match sign {
            '!' | '^' => magic.exclude = true,
            '/' => {}
            ':' => return Ok((magic, &rest[1..])),
            other if SIGNS.contains(other) => {
                return Err(format!("plumb does not know the magic sign `{other}`"));
            }
            _ => break,
        }
        rest = &rest[1..];
    }
    Ok((magic, rest))
}

/// The signs that Git keeps for magic.
const SIGNS: &str = "\"#%&',-;<=>@_`~";

/// A path without `.`, `..` and empty segments. `None` if it leaves the repository.
pub(super) fn cleaned(path: &str) -> Option<String> {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            name => segments.push(name),
        }
    }
    Some(segments.join("/"))
}
