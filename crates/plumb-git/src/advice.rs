//! What a user can do about a failed connection, from the messages of git, ssh and the TLS library.
//!
//! These give only text. plumb does not decide by it: it only chooses the advice.

use crate::access::RepoAccess;
use crate::command::CommandError;
use crate::url::{RepoUrl, Transport};

/// The advice for this error, with Argo CD's names of the settings.
pub(crate) fn advice(url: &RepoUrl, access: &RepoAccess, error: &CommandError) -> String {
    const GENERAL: &str = "check its address, the network and the credentials";
    let CommandError::Failed { message, .. } = error else { return GENERAL.to_owned() };
    let said = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let found = match url.transport() {
        Transport::Ssh => ssh(url, access, says),
        Transport::Https => tls(url, access, &says).or_else(|| http(access, &says)),
        Transport::Http => http(access, &says),
        Transport::Git | Transport::File => None,
    };
    found.unwrap_or_else(|| GENERAL.to_owned())
}

fn ssh(url: &RepoUrl, access: &RepoAccess, says: impl Fn(&[&str]) -> bool) -> Option<String> {
    let (name, port) = host_and_port(url);
    let port = port.map_or_else(String::new, |port| format!("-p {port} "));
    let line = format!(
        "the line that `ssh-keyscan {port}{name}` prints, once the server's administrator has confirmed it, to \
         `ssh_known_hosts` in the ConfigMap argocd-ssh-known-hosts-cm"
    );
    if says(&["identification has changed", "host key for"]) {
        return Some(format!(
            "the server's host key differs from the known one, which may be an attack; if the key was changed on \
             purpose, replace the old one with {line}"
        ));
    }
    if says(&["host key verification failed", "host key is known"]) {
        return Some(format!("the server's host key is not known: add {line}"));
    }
    if says(&["load key", "invalid format", "error in libcrypto", "incorrect passphrase"]) {
        return Some(
            "`sshPrivateKey` in the repository's Secret is not a private key that ssh can use: it must be complete, in \
             PEM or OpenSSH form, and without passphrase"
                .to_owned(),
        );
    }
    if says(&["permission denied"]) {
        let what = if access.ssh.private_key.is_some() {
            "the server does not accept the key of the repository's Secret (`sshPrivateKey`): add its public half \
             there, or use another key"
        } else {
            "the server wants a key: put one that it accepts into the repository's Secret as `sshPrivateKey`"
        };
        return Some(what.to_owned());
    }
    None
}

fn tls(url: &RepoUrl, access: &RepoAccess, says: &dyn Fn(&[&str]) -> bool) -> Option<String> {
    // The server's own message comes first: it was sent over a connection whose certificate was accepted.
    if let Some(advice) = client_certificate(access, says) {
        return Some(advice);
    }
    if says(&[
        "verification failed",
        "ssl certificate problem",
        "self-signed",
        "self signed",
        "no alternative",
    ]) {
        let (name, _) = host_and_port(url);
        return Some(format!(
            "the server's certificate is not trusted: put the CA certificate (PEM) that signed it into the \
             ConfigMap argocd-tls-certs-cm under the key `{name}`"
        ));
    }
    if says(&[
        "error reading x.509",
        "error setting certificate",
        "could not load",
        "unable to set private key",
        "private key file",
    ]) {
        return Some(
            "the client certificate of the repository's Secret cannot be used: `tlsClientCertData` and \
             `tlsClientCertKey` must be PEM and belong to each other"
                .to_owned(),
        );
    }
    None
}

/// What to do about a server that asks for a client certificate. Some TLS libraries report only that the server closed
/// the connection, and its last message is lost if the client was sending at that moment.
fn client_certificate(access: &RepoAccess, says: &dyn Fn(&[&str]) -> bool) -> Option<String> {
    let is_certain = says(&[
        "certificate is required",
        "certificate required",
        "bad certificate",
        "certificate_unknown",
        "unknown ca",
        "ca is unknown",
    ]);
    let is_likely = says(&["fatal alert", "handshake failure"]);
    let is_possible = says(&[
        "send failure",
        "recv failure",
        "broken pipe",
        "connection reset",
        "endpoint is not connected",
        "unexpected eof",
    ]);
    let doubt = match (is_certain, is_likely, is_possible) {
        (true, _, _) => "",
        (false, true, _) => "closed the connection and most likely ",
        (false, false, true) => "closed the connection and perhaps ",
        (false, false, false) => return None,
    };
    let what = if access.tls.client_certificate.is_some() {
        "does not accept the client certificate of the repository's Secret (`tlsClientCertData`): is it signed by the \
         CA that the server asks for, and still valid?"
    } else {
        "wants a client certificate: put one into the repository's Secret as `tlsClientCertData` and \
         `tlsClientCertKey`"
    };
    Some(format!("the server {doubt}{what}"))
}

fn http(access: &RepoAccess, says: &dyn Fn(&[&str]) -> bool) -> Option<String> {
    if !says(&[
        "authentication failed",
        "could not read username",
        "could not read password",
        "error: 401",
        "error: 403",
    ]) {
        return None;
    }
    let has_credentials = access.password.is_some() || access.bearer_token.is_some();
    let what = if has_credentials {
        "the server does not accept the credentials of the repository's Secret: are they still valid, and may they \
         read this repository?"
    } else {
        "the server wants credentials: put `username` and `password` (or a token) into the repository's Secret"
    };
    Some(what.to_owned())
}

fn host_and_port(url: &RepoUrl) -> (&str, Option<&str>) {
    match url.host().rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        Some(_) | None => (url.host(), None),
    }
}
