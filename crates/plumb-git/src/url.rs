//! Repository addresses: which forms are accepted, and when two of them mean one repository.

use std::fmt;

use plumb_core::project::shown_repo_url;
use plumb_core::source::{BadAddress, RepoAddress};

use crate::retry::Retry;
use crate::secret::Secret;

/// The address of a repository. Invariant: it has one of the accepted forms, and no part of it can be read as
/// an option or a remote helper. User and password of the address are kept apart and never shown, except the
/// user of ssh, who is part of the address.
#[derive(Clone, PartialEq, Eq)]
pub struct RepoUrl {
    transport: Transport,
    /// The address for git and for messages.
    text: String,
    /// `host[:port]` in lower case; empty for local paths.
    host: String,
    username: Option<String>,
    password: Option<Secret>,
}

/// How git reaches a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `https://`
    Https,
    /// `http://`
    Http,
    /// `ssh://` and `user@host:path`
    Ssh,
    /// `git://`
    Git,
    /// `file://` and absolute paths
    File,
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// The address is empty.
    #[error("the repository address is empty")]
    Empty,
    /// A leading dash would be read as an option by git or ssh.
    #[error("repository address {0:?}: a part of it starts with a dash")]
    Dash(String),
    /// Spaces, line breaks, control characters.
    #[error("repository address {0:?} contains white space or control characters")]
    Characters(String),
    /// `ext::…` and the like would run programs.
    #[error("repository address {0:?}: remote helpers (`name::address`) are not allowed")]
    Helper(String),
    /// The scheme is not supported.
    #[error(
        "repository address {0:?}: use https, http, ssh, git, file, `user@host:path` or an absolute path"
    )]
    Scheme(String),
    /// Clients could read it in two ways.
    #[error("repository address {address:?}: {reason}")]
    Ambiguous {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: BadAddress,
    },
    /// The host is missing or not valid.
    #[error("repository address {0:?} has no usable host")]
    Host(String),
}

impl BadUrl {
    /// Never transient: the address has to change.
    pub fn retry(&self) -> Retry {
        Retry::Permanent
    }

    /// Short name of the kind of failure, for metrics.
    pub fn category(&self) -> &'static str {
        "address"
    }
}

impl RepoUrl {
    /// Checks an address.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let text = text.trim();
        let shown = || shown_repo_url(text);
        if text.is_empty() {
            return Err(BadUrl::Empty);
        }
        if text.starts_with('-') {
            return Err(BadUrl::Dash(shown()));
        }
        if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
            return Err(BadUrl::Characters(shown()));
        }
        if text.starts_with('/') {
            return Ok(Self::local(text));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Self::scp_like(text);
        };
        let transport = match scheme.to_ascii_lowercase().as_str() {
            "https" => Transport::Https,
            "http" => Transport::Http,
            "ssh" | "git+ssh" | "ssh+git" => Transport::Ssh,
            "git" => Transport::Git,
            "file" => Transport::File,
            other if other.contains("::") => return Err(BadUrl::Helper(shown())),
            _ => return Err(BadUrl::Scheme(shown())),
        };
        if transport == Transport::File {
            return if rest.starts_with('/') { Ok(Self::local(rest)) } else { Err(BadUrl::Host(shown())) };
        }
        let url = Self::with_authority(text, transport, rest)?;
        unambiguous(text)?;
        Ok(url)
    }

    /// `[user[:password]@]host[:port]/path`, the part of `text` after the scheme.
    fn with_authority(text: &str, transport: Transport, rest: &str) -> Result<Self, BadUrl> {
        let shown = || shown_repo_url(text);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (username, password) =
            match user.map(|user| user.split_once(':').map_or((user, None), |(a, b)| (a, Some(b)))) {
                Some((name, password)) => {
                    (Some(name.to_owned()), password.map(|text| Secret::new(percent_decoded(text))))
                }
                None => (None, None),
            };
        // A line break would add lines to git's credential protocol.
        let parts = username.as_deref().map(percent_decoded).into_iter();
        let mut parts = parts.chain(password.as_ref().map(|secret| secret.expose().to_owned()));
        if parts.any(|part| part.contains(char::is_control)) {
            return Err(BadUrl::Characters(shown()));
        }
        if host.starts_with('-')
            || username.as_deref().is_some_and(|name| name.starts_with('-'))
            || path.trim_start_matches('/').starts_with('-')
        {
            return Err(BadUrl::Dash(shown()));
        }
        if !is_host(host) {
            return Err(BadUrl::Host(shown()));
        }
        let host = host.to_ascii_lowercase();
        // With http the user may be a token, which git gets through the environment.
        let is_shown = |name: &&str| transport == Transport::Ssh && !name.is_empty();
        let at = username.as_deref().filter(is_shown).map_or_else(String::new, |name| format!("{name}@"));
        let text = format!("{}://{at}{host}/{path}", transport.scheme());
        Ok(Self { transport, text, host, username: username.map(|name| percent_decoded(&name)), password })
    }

    fn local(path: &str) -> Self {
        Self {
            transport: Transport::File,
            text: path.to_owned(),
            host: String::new(),
            username: None,
            password: None,
        }
    }

    /// `user@host:path`
    fn scp_like(text: &str) -> Result<Self, BadUrl> {
        let shown = || shown_repo_url(text);
        if text.contains("::") {
            return Err(BadUrl::Helper(shown()));
        }
        let (authority, path) = text.split_once(':').ok_or_else(|| BadUrl::Scheme(shown()))?;
        if authority.contains('/') {
            return Err(BadUrl::Scheme(shown()));
        }
        let (username, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, authority),
        };
        if host.starts_with('-')
            || path.starts_with('-')
            || username.as_deref().is_some_and(|name| name.starts_with('-'))
        {
            return Err(BadUrl::Dash(shown()));
        }
        if !is_host(host) || host.contains(':') {
            return Err(BadUrl::Host(shown()));
        }
        // A client that ends the user at the last `@` would connect to another host than git.
        if path.split('/').next().is_some_and(|first| first.contains('@')) {
            return Err(BadUrl::Host(shown()));
        }
        unambiguous(text)?;
        let host = host.to_ascii_lowercase();
        let at = username.as_deref().map_or_else(String::new, |name| format!("{name}@"));
        Ok(Self {
            transport: Transport::Ssh,
            text: format!("{at}{host}:{path}"),
            host,
            username,
            password: None,
        })
    }

    /// How git reaches it.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The address for git and for messages, without credentials.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address with its user, as settings may have it. Not for messages: the user may be a token.
    pub fn with_user(&self) -> String {
        let is_apart = |name: &&str| self.transport != Transport::Ssh && !name.is_empty();
        let user = self.username.as_deref().filter(is_apart);
        match (user, self.text.split_once("://")) {
            (Some(user), Some((scheme, rest))) => format!("{scheme}://{user}@{rest}"),
            _ => self.text.clone(),
        }
    }

    /// `host[:port]`; empty for local paths.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The user in the address.
    pub fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The password in the address.
    pub fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    /// The same text for all spellings of one repository: no user, no trailing `.git` or slash, ssh in one
    /// form. The case of the path is kept, since servers may distinguish it.
    pub fn identity(&self) -> String {
        let path = match self.transport {
            Transport::File => self.text.as_str(),
            _ => match self.text.split_once("://") {
                Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
                None => self.text.split_once(':').map_or("", |(_, path)| path),
            },
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        format!("{}://{}/{path}", self.transport.scheme(), self.host)
    }

    /// The repository of a submodule address in this repository. Relative addresses (`../lib.git`) are
    /// resolved against this address, as git does.
    pub fn submodule(&self, address: &str) -> Result<Self, BadUrl> {
        if !address.starts_with("./") && !address.starts_with("../") {
            return Self::parse(address);
        }
        let mut base = self.text.trim_end_matches('/').to_owned();
        let mut rest = address;
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                rest = after;
                let cut = base.rfind(['/', ':']).ok_or_else(|| BadUrl::Host(shown_repo_url(address)))?;
                base.truncate(cut);
            } else {
                break;
            }
        }
        let separator = if self.transport == Transport::Ssh && !base.contains("://") && !base.contains(':') {
            ':'
        } else {
            '/'
        };
        let resolved = Self::parse(&format!("{base}{separator}{rest}"))?;
        if resolved.host != self.host || resolved.transport != self.transport {
            return Err(BadUrl::Host(shown_repo_url(address)));
        }
        Ok(Self { username: self.username.clone(), ..resolved })
    }
}

impl Transport {
    /// The name of the protocol, as git's allow-list spells it.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::Git => "git",
            Self::File => "file",
        }
    }
}

impl fmt::Display for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for RepoUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepoUrl({})", self.text)
    }
}

/// The address that projects judge is the address that git connects to.
fn unambiguous(text: &str) -> Result<(), BadUrl> {
    let ambiguous = |reason| BadUrl::Ambiguous { address: shown_repo_url(text), reason };
    RepoAddress::parse(text).map(drop).map_err(ambiguous)
}

/// Names, IPv4 and bracketed IPv6, with an optional port.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = match name.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .is_some_and(|ip| ip.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.')),
        None => {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        }
    };
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let hex = text.get(index + 1..index + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if byte == b'%'
            && let Some(value) = hex
        {
            decoded.push(value);
            index += 3;
        } else {
            decoded.push(byte);
            index += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_repository_are_one() {
        for (text, identity) in [
            ("https://GitHub.com/org/repo.git", "https://github.com/org/repo"),
            ("https://user:pw@github.com/org/repo/", "https://github.com/org/repo"),
            ("git@github.com:org/repo.git", "ssh://github.com/org/repo"),
            ("ssh://git@github.com/org/repo", "ssh://github.com/org/repo"),
            ("https://github.com/Org/repo", "https://github.com/Org/repo"),
            ("file:///srv/git/repo.git", "file:///srv/git/repo"),
            ("/srv/git/repo.git/", "file:///srv/git/repo"),
        ] {
            assert_eq!(RepoUrl::parse(text).unwrap().identity(), identity, "{text}");
        }
    }

    #[test]
    fn what_could_run_a_program_is_refused() {
        for text in [
            "",
            "--upload-pack=touch /tmp/x",
            "-oProxyCommand=x",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "fd::17/foo",
            "ssh://-oProxyCommand=touch/x",
            "ssh://-oProxyCommand=x@host/repo",
            "-u@host:path",
            "git@-oProxyCommand=x:repo",
            "git@host:--upload-pack=x",
            "ssh://host/-x",
            "https://exa mple.org/x",
            "https://host\n/x",
            "gopher://host/x",
            "transport-helper::https://x/y",
            "file://host/share",
            "relative/path",
            "https:///x",
            "https://host:99999/x",
            "https://%2doProxyCommand/x",
        ] {
            assert!(RepoUrl::parse(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn an_address_with_two_readings_is_refused() {
        for text in [
            "https://host/team-a/%2e%2e/team-b",
            "https://evil?.example.com/x",
            "http://2130706433/x",
            "git@0x7f.1:x",
            "git@host:../x",
            "ssh://git@host/a#b",
        ] {
            assert!(RepoUrl::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn passwords_are_kept_apart() {
        let url = RepoUrl::parse("https://bob:s3cr%2Fet@host/x").unwrap();
        assert_eq!(url.as_str(), "https://host/x");
        assert_eq!(url.with_user(), "https://bob@host/x");
        assert_eq!(url.password().unwrap().expose(), "s3cr/et");
        assert!(!format!("{url:?} {url}").contains("s3cr"));
        for text in ["https://bob:s3cret@ho st/x", "https://bob:pa/s3cret@host/x"] {
            let error = RepoUrl::parse(text).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_token_as_user_is_kept_apart() {
        let url = RepoUrl::parse("https://t0ken@host/org/app.git").unwrap();
        assert_eq!(format!("{url} {url:?}"), "https://host/org/app.git RepoUrl(https://host/org/app.git)");
        assert_eq!(url.username(), Some("t0ken"));
        assert_eq!(url.submodule("../lib.git").unwrap().username(), Some("t0ken"));
        assert_eq!(RepoUrl::parse("ssh://git@host/x").unwrap().as_str(), "ssh://git@host/x");
    }

    #[test]
    fn submodules_are_relative_to_their_parent() {
        let parent = RepoUrl::parse("https://host/org/app.git").unwrap();
        assert_eq!(parent.submodule("../lib.git").unwrap().as_str(), "https://host/org/lib.git");
        assert_eq!(parent.submodule("../../other/lib").unwrap().as_str(), "https://host/other/lib");
        assert!(parent.submodule("../../../../etc/passwd").is_err());
        assert!(parent.submodule("ext::sh -c x").is_err());
        let scp = RepoUrl::parse("git@host:org/app.git").unwrap();
        assert_eq!(scp.submodule("../lib.git").unwrap().as_str(), "git@host:org/lib.git");
    }
}
