//! Versions of programs that plumb starts.

/// Major, minor and patch of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolVersion(pub u32, pub u32, pub u32);

impl ToolVersion {
    /// The first version in a text, such as `git version 2.39.5` or `v3.14.0+g3fc9f4b`.
    pub fn find(text: &str) -> Option<Self> {
        let starts = text.char_indices().filter(|(at, c)| {
            c.is_ascii_digit()
                && !text[..*at].ends_with(|before: char| before.is_ascii_digit() || before == '.')
        });
        starts.into_iter().find_map(|(at, _)| {
            let end = text[at..]
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .map_or(text.len(), |end| at + end);
            let mut numbers = text[at..end].split('.').map(|number| number.parse::<u32>().ok());
            let (major, minor) = (numbers.next()??, numbers.next()??);
            Some(Self(major, minor, numbers.next().flatten().unwrap_or_default()))
        })
    }
}

impl std::fmt::Display for ToolVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_print() {
        for (text, expected) in [
            ("git version 2.39.5", Some(ToolVersion(2, 39, 5))),
            ("git version 2.39.5 (Apple Git-154)", Some(ToolVersion(2, 39, 5))),
            ("git version 2.40.windows.1", Some(ToolVersion(2, 40, 0))),
            ("v3.14.0+g3fc9f4b", Some(ToolVersion(3, 14, 0))),
            ("{Version:kustomize/v5.4.1 GitCommit:1 BuildDate:2024}", Some(ToolVersion(5, 4, 1))),
            ("version 7", None),
            ("", None),
        ] {
            assert_eq!(ToolVersion::find(text), expected, "{text}");
        }
        assert!(ToolVersion(2, 9, 9) < ToolVersion(2, 30, 0));
    }
}
