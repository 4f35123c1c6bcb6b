//! Asks one provider.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_core::source::RepoAddress;
use plumb_crd::application_set::{BasicAuth, BearerToken, ConfigMapKeyRef, SecretRef};
use serde_json::Value as Json;

use super::call::{HttpCall, ScmAnswer, ScmFacts, ScmRules, SetSecret};
use crate::facts::Unanswered;

/// Most pages of one list.
const MOST_PAGES: usize = 200;
const CREDENTIALS_LABEL: &str = "argocd.argoproj.io/secret-type";

/// Why a provider gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScmError {
    NotYet,
    /// 404.
    NotFound(String),
    Failed(String),
}

impl From<Unanswered> for ScmError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotYet => Self::NotYet,
            Unanswered::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<ScmError> for Unanswered {
    fn from(error: ScmError) -> Self {
        match error {
            ScmError::NotYet => Self::NotYet,
            ScmError::NotFound(reason) | ScmError::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl ScmError {
    pub(super) fn during(self, what: &str) -> Self {
        match self {
            Self::NotYet => Self::NotYet,
            Self::NotFound(reason) => Self::NotFound(format!("{what}: {reason}")),
            Self::Failed(reason) => Self::Failed(format!("{what}: {reason}")),
        }
    }
}

/// Asks for all items, even if the answer to one is not there yet: all open requests are sent together.
pub(super) fn each<T, U>(
    items: impl IntoIterator<Item = T>,
    mut ask: impl FnMut(T) -> Result<U, ScmError>,
) -> Result<Vec<U>, ScmError> {
    let mut found = Vec::new();
    let mut is_open = false;
    for item in items {
        match ask(item) {
            Ok(one) => found.push(one),
            Err(ScmError::NotYet) => is_open = true,
            Err(error) => return Err(error),
        }
    }
    if is_open { Err(ScmError::NotYet) } else { Ok(found) }
}

/// One provider with its credentials.
pub(super) struct Client<'a> {
    facts: &'a dyn ScmFacts,
    base: String,
    headers: Vec<(String, String)>,
    trust: Trust,
}

/// Which certificates of a provider are accepted.
#[derive(Clone, Default)]
pub(super) struct Trust {
    /// All of them.
    pub(super) insecure: bool,
    /// Those of these authorities in PEM, too.
    pub(super) authorities: Option<String>,
}

/// How the next page is found.
pub(super) enum Paging {
    /// A `Link` header with `rel="next"`.
    Link,
    /// `X-Next-Page` has the number of the page.
    NextPage,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        facts: &'a dyn ScmFacts,
        base: &str,
        headers: Vec<(String, String)>,
        trust: Trust,
    ) -> Self {
        Self { facts, base: base.trim_end_matches('/').to_owned(), headers, trust }
    }

    fn answer(&self, url: &str) -> Result<ScmAnswer, ScmError> {
        self.answer_to(url, None)
    }

    fn answer_to(&self, url: &str, body: Option<&str>) -> Result<ScmAnswer, ScmError> {
        let call = HttpCall {
            url: url.to_owned(),
            headers: self.headers.clone(),
            body: body.map(str::to_owned),
            insecure: self.trust.insecure,
            authorities: self.trust.authorities.clone(),
        };
        let answer = self.facts.http(&call)?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let message = serde_json::from_str::<Json>(&answer.body).ok();
        let message =
            message.and_then(|body| body["message"].as_str().map(str::to_owned)).unwrap_or_default();
        let verb = if body.is_some() { "POST" } else { "GET" };
        let reason = format!("{verb} {url}: {} {message}", answer.status).trim_end().to_owned();
        Err(if answer.status == 404 { ScmError::NotFound(reason) } else { ScmError::Failed(reason) })
    }

    /// One object or list.
    pub(super) fn get(&self, path: &str) -> Result<Json, ScmError> {
        let url = format!("{}{path}", self.base);
        let answer = self.answer(&url)?;
        read(&url, &answer)
    }

    /// The answer to a POST.
    pub(super) fn post(&self, path: &str, body: &str) -> Result<Json, ScmError> {
        let url = format!("{}{path}", self.base);
        let answer = self.answer_to(&url, Some(body))?;
        read(&url, &answer)
    }

    /// True if there is something at the path.
    pub(super) fn exists(&self, path: &str) -> Result<bool, ScmError> {
        match self.answer(&format!("{}{path}", self.base)) {
            Ok(_) => Ok(true),
            Err(ScmError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All items of a list, page by page.
    pub(super) fn pages(&self, path: &str, paging: &Paging) -> Result<Vec<Json>, ScmError> {
        let first = format!("{}{path}", self.base);
        let mut url = first.clone();
        let mut items = Vec::new();
        for _ in 0..MOST_PAGES {
            let answer = self.answer(&url)?;
            match read(&url, &answer)? {
                Json::Array(page) => items.extend(page),
                _ => return Err(ScmError::Failed(format!("GET {url}: the answer is not a list"))),
            }
            let header = |name: &str| answer.headers.get(name).map(String::as_str).unwrap_or_default();
            let page = match paging {
                Paging::Link => next_page(header("link")),
                Paging::NextPage => Some(header("x-next-page").trim()).filter(|page| !page.is_empty()),
            };
            // Only the number counts: requests go where the set sends them, and so do its credentials.
            let Some(page) = page else { return Ok(items) };
            if !page.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ScmError::Failed(format!("GET {url}: the next page has no number")));
            }
            let separator = if first.contains('?') { '&' } else { '?' };
            url = format!("{first}{separator}page={page}");
        }
        Err(ScmError::Failed(format!("GET {first}: the list has more than {MOST_PAGES} pages")))
    }

    /// All items of a list of Bitbucket Server.
    pub(super) fn bitbucket_pages(&self, path: &str) -> Result<Vec<Json>, ScmError> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut next = format!("{path}{separator}limit=100");
        let mut items = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = self.get(&next)?;
            let values = page["values"].as_array().ok_or_else(|| {
                ScmError::Failed(format!("GET {}{next}: the answer has no list", self.base))
            })?;
            items.extend(values.iter().cloned());
            if page["isLastPage"] != false {
                return Ok(items);
            }
            let start = page["nextPageStart"].as_u64().ok_or_else(|| {
                ScmError::Failed(format!(
                    "GET {}{next}: the answer does not say where the list goes on",
                    self.base
                ))
            })?;
            next = format!("{path}{separator}limit=100&start={start}");
        }
        Err(ScmError::Failed(format!("GET {}{path}: the list has more than {MOST_PAGES} pages", self.base)))
    }
}

/// An HTML page of a proxy in trouble is no empty list.
fn read(url: &str, answer: &ScmAnswer) -> Result<Json, ScmError> {
    serde_json::from_str(&answer.body)
        .map_err(|_| ScmError::Failed(format!("GET {url}: the answer is not JSON")))
}

/// Is the URL a place of this server? `https://host.evil` is none of `https://host`.
pub(super) fn is_below(url: &str, base: &str) -> bool {
    url.strip_prefix(base).is_some_and(|rest| rest.starts_with(['/', '?']))
}

/// The number of the next page in a `Link` header; empty if the link has none.
fn next_page(header: &str) -> Option<&str> {
    let next = header.split(',').find(|link| link.contains("rel=\"next\""))?;
    let (url, _) = next.split_once('<')?.1.split_once('>')?;
    let (_, query) = url.split_once('?').unwrap_or_default();
    Some(query.split('&').find_map(|pair| pair.strip_prefix("page=")).unwrap_or("-"))
}

/// The value of a key of a Secret in the set's namespace.
pub(super) fn secret(
    facts: &dyn ScmFacts,
    rules: &ScmRules,
    api: &str,
    reference: Option<&SecretRef>,
) -> Result<Option<String>, ScmError> {
    let Some(SecretRef { secret_name, key }) = reference else { return Ok(None) };
    let namespace = facts.namespace();
    let secret = facts.set_secret(secret_name).map_err(ScmError::from);
    let secret =
        secret.map_err(|error| error.during(&format!("error fetching secret {namespace}/{secret_name}")))?;
    if is_of_control_plane(secret_name, &secret) {
        return Err(ScmError::Failed(format!(
            "secret {namespace}/{secret_name} belongs to Argo CD or plumb; a token of an SCM provider has to be in a Secret of its own"
        )));
    }
    if let Some(why) = other_use(api, &secret) {
        return Err(ScmError::Failed(format!(
            "secret {namespace}/{secret_name} {why}; a token of an SCM provider has to be in a Secret of its own"
        )));
    }
    if rules.strict_tokens && secret.labels.get(CREDENTIALS_LABEL).map(String::as_str) != Some("scm-creds") {
        return Err(ScmError::Failed(format!(
            "secret {namespace}/{secret_name} is not a valid SCM creds secret: secret must have label \
             \"{CREDENTIALS_LABEL}\"=\"scm-creds\""
        )));
    }
    let missing = || ScmError::Failed(format!("key {key:?} in secret {namespace}/{secret_name} not found"));
    secret.data.get(key).cloned().map(Some).ok_or_else(missing)
}

/// Secrets with which plumb itself works: the key that signs tokens, logins, clusters, copies of deleted objects. The author of
/// a set names the server that gets the token, so none of these may be one.
fn is_of_control_plane(name: &str, secret: &SetSecret) -> bool {
    matches!(name, "argocd-secret" | "argocd-initial-admin-secret")
        || secret.labels.get(CREDENTIALS_LABEL).map(String::as_str) == Some("cluster")
        || secret.labels.keys().any(|label| label.starts_with("plumb.dev/"))
}

/// Why a Secret is for something else than a token for this API, if so. The login of a repository may be used for the API of
/// the same server; without an address, the API is the provider's own.
fn other_use(api: &str, secret: &SetSecret) -> Option<&'static str> {
    let has = |key: &str| secret.data.contains_key(key);
    if has("tls.key") {
        return Some("holds the key of a certificate");
    }
    if has(".dockerconfigjson") || has(".dockercfg") {
        return Some("holds logins of registries");
    }
    if has("token") && has("ca.crt") && has("namespace") {
        return Some("holds the token of a service account");
    }
    let label = secret.labels.get(CREDENTIALS_LABEL).map(String::as_str).unwrap_or_default();
    let is_repository = ["repository", "repository-write", "repo-creds", "repo-write-creds"].contains(&label);
    let url = secret.data.get("url").map(String::as_str).unwrap_or_default();
    if !is_repository || api.is_empty() || is_same_server(api, url) {
        return None;
    }
    Some("is for a repository of another server")
}

/// True if both addresses are of one server. The API of some providers is on a host of its own below the same name.
fn is_same_server(api: &str, url: &str) -> bool {
    let host = |address: &str| RepoAddress::parse(address).ok().map(|address| address.host().to_owned());
    let (Some(api), Some(url)) = (host(api), host(url)) else { return false };
    api == url || api.strip_prefix("api.") == Some(url.as_str())
}

/// The certificates of authorities in a `ConfigMap` of the set's namespace.
pub(super) fn authorities(
    facts: &dyn ScmFacts,
    reference: Option<&ConfigMapKeyRef>,
) -> Result<Option<String>, ScmError> {
    let Some(ConfigMapKeyRef { config_map_name, key }) = reference else { return Ok(None) };
    let data = facts.set_config_map(config_map_name)?;
    let namespace = facts.namespace();
    let missing =
        || ScmError::Failed(format!("key {key:?} in ConfigMap {namespace}/{config_map_name} not found"));
    data.get(key).cloned().map(Some).ok_or_else(missing)
}

/// The `Authorization` header of Bitbucket.
pub(super) fn bitbucket_login(
    facts: &dyn ScmFacts,
    rules: &ScmRules,
    api: &str,
    basic: Option<&BasicAuth>,
    bearer: Option<&BearerToken>,
) -> Result<Vec<(String, String)>, ScmError> {
    let header = |value: String| vec![("Authorization".to_owned(), value)];
    let token = secret(facts, rules, api, bearer.map(|bearer| &bearer.token_ref));
    if let Some(token) = token.map_err(|error| error.during("error fetching Secret Bearer token"))? {
        return Ok(header(format!("Bearer {token}")));
    }
    let Some(basic) = basic else { return Ok(Vec::new()) };
    let password = secret(facts, rules, api, Some(&basic.password_ref));
    let password = password.map_err(|error| error.during("error fetching Secret token"))?.unwrap_or_default();
    Ok(header(basic_login(&basic.username, &password)))
}

pub(super) fn basic_login(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A text as one segment of a path, or as the value of a query.
pub(super) fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut escaped = String::new();
    for byte in text.bytes() {
        if plain(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.extend(
                [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])),
            );
        }
    }
    escaped
}

/// A text of an answer.
pub(super) fn text(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The texts at a key of each item.
pub(super) fn names(list: &Json, key: &str) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| text(&item[key])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_on_the_same_server() {
        let header =
            "<https://a.test/x?page=1>; rel=\"prev\", <https://b.test/x?per_page=9&page=3>; rel=\"next\"";
        assert_eq!(next_page(header), Some("3"));
        assert_eq!(next_page("<https://a.test/x>; rel=\"next\""), Some("-"));
        assert_eq!(next_page("<https://a.test/x>; rel=\"last\""), None);
        for (url, expected) in [
            ("https://a.test/x", true),
            ("https://a.test?x", true),
            ("https://a.test.evil/x", false),
            ("https://a.test@evil/x", false),
            ("https://b.test/x", false),
        ] {
            assert_eq!(is_below(url, "https://a.test"), expected, "{url}");
        }
    }

    #[test]
    fn texts_are_escaped_as_one_segment() {
        assert_eq!(escape("release/1.x ü"), "release%2F1.x%20%C3%BC");
    }

    #[test]
    fn a_secret_for_something_else_is_no_token() {
        let secret = |label: &str, data: &[(&str, &str)]| SetSecret {
            labels: [(CREDENTIALS_LABEL.to_owned(), label.to_owned())].into(),
            data: data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        let check = |api: &str, label: &str, data: &[(&str, &str)], expected: bool| {
            assert_eq!(other_use(api, &secret(label, data)).is_some(), expected, "{api} {label} {data:?}");
        };
        let of_git = [("url", "https://git.example.com/org"), ("password", "p")];
        for label in ["repository", "repo-creds"] {
            check("https://evil.example.com/api/v3", label, &of_git, true);
            check("https://git.example.com:8443/api/v3", label, &of_git, false);
            check("https://api.git.example.com", label, &of_git, false);
            check("https://git.example.com.evil.com", label, &of_git, true);
            check("https://git.example.com", label, &[("password", "p")], true);
            check("", label, &of_git, false);
        }
        check("https://evil.example.com", "scm-creds", &[("token", "t")], false);
        check("https://evil.example.com", "", &[("tls.crt", "c"), ("tls.key", "k")], true);
        check("https://evil.example.com", "", &[(".dockerconfigjson", "{}")], true);
        check("https://evil.example.com", "", &[("token", "t"), ("ca.crt", "c"), ("namespace", "n")], true);
    }

    #[test]
    fn no_secret_of_the_control_plane_is_a_token() {
        let secret = |label: &str, value: &str| SetSecret {
            labels: [(label.to_owned(), value.to_owned())].into(),
            ..SetSecret::default()
        };
        for (name, label, value, expected) in [
            ("argocd-secret", "app.kubernetes.io/part-of", "argocd", true),
            ("argocd-initial-admin-secret", "a", "b", true),
            ("cluster-west", CREDENTIALS_LABEL, "cluster", true),
            ("plumb-tombstone-1", "plumb.dev/app", "argocd.shop", true),
            ("github-token", CREDENTIALS_LABEL, "scm-creds", false),
            ("github-token", "a", "b", false),
        ] {
            assert_eq!(is_of_control_plane(name, &secret(label, value)), expected, "{name}");
        }
    }
}
