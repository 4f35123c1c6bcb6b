//! What must hold for any text that is used as the address of a repository or a submodule. Shared with the fuzz target
//! `git_addresses`.

use plumb_core::source::{RepoAddress, normal_host};
use plumb_git::{RepoUrl, Transport};

/// Repositories whose submodules have any address.
const BASES: [&str; 5] = [
    "https://git.example.com:8443/team/app.git",
    "ssh://git@git.example.com/team/app.git",
    "git@git.example.com:team/app.git",
    "git.example.com:app",
    "/srv/git/app.git",
];

/// Reading never panics, and what is accepted has one meaning. Returns true if the text is an address.
pub(crate) fn any_text(text: &str) -> bool {
    for base in BASES {
        let base = RepoUrl::parse(base).expect("the base is an address");
        if let Ok(submodule) = base.submodule(text) {
            has_one_meaning(&submodule);
            let is_relative = text.starts_with("./") || text.starts_with("../");
            assert!(!is_relative || submodule.host() == base.host(), "{base} and {text:?}");
        }
    }
    let Ok(url) = RepoUrl::parse(text) else { return false };
    has_one_meaning(&url);
    if url.transport() != Transport::File {
        let judged = RepoAddress::parse(text).expect("a project can judge what git is sent to");
        assert_eq!(judged.host(), host_of(&url), "{text:?}");
    }
    true
}

fn has_one_meaning(url: &RepoUrl) {
    let text = url.as_str();
    let first = text.split('/').next().unwrap_or_default();
    let names_helper = first.contains("::") && !first.contains('[');
    assert!(!text.starts_with('-') && !names_helper && !text.contains(char::is_control), "{text:?}");
    let again = RepoUrl::parse(text).expect("it is an address");
    assert_eq!((again.as_str(), again.identity()), (text, url.identity()), "{text:?}");
    if url.transport() != Transport::File {
        let judged = RepoAddress::parse(text).expect("a project can judge what git is sent to");
        assert_eq!(judged.host(), host_of(url), "{text:?}");
        assert!(!url.username().is_some_and(|user| user.starts_with('-')), "{text:?}");
    }
}

/// The host as projects write it, without its port.
fn host_of(url: &RepoUrl) -> String {
    let host = match url.host().rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        Some(_) | None => url.host(),
    };
    normal_host(host).expect("it is a host")
}
