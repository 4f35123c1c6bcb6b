//! Paths that cannot leave their source.

use std::fmt;

/// A path inside a source, relative to its root. Invariant: components separated by single slashes, none of them
/// empty, `.`, `..` or containing a NUL byte; the empty text is the root. It therefore never names anything
/// outside the source, whatever a repository or an Application says.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(String);

/// Why a text is not a path inside the source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It starts at the machine's root.
    #[error("path `{path}` is absolute; only paths inside the repository may be used")]
    Absolute {
        /// The text.
        path: String,
    },
    /// Its `..` climb over the root of the source.
    #[error("path `{path}` leads outside the repository")]
    Outside {
        /// The text.
        path: String,
    },
    /// It contains a byte that no file name has.
    #[error("path {path:?} contains a NUL byte")]
    Nul {
        /// The text.
        path: String,
    },
}

impl RepoPath {
    /// The root of the source.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads a relative path, resolving `.` and `..` by text.
    pub fn parse(text: &str) -> Result<Self, BadPath> {
        Self::root().join(text)
    }

    /// This directory's path plus a relative one, resolving `.` and `..` by text.
    pub fn join(&self, relative: &str) -> Result<Self, BadPath> {
        let path = || relative.to_owned();
        if relative.starts_with('/') {
            return Err(BadPath::Absolute { path: path() });
        }
        if relative.contains('\0') {
            return Err(BadPath::Nul { path: path() });
        }
        let mut components: Vec<&str> = self.components().collect();
        for component in relative.split('/') {
            match component {
                "" | "." => {}
                ".." => {
                    components.pop().ok_or_else(|| BadPath::Outside { path: path() })?;
                }
                name => components.push(name),
            }
        }
        Ok(Self(components.join("/")))
    }

    /// One level down; `name` is a single component as directory listings give it.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }

    /// The components, none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|component| !component.is_empty())
    }

    /// The directory that contains it; the root's parent is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned()))
    }

    /// The last component; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Is it the root?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Is it this directory, or inside it?
    pub fn is_within(&self, directory: &Self) -> bool {
        directory.is_root()
            || self.0.strip_prefix(&directory.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The part below `directory`; `None` if it is not inside.
    pub fn below(&self, directory: &Self) -> Option<&str> {
        if directory.is_root() {
            return Some(&self.0);
        }
        let rest = self.0.strip_prefix(&directory.0)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }

    /// The text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The root is shown as `.`.
/// For users: a name that would move the cursor of their terminal is written out.
impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0.is_empty() { "." } else { &self.0 };
        if !text.contains(char::is_control) {
            return f.write_str(text);
        }
        text.chars().try_for_each(|character| {
            if character.is_control() {
                write!(f, "{}", character.escape_default())
            } else {
                write!(f, "{character}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_and_never_climb_out() {
        for (text, expected) in
            [("", ""), (".", ""), ("a//b/./c/", "a/b/c"), ("a/../b", "b"), ("a/b/../../c", "c"), ("a/..", "")]
        {
            assert_eq!(RepoPath::parse(text).unwrap().as_str(), expected, "{text}");
        }
        for text in ["..", "a/../..", "../a", "./../a", "a/../../a"] {
            assert_eq!(RepoPath::parse(text), Err(BadPath::Outside { path: text.to_owned() }));
        }
        assert!(matches!(RepoPath::parse("/etc/passwd"), Err(BadPath::Absolute { .. })));
        assert!(matches!(RepoPath::parse("a\0b"), Err(BadPath::Nul { .. })));
    }

    #[test]
    fn within_counts_whole_components() {
        let path = |text| RepoPath::parse(text).unwrap();
        assert!(path("apps/web/a.yaml").is_within(&path("apps/web")));
        assert!(path("apps/web").is_within(&path("apps/web")));
        assert!(!path("apps/website").is_within(&path("apps/web")));
        assert_eq!(path("apps/web/a.yaml").below(&path("apps")), Some("web/a.yaml"));
        assert_eq!(path("appsweb").below(&path("apps")), None);
    }
}
