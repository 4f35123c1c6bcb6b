//! Addresses of repositories, taken apart. Users write addresses, projects judge them, and clients (git, ssh, the chart
//! client) read them. An address that two of these could read differently is refused here.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The address of a repository. Invariant: every client reads the same user, host, port and path in it.
#[derive(Clone, PartialEq, Eq)]
pub struct RepoAddress {
    form: AddressForm,
    /// User, and password after a colon; empty if there is none.
    user: String,
    /// In lower case, without a final dot; IPv6 in brackets; empty for local paths.
    host: String,
    /// `None` for the usual port of the protocol.
    port: Option<u16>,
    /// With its first slash, if it has one.
    path: String,
}

/// How an address is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressForm {
    Http,
    Https,
    /// `ssh://`, `git+ssh://`, `ssh+git://` and `user@host:path`.
    Ssh,
    /// `host:path`, which is ssh for git.
    HostAndPath,
    Git,
    Oci,
    /// `host/path`: a registry.
    Registry,
    /// `file:///path`
    File,
    /// `/path`
    Path,
}

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// There is none.
    #[error("it is empty")]
    Empty,
    /// Some clients drop such characters or read them as separators.
    #[error("it contains white space, control characters, `\\`, `?` or `#`")]
    Characters,
    /// A backslash or control character as `%5c`, or a slash that is encoded twice, beside another slash, or where clients
    /// decode it: a server decodes it, a project would not.
    #[error(
        "it contains an encoded backslash or control character, or an encoded slash that is not inside a step of the path \
         of an http address"
    )]
    Encoded,
    /// `.` or `..` as a step of the path, also encoded. Clients resolve such steps.
    #[error("it contains `.` or `..` as a step of its path")]
    DotSegments,
    /// Not a protocol for repositories.
    #[error("use https, http, oci, ssh, git, file, `user@host:path` or an absolute path")]
    Scheme,
    /// Not a host name or IP address in its usual notation, or not a port.
    #[error("it has no usable host: use an ASCII host name, or an IP address in its usual notation")]
    Host,
    /// A user name that could be taken for a host.
    #[error("it has an `@` in its user name")]
    User,
}

impl RepoAddress {
    /// Takes an address apart.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadAddress::Empty);
        }
        if text.chars().any(is_misleading) {
            return Err(BadAddress::Characters);
        }
        let (form, rest) = split_scheme(text)?;
        if matches!(form, AddressForm::File | AddressForm::Path) {
            check_path(form, rest)?;
            return Ok(Self {
                form,
                user: String::new(),
                host: String::new(),
                port: None,
                path: rest.to_owned(),
            });
        }
        let (user, rest) = split_user(form, rest)?;
        if rest.contains(['\\', '?', '#']) {
            return Err(BadAddress::Characters);
        }
        let end = match form {
            AddressForm::Ssh if !text.contains("://") => rest.find(':').or_else(|| rest.find('/')),
            AddressForm::HostAndPath => rest.find(':'),
            _ => rest.find('/'),
        };
        let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
        // The colon of `user@host:path` separates like a slash.
        let path = path.strip_prefix(':').map_or_else(|| path.to_owned(), |path| format!("/{path}"));
        check_path(form, &path)?;
        let (host, port) = split_port(authority)?;
        let port = port.filter(|port| *port != form.usual_port());
        Ok(Self { form, user: user.to_owned(), host: normal_host(host)?, port, path })
    }

    /// The host in lower case without a final dot, IPv6 in brackets; empty for local paths.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port that a client connects to.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.form.usual_port())
    }

    /// True for a path on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.form, AddressForm::File | AddressForm::Path)
    }

    /// The form in which addresses are compared, as Argo CD has it: lower case, without `.git`, ssh in one form without
    /// its scheme.
    pub fn normal(&self) -> String {
        let path = self.path.to_lowercase();
        let path = path.strip_suffix(".git").unwrap_or(&path);
        if self.form == AddressForm::HostAndPath {
            return format!("{}:{}", self.host, path.trim_start_matches('/'));
        }
        let user = self.user.to_lowercase();
        let at = if user.is_empty() { "" } else { "@" };
        format!("{}{user}{at}{}{path}", self.form.shown_scheme(), self.authority())
    }

    /// True if the address names a user who is no part of the place: not that of ssh.
    fn has_user(&self) -> bool {
        !self.user.is_empty() && self.form != AddressForm::Ssh
    }

    /// The place alone: without the user of http, the path decoded, without empty steps, final slash and `.git`.
    /// A rule that forbids or demands something must match this form too: servers answer all its spellings.
    pub(crate) fn place(&self) -> String {
        let decoded = percent_decoded(&self.path).to_lowercase();
        let steps: Vec<&str> = decoded.split('/').filter(|step| !step.is_empty()).collect();
        let path = steps.join("/");
        let path = path.strip_suffix(".git").unwrap_or(&path);
        let user = if self.has_user() { String::new() } else { self.user.to_lowercase() };
        let at = if user.is_empty() { "" } else { "@" };
        format!("{}{user}{at}{}/{path}", self.form.shown_scheme(), self.authority())
    }

    /// The form for comparisons without the user of http, and with encoded slashes decoded; `None` if there are none. Some
    /// servers take `group%2Fproject` for one step (GitLab), others for two.
    pub(crate) fn with_slashes(&self) -> Option<String> {
        let written = self.without_user();
        written.contains("%2f").then(|| written.replace("%2f", "/"))
    }

    /// The form for comparisons without the user of http.
    pub(crate) fn without_user(&self) -> String {
        let user = if self.has_user() { String::new() } else { self.user.clone() };
        Self { user, ..self.clone() }.normal()
    }

    fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }
}

impl AddressForm {
    fn shown_scheme(self) -> &'static str {
        match self {
            Self::Http => "http://",
            Self::Https => "https://",
            Self::Git => "git://",
            Self::Oci => "oci://",
            Self::File => "file://",
            Self::Ssh | Self::HostAndPath | Self::Registry | Self::Path => "",
        }
    }

    fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https | Self::Oci | Self::Registry => 443,
            Self::Ssh | Self::HostAndPath => 22,
            Self::Git => 9418,
            Self::File | Self::Path => 0,
        }
    }
}

impl std::fmt::Debug for RepoAddress {
    /// Without the user: it may be a token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RepoAddress({:?} {}{})", self.form, self.authority(), self.path)
    }
}

/// The name or IP address of a host as all clients read it: in lower case, without a final dot, IPv6 in brackets.
/// Notations of IPv4 that some clients accept and others do not (`0x7f.1`, `2130706433`) are refused, and so are names
/// that are not ASCII: write `xn--…`.
pub fn normal_host(host: &str) -> Result<String, BadAddress> {
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').and_then(|inner| inner.parse::<Ipv6Addr>().ok());
        return address.map(|address| format!("[{address}]")).ok_or(BadAddress::Host);
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if host.len() > 253 || host.starts_with('-') || !host.split('.').all(is_label) {
        return Err(BadAddress::Host);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_number && host.parse::<Ipv4Addr>().is_err() {
        return Err(BadAddress::Host);
    }
    Ok(host)
}

/// White space and control characters, and characters that are not visible or change the direction of a text.
fn is_misleading(char: char) -> bool {
    char.is_whitespace()
        || char.is_control()
        || matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn split_scheme(text: &str) -> Result<(AddressForm, &str), BadAddress> {
    if text.starts_with('/') {
        return Ok((AddressForm::Path, text));
    }
    if let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '@'])) {
        let form = match scheme.to_ascii_lowercase().as_str() {
            "https" => AddressForm::Https,
            "http" => AddressForm::Http,
            "ssh" | "git+ssh" | "ssh+git" => AddressForm::Ssh,
            "git" => AddressForm::Git,
            "oci" => AddressForm::Oci,
            "file" if rest.starts_with('/') => AddressForm::File,
            "file" => return Err(BadAddress::Host),
            _ => return Err(BadAddress::Scheme),
        };
        return Ok((form, rest));
    }
    let authority = text.split('/').next().unwrap_or_default();
    // A remote helper of git.
    if authority.contains("::") && !authority.contains('[') {
        return Err(BadAddress::Scheme);
    }
    let form = match authority.rsplit_once('@') {
        Some((user, _)) if !user.contains(':') => AddressForm::Ssh,
        Some(_) => AddressForm::Registry,
        None => match authority.split_once(':') {
            Some((_, port)) if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) => {
                AddressForm::HostAndPath
            }
            Some(_) | None => AddressForm::Registry,
        },
    };
    Ok((form, text))
}

fn split_user(form: AddressForm, rest: &str) -> Result<(&str, &str), BadAddress> {
    let authority = rest.split('/').next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return Ok(("", rest)) };
    let name = user.split(':').next().unwrap_or_default();
    if name.contains('@') || (form == AddressForm::Ssh && user.contains('@')) {
        return Err(BadAddress::User);
    }
    // A client that ends the host at these characters would connect to the user.
    if user.contains(['\\', '?', '#']) {
        return Err(BadAddress::Characters);
    }
    Ok((user, rest.get(user.len() + 1..).unwrap_or_default()))
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), BadAddress> {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse::<u16>().ok().filter(|port| is_number && *port > 0);
            Ok((host, Some(port.ok_or(BadAddress::Host)?)))
        }
        _ => Ok((authority, None)),
    }
}

fn check_path(form: AddressForm, path: &str) -> Result<(), BadAddress> {
    // Servers behind proxies decode twice.
    let mut decoded = path.to_ascii_lowercase();
    for n_decoded in 0..3 {
        if has_dot_step(&decoded) {
            return Err(BadAddress::DotSegments);
        }
        // git decodes the paths of other protocols itself.
        let may_have_slash = n_decoded == 0 && matches!(form, AddressForm::Http | AddressForm::Https);
        if has_encoded_separator(&decoded, may_have_slash) {
            return Err(BadAddress::Encoded);
        }
        decoded = percent_decoded(&decoded);
    }
    Ok(())
}

/// True if a backslash or control character is encoded, or a slash, unless it may be and is inside a step.
fn has_encoded_separator(path: &str, may_have_slash: bool) -> bool {
    let is_bad = |byte: u8| byte < 0x20 || matches!(byte, b'\\' | 0x7f) || (byte == b'/' && !may_have_slash);
    let encoded =
        |first: usize| path.get(first + 1..first + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
    if path.match_indices('%').any(|(index, _)| encoded(index).is_some_and(is_bad)) {
        return true;
    }
    let is_at_an_end =
        |step: &str| step.starts_with("%2f") || step.ends_with("%2f") || step.contains("%2f%2f");
    path.split('/').any(is_at_an_end)
}

fn has_dot_step(path: &str) -> bool {
    path.split(['/', '\\', ':']).any(|step| step == "." || step == "..")
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let value = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(value.unwrap_or(*first));
        rest = if value.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_reading() {
        for (text, host, port, normal) in [
            ("https://GitHub.com/Org/Repo.git", "github.com", 443, "https://github.com/org/repo"),
            ("https://github.com:443/org/repo", "github.com", 443, "https://github.com/org/repo"),
            ("http://github.com.:80/org/repo", "github.com", 80, "http://github.com/org/repo"),
            ("https://host:8443/x", "host", 8443, "https://host:8443/x"),
            ("https://bob:p@ss@host/x", "host", 443, "https://bob:p@ss@host/x"),
            ("git@github.com:org/repo.git", "github.com", 22, "git@github.com/org/repo"),
            ("ssh://git@github.com:22/org/repo", "github.com", 22, "git@github.com/org/repo"),
            ("git+ssh://git@github.com/org/repo", "github.com", 22, "git@github.com/org/repo"),
            ("ssh://git@github.com:2222/org/repo", "github.com", 2222, "git@github.com:2222/org/repo"),
            ("git@github.com:2222/org/repo", "github.com", 22, "git@github.com/2222/org/repo"),
            ("github.com:org/repo", "github.com", 22, "github.com:org/repo"),
            ("git@host:~/repo", "host", 22, "git@host/~/repo"),
            ("oci://r.example.com/charts", "r.example.com", 443, "oci://r.example.com/charts"),
            (
                "registry.example.com:5000/charts",
                "registry.example.com",
                5000,
                "registry.example.com:5000/charts",
            ),
            ("u:p@registry/charts", "registry", 443, "u:p@registry/charts"),
            ("https://[::FFFF:127.0.0.1]/x", "[::ffff:127.0.0.1]", 443, "https://[::ffff:127.0.0.1]/x"),
            ("https://127.0.0.1/x", "127.0.0.1", 443, "https://127.0.0.1/x"),
            ("file:///srv/git/a?b.git", "", 0, "file:///srv/git/a?b"),
            ("/srv/git/a", "", 0, "/srv/git/a"),
            (
                "https://host/api/v4/projects/Group%2FProject/packages/helm/stable",
                "host",
                443,
                "https://host/api/v4/projects/group%2fproject/packages/helm/stable",
            ),
            (
                " https://dev.azure.com/org/_git/my%20repo ",
                "dev.azure.com",
                443,
                "https://dev.azure.com/org/_git/my%20repo",
            ),
        ] {
            let address = RepoAddress::parse(text).unwrap();
            assert_eq!(
                (address.host(), address.port(), address.normal()),
                (host, port, normal.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn addresses_with_two_readings_are_refused() {
        for (text, expected) in [
            ("", BadAddress::Empty),
            ("http://h/team-a/.\t./team-b", BadAddress::Characters),
            ("http://h/a\nb", BadAddress::Characters),
            ("http://h/a\u{200b}b", BadAddress::Characters),
            ("http://evil?.corp.example/charts", BadAddress::Characters),
            ("http://evil#.corp.example/charts", BadAddress::Characters),
            (r"http://evil\.corp.example/charts", BadAddress::Characters),
            (r"http://h/a\..\b", BadAddress::Characters),
            (r"https://evil\@host/x", BadAddress::Characters),
            ("https://evil?@host/x", BadAddress::Characters),
            ("https://h/a/../b", BadAddress::DotSegments),
            ("https://h/a/%2e%2E/b", BadAddress::DotSegments),
            ("https://h/a/.%2e/b", BadAddress::DotSegments),
            ("https://h/a/%252e%252e/b", BadAddress::DotSegments),
            ("https://h/./a", BadAddress::DotSegments),
            ("https://h/a/..", BadAddress::DotSegments),
            ("https://h/a%2f..%2fb", BadAddress::DotSegments),
            ("git@h:../a", BadAddress::DotSegments),
            ("/srv/../etc", BadAddress::DotSegments),
            ("https://h/a%5Cb", BadAddress::Encoded),
            ("https://h/a%0ab", BadAddress::Encoded),
            ("ftp://h/a", BadAddress::Scheme),
            ("ext::sh", BadAddress::Scheme),
            ("file://host/share", BadAddress::Host),
            ("https://https://host/x", BadAddress::Host),
            ("https:///x", BadAddress::Host),
            ("https://h:/x", BadAddress::Host),
            ("https://h:+1/x", BadAddress::Host),
            ("https://h:99999/x", BadAddress::Host),
            ("https://h..example/x", BadAddress::Host),
            ("https://-h/x", BadAddress::Host),
            ("https://%68ost/x", BadAddress::Host),
            ("https://b\u{fc}cher.example/x", BadAddress::Host),
            ("https://\u{ff45}vil.example/x", BadAddress::Host),
            ("http://0x7f.1/x", BadAddress::Host),
            ("http://2130706433/x", BadAddress::Host),
            ("http://0177.0.0.1/x", BadAddress::Host),
            ("http://127.1/x", BadAddress::Host),
            ("http://[::1%25eth0]/x", BadAddress::Host),
            ("git@0x7f.1:org/repo", BadAddress::Host),
            ("git@host@evil.example:org/repo", BadAddress::User),
            ("https://a@b:c@host/x", BadAddress::User),
        ] {
            assert_eq!(RepoAddress::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn encoded_separators_are_refused_where_they_have_two_readings() {
        for (text, expected) in [
            ("https://h/a%252fb", BadAddress::Encoded),
            ("https://h/a%25252fb", BadAddress::Encoded),
            ("https://h/%2fa", BadAddress::Encoded),
            ("https://h/a%2f", BadAddress::Encoded),
            ("https://h/a%2f/b", BadAddress::Encoded),
            ("https://h/a/%2Fb", BadAddress::Encoded),
            ("https://h/a%2f%2Fb", BadAddress::Encoded),
            ("https://h/a%2fb%00", BadAddress::Encoded),
            ("https://h/a%2500b", BadAddress::Encoded),
            ("https://h/a%255cb", BadAddress::Encoded),
            ("https://h/group%2f%2e%2e%2fother", BadAddress::DotSegments),
            ("https://h/group%2f..%2fother", BadAddress::DotSegments),
            ("https://h/group/..%2fother", BadAddress::DotSegments),
            ("https://h/group%2f.%2fother", BadAddress::DotSegments),
            ("https://h/group%252f%252e%252e", BadAddress::Encoded),
            ("ssh://git@h/a%2fb", BadAddress::Encoded),
            ("git@h:a%2fb", BadAddress::Encoded),
            ("git://h/a%2fb", BadAddress::Encoded),
            ("oci://h/a%2fb", BadAddress::Encoded),
            ("h/a%2fb", BadAddress::Encoded),
            ("file:///a%2fb", BadAddress::Encoded),
            ("/srv/a%2fb", BadAddress::Encoded),
            ("https://h%2fevil/a", BadAddress::Host),
        ] {
            assert_eq!(RepoAddress::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn spellings_of_one_place() {
        for (text, place) in [
            ("https://x@h//secret//a.git/", "https://h/secret/a"),
            ("https://h/s%65cret/a", "https://h/secret/a"),
            ("git+ssh://git@h/secret/a", "git@h/secret/a"),
            ("h:secret/a", "h/secret/a"),
            ("https://h/secret%2Fa", "https://h/secret/a"),
        ] {
            assert_eq!(RepoAddress::parse(text).unwrap().place(), place, "{text}");
        }
    }
}
