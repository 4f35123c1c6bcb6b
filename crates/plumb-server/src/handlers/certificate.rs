//! Certificates of Git servers, and the keys of SSH servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use plumb_api::Status;
use plumb_core::glob::Glob;
use serde_json::{Value, json};
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;

use super::config_map;
use crate::call::{Answer, Call};

/// The keys of SSH servers, in the format of `known_hosts`.
const SSH: (&str, &str) = ("argocd-ssh-known-hosts-cm", "ssh_known_hosts");
/// The certificates of servers, by name.
const TLS: &str = "argocd-tls-certs-cm";
/// Most certificates of one server, and most bytes of one request's entry.
const MOST_CERTIFICATES: usize = 100;
const LARGEST: usize = 1 << 20;

/// Which entries a request means.
struct Wanted {
    host: Option<Glob>,
    kind: String,
    sub_kind: String,
}

impl Wanted {
    fn of(call: &Call) -> Result<Self, Status> {
        let pattern = call.text("hostNamePattern");
        let host = if pattern.is_empty() || pattern == "*" {
            None
        } else {
            Some(
                Glob::plain(pattern)
                    .map_err(|error| Status::invalid(format!("host name pattern: {error}")))?,
            )
        };
        Ok(Self {
            host,
            kind: call.text("certType").to_owned(),
            sub_kind: call.text("certSubType").to_owned(),
        })
    }

    fn has_kind(&self, kind: &str) -> bool {
        self.kind.is_empty() || self.kind == "*" || self.kind == kind
    }

    fn has(&self, host: &str, kind: &str, sub_kind: &str) -> bool {
        self.has_kind(kind)
            && self.host.as_ref().is_none_or(|pattern| pattern.matches(host))
            && (self.sub_kind.is_empty() || self.sub_kind == "*" || self.sub_kind == sub_kind)
    }
}

/// A line of `known_hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostKey {
    host: String,
    kind: String,
    key: String,
}

impl HostKey {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let mut words = line.split_whitespace();
        let (host, kind, key) = (words.next()?, words.next()?, words.next()?);
        Some(Self { host: host.to_owned(), kind: kind.to_owned(), key: key.to_owned() })
    }

    fn line(&self) -> String {
        format!("{} {} {}", self.host, self.kind, self.key)
    }

    fn shown(&self) -> Value {
        let bytes = STANDARD.decode(&self.key).unwrap_or_default();
        let fingerprint = STANDARD_NO_PAD.encode(digest(&SHA256, &bytes));
        json!({"serverName": self.host, "certType": "ssh", "certSubType": self.kind,
            "certInfo": format!("SHA256:{fingerprint}")})
    }
}

/// The certificates of a server. The first tells what to show, as in Argo CD.
fn shown_certificates(host: &str, text: &str) -> Vec<Value> {
    let each = Pem::iter_from_buffer(text.as_bytes()).take(MOST_CERTIFICATES).filter_map(Result::ok);
    each.filter_map(|pem| {
        let certificate = pem.parse_x509().ok()?;
        let kind = match certificate.public_key().parsed() {
            Ok(PublicKey::RSA(_)) => "rsa",
            Ok(PublicKey::EC(_)) => "ecdsa",
            Ok(PublicKey::DSA(_)) => "dsa",
            _ => "unknown",
        };
        let subject = certificate.subject().to_string();
        Some(json!({"serverName": host, "certType": "https", "certSubType": kind, "certInfo": subject}))
    })
    .collect()
}

fn host_keys(text: &str) -> Vec<HostKey> {
    text.lines().filter_map(HostKey::parse).collect()
}

pub(super) async fn list(call: Arc<Call>) -> Result<Answer, Status> {
    let wanted = Wanted::of(&call)?;
    let mut items = Vec::new();
    if wanted.has_kind("ssh") {
        let data = config_map::read(&call, SSH.0).await?;
        let keys = data.get(SSH.1).map(|text| host_keys(text)).unwrap_or_default();
        let seen = keys.iter().filter(|key| wanted.has(&key.host, "ssh", &key.kind));
        items.extend(seen.map(HostKey::shown));
    }
    if wanted.has_kind("https") {
        for (host, text) in config_map::read(&call, TLS).await? {
            let sub_kind = |shown: &Value| shown["certSubType"].as_str().unwrap_or_default().to_owned();
            let shown = shown_certificates(&host, &text);
            items.extend(shown.into_iter().filter(|shown| wanted.has(&host, "https", &sub_kind(shown))));
        }
    }
    Ok(answer(&items))
}

fn answer(items: &[Value]) -> Answer {
    Answer::One(json!({"metadata": {}, "items": items}))
}

/// An entry of a request.
struct Sent {
    host: String,
    kind: String,
    sub_kind: String,
    data: String,
}

fn sent(call: &Call) -> Result<Vec<Sent>, Status> {
    let items = call.request.pointer("/certificates/items").and_then(Value::as_array);
    let items = items
        .filter(|items| !items.is_empty())
        .ok_or_else(|| Status::invalid("no certificates are given"))?;
    let mut read = Vec::new();
    for item in items {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let data = STANDARD.decode(text("certData")).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let data = data.filter(|data| data.len() <= LARGEST && !data.trim().is_empty());
        let data = data.ok_or_else(|| Status::invalid("a certificate has no readable data"))?;
        let sent =
            Sent { host: text("serverName"), kind: text("certType"), sub_kind: text("certSubType"), data };
        check(&sent)?;
        read.push(sent);
    }
    Ok(read)
}

/// Names and keys become lines of a file, so they must not hold ends of lines or blanks.
fn check(sent: &Sent) -> Result<(), Status> {
    let is_host = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
    if sent.host.is_empty() || sent.host.len() > 253 || !sent.host.chars().all(is_host) {
        return Err(Status::invalid("a server name is not valid"));
    }
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic());
    match sent.kind.as_str() {
        "ssh" if is_word(&sent.sub_kind) && is_word(sent.data.trim()) => STANDARD
            .decode(sent.data.trim())
            .map(drop)
            .map_err(|_| Status::invalid("the key of a server is not base64")),
        "ssh" => Err(Status::invalid("the key of a server is not one word")),
        "https" if sent.host.contains([':', '[', ']']) => {
            Err(Status::invalid("the name of a server with a certificate has no port"))
        }
        "https" if shown_certificates(&sent.host, &sent.data).is_empty() => {
            Err(Status::invalid("the data holds no certificate in PEM format"))
        }
        "https" => Ok(()),
        other => Err(Status::invalid(format!("certificate type {other:?} is neither ssh nor https"))),
    }
}

/// Adds keys. A key that is there with another value is replaced only with `upsert`.
fn add_host_keys(
    data: &mut BTreeMap<String, String>,
    sent: &[&Sent],
    upsert: bool,
) -> Result<Vec<Value>, Status> {
    let text = data.get(SSH.1).cloned().unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut added = Vec::new();
    for sent in sent {
        let new = HostKey {
            host: sent.host.clone(),
            kind: sent.sub_kind.clone(),
            key: sent.data.trim().to_owned(),
        };
        let place = lines.iter_mut().find(|line| {
            HostKey::parse(line).is_some_and(|known| known.host == new.host && known.kind == new.kind)
        });
        match place {
            None => lines.push(new.line()),
            Some(line) if HostKey::parse(line).as_ref() == Some(&new) => continue,
            Some(line) if upsert => *line = new.line(),
            Some(_) => {
                return Err(Status::invalid(format!(
                    "Key for '{}' (subtype: '{}') already exist and upsert was not specified.",
                    new.host, new.kind
                )));
            }
        }
        added.push(new.shown());
    }
    if !added.is_empty() {
        data.insert(SSH.1.to_owned(), format!("{}\n", lines.join("\n").trim_end()));
    }
    Ok(added)
}

fn add_certificates(
    data: &mut BTreeMap<String, String>,
    sent: &[&Sent],
    upsert: bool,
) -> Result<Vec<Value>, Status> {
    let mut added = Vec::new();
    for sent in sent {
        match data.get(&sent.host) {
            Some(known) if known.trim() == sent.data.trim() => continue,
            Some(_) if !upsert => {
                return Err(Status::invalid(format!(
                    "TLS certificate for server '{}' already exist, and upsert was not specified.",
                    sent.host
                )));
            }
            _ => {}
        }
        data.insert(sent.host.clone(), sent.data.clone());
        added.extend(shown_certificates(&sent.host, &sent.data));
    }
    Ok(added)
}

pub(super) async fn create(call: Arc<Call>) -> Result<Answer, Status> {
    let sent = sent(&call)?;
    let upsert = call.flag("upsert") == Some(true);
    let of = |kind: &str| -> Vec<&Sent> { sent.iter().filter(|sent| sent.kind == kind).collect() };
    let (ssh, https) = (of("ssh"), of("https"));
    let mut added = Vec::new();
    if !ssh.is_empty() {
        added.extend(config_map::change(&call, SSH.0, |data| add_host_keys(data, &ssh, upsert)).await?);
    }
    if !https.is_empty() {
        added.extend(config_map::change(&call, TLS, |data| add_certificates(data, &https, upsert)).await?);
    }
    Ok(answer(&added))
}

pub(super) async fn delete(call: Arc<Call>) -> Result<Answer, Status> {
    let wanted = Wanted::of(&call)?;
    let mut removed = Vec::new();
    if wanted.has_kind("ssh") {
        removed.extend(config_map::change(&call, SSH.0, |data| Ok(remove_host_keys(data, &wanted))).await?);
    }
    if wanted.has_kind("https") {
        let gone = config_map::change(&call, TLS, |data| {
            let mut gone = Vec::new();
            data.retain(|host, text| {
                if !wanted.has(host, "https", &wanted.sub_kind) {
                    return true;
                }
                gone.extend(shown_certificates(host, text));
                false
            });
            Ok(gone)
        });
        removed.extend(gone.await?);
    }
    Ok(answer(&removed))
}

fn remove_host_keys(data: &mut BTreeMap<String, String>, wanted: &Wanted) -> Vec<Value> {
    let Some(text) = data.get(SSH.1).cloned() else { return Vec::new() };
    let mut gone = Vec::new();
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| match HostKey::parse(line) {
            Some(key) if wanted.has(&key.host, "ssh", &key.kind) => {
                gone.push(key.shown());
                false
            }
            _ => true,
        })
        .collect();
    if !gone.is_empty() {
        let mut text = kept.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        data.insert(SSH.1.to_owned(), text);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(host: &str, key: &str) -> Sent {
        Sent {
            host: host.to_owned(),
            kind: "ssh".to_owned(),
            sub_kind: "ssh-rsa".to_owned(),
            data: key.to_owned(),
        }
    }

    #[test]
    fn keys_are_added_replaced_and_removed() {
        let mut data =
            BTreeMap::from([(SSH.1.to_owned(), "# comment\nold.example.com ssh-rsa AAAA\n".to_owned())]);
        let new = ssh("git.example.com", "QUJD");
        assert_eq!(add_host_keys(&mut data, &[&new], false).unwrap().len(), 1);
        assert_eq!(add_host_keys(&mut data, &[&new], false).unwrap().len(), 0, "it is there");
        let other = ssh("git.example.com", "REVG");
        assert!(add_host_keys(&mut data, &[&other], false).is_err());
        assert_eq!(add_host_keys(&mut data, &[&other], true).unwrap().len(), 1);
        let wanted =
            Wanted { host: Glob::plain("git.*").ok(), kind: "ssh".to_owned(), sub_kind: String::new() };
        assert_eq!(remove_host_keys(&mut data, &wanted).len(), 1);
        assert_eq!(data[SSH.1], "# comment\nold.example.com ssh-rsa AAAA\n");
    }

    #[test]
    fn a_name_cannot_bring_a_line_of_its_own() {
        for host in ["a b", "a\nb", "", "a,b", "#a"] {
            assert!(check(&ssh(host, "QUJD")).is_err(), "{host:?}");
        }
        for key in ["QUJD\nx y z", "", "no base64!"] {
            assert!(check(&ssh("a", key)).is_err(), "{key:?}");
        }
        assert!(check(&ssh("[a.example.com]:2222", "QUJD")).is_ok());
    }
}
