//! Whether a failed call can succeed if it is made again.

use plumb_core::source::SourceError;

/// Whether the same call can succeed later although no one changes a setting or pushes a commit. Every error of this
/// crate says so with `retry()`, and names its kind for metrics with `category()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The network, the server or the disk failed: the same call may succeed later.
    Transient,
    /// The same call fails again until a setting, a credential or the repository changes.
    Permanent,
}

impl Retry {
    /// The classification of an error from reading a commit. An object that cannot be read is fetched again, so
    /// that is transient; everything else is a property of the commit.
    pub fn of_source(error: &SourceError) -> Self {
        if matches!(error, SourceError::Storage { .. }) { Self::Transient } else { Self::Permanent }
    }

    /// True for [`Retry::Transient`].
    pub fn is_transient(self) -> bool {
        self == Self::Transient
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plumb_core::source::{AddressPolicy, RepoPath};

    use super::Retry::{Permanent, Transient};
    use super::*;
    use crate::{
        BadUrl, CommandError, FetchError, ResolveError, ResolveOrFetchError, SignatureError, SubmoduleError,
    };

    fn text() -> String {
        "x".to_owned()
    }

    fn failed() -> CommandError {
        CommandError::Failed { command: text(), code: Some(128), message: text() }
    }

    fn missing_program() -> CommandError {
        CommandError::Missing { program: text() }
    }

    fn damaged() -> SourceError {
        SourceError::Storage { path: RepoPath::root(), source: "x".into() }
    }

    fn absent() -> SourceError {
        SourceError::NotFound { path: RepoPath::root() }
    }

    #[test]
    fn commands() {
        let cases = [
            (missing_program(), Permanent, "program"),
            (CommandError::Cache { directory: text(), reason: text() }, Transient, "cache"),
            (CommandError::Start { program: text(), reason: text() }, Transient, "start"),
            (CommandError::Timeout { command: text(), timeout: Duration::ZERO }, Transient, "timeout"),
            (CommandError::Output { command: text(), limit: 1 }, Permanent, "output"),
            (CommandError::Memory { command: text(), limit: 1 }, Permanent, "memory"),
            (
                CommandError::Refused(AddressPolicy::cluster([]).permits_host("::1", 1).unwrap_err()),
                Permanent,
                "address",
            ),
            (failed(), Transient, "failed"),
            (CommandError::Io { command: text(), reason: text() }, Transient, "io"),
        ];
        for (error, retry, category) in cases {
            assert_eq!((error.retry(), error.category()), (retry, category), "{error}");
        }
    }

    #[test]
    fn fetches() {
        let refs = |source| FetchError::Refs { repository: text(), advice: text(), source: Box::new(source) };
        let objects = |source| FetchError::Objects { repository: text(), source };
        let cases = [
            (FetchError::Local { repository: text(), reason: "x" }, Permanent, "local"),
            (refs(failed()), Transient, "refs"),
            (refs(missing_program()), Permanent, "refs"),
            (objects(failed()), Transient, "objects"),
            (objects(missing_program()), Permanent, "objects"),
            (FetchError::Empty { repository: text() }, Transient, "empty"),
            (FetchError::History { repository: text(), source: failed() }, Transient, "history"),
            (FetchError::TooLarge { repository: text(), limit: 1 }, Permanent, "space"),
            (FetchError::Space { repository: text(), limit: 1 }, Transient, "space"),
            (FetchError::Cache { repository: text(), directory: text(), reason: text() }, Transient, "cache"),
        ];
        for (error, retry, category) in cases {
            assert_eq!((error.retry(), error.category()), (retry, category), "{error}");
            let wrapped = ResolveOrFetchError::Fetch(error);
            assert_eq!((wrapped.retry(), wrapped.category()), (retry, category), "{wrapped}");
        }
    }

    #[test]
    fn revisions_and_addresses() {
        let (revision, repository, hint) = (text(), text(), text());
        let cases = [
            ResolveError::Invalid { revision: text() },
            ResolveError::Internal { revision: text() },
            ResolveError::NotOnRefs { revision: text(), repository: text() },
            ResolveError::NotFound { revision: text(), repository: text(), hint: text() },
            ResolveError::NoVersion { revision, repository, n_tags: 0, hint },
            ResolveError::PrefixWithoutVersion { revision: text(), prefix: text() },
            ResolveError::Ambiguous { revision: text(), repository: text() },
            ResolveError::NotACommit { revision: text(), repository: text() },
        ];
        for error in cases {
            assert_eq!((error.retry(), error.category()), (Permanent, "revision"), "{error}");
            let wrapped = ResolveOrFetchError::Resolve(error);
            assert_eq!((wrapped.retry(), wrapped.category()), (Permanent, "revision"), "{wrapped}");
        }
        let addresses = [
            BadUrl::Empty,
            BadUrl::Dash(text()),
            BadUrl::Characters(text()),
            BadUrl::Helper(text()),
            BadUrl::Scheme(text()),
            BadUrl::Host(text()),
        ];
        for error in addresses {
            assert_eq!((error.retry(), error.category()), (Permanent, "address"), "{error}");
        }
    }

    #[test]
    fn submodules_signatures_and_sources() {
        let path = RepoPath::root;
        let fetch = |source| SubmoduleError::Fetch { path: path(), source };
        let empty = FetchError::Empty { repository: text() };
        let submodules = [
            (SubmoduleError::Read(damaged()), Transient),
            (SubmoduleError::Read(absent()), Permanent),
            (SubmoduleError::NoAddress { path: path() }, Permanent),
            (SubmoduleError::Address { path: path(), source: BadUrl::Empty }, Permanent),
            (SubmoduleError::Local { path: path() }, Permanent),
            (SubmoduleError::Refused { path: path(), reason: text() }, Permanent),
            (fetch(ResolveOrFetchError::Fetch(empty)), Transient),
            (fetch(ResolveOrFetchError::Resolve(ResolveError::Invalid { revision: text() })), Permanent),
            (SubmoduleError::TooMany, Permanent),
        ];
        for (error, retry) in submodules {
            assert_eq!((error.retry(), error.category()), (retry, "submodule"), "{error}");
        }
        let signatures = [
            (SignatureError::Untrusted { what: text(), repository: text(), why: text() }, Permanent),
            (SignatureError::TooLong { repository: text(), commit: text() }, Permanent),
            (SignatureError::Command { what: text(), source: failed() }, Transient),
            (SignatureError::Command { what: text(), source: missing_program() }, Permanent),
            (SignatureError::Keyring(failed()), Transient),
        ];
        for (error, retry) in signatures {
            assert_eq!((error.retry(), error.category()), (retry, "signature"), "{error}");
        }
        assert!(Retry::of_source(&damaged()).is_transient());
        assert!(!Retry::of_source(&absent()).is_transient());
    }
}
