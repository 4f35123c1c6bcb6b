//! Asks one provider.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumb_crd::application_set::{BasicAuth, BearerToken, ConfigMapKeyRef, SecretRef};
use serde_json::Value as Json;

use super::call::{HttpCall, ScmAnswer, ScmFacts, ScmRules};
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
            match page["nextPageStart"].as_u64().filter(|_| page["isLastPage"] == false) {
                Some(start) => next = format!("{path}{separator}limit=100&start={start}"),
                None => return Ok(items),
            }
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
    reference: Option<&SecretRef>,
) -> Result<Option<String>, ScmError> {
    let Some(SecretRef { secret_name, key }) = reference else { return Ok(None) };
    let secret = facts.set_secret(secret_name)?;
    let namespace = facts.namespace();
    if rules.strict_tokens && secret.labels.get(CREDENTIALS_LABEL).map(String::as_str) != Some("scm-creds") {
        return Err(ScmError::Failed(format!(
            "secret {namespace}/{secret_name} is not a valid SCM creds secret: secret must have label \
             \"{CREDENTIALS_LABEL}\"=\"scm-creds\""
        )));
    }
    let missing = || ScmError::Failed(format!("key {key:?} in secret {namespace}/{secret_name} not found"));
    secret.data.get(key).cloned().map(Some).ok_or_else(missing)
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
    basic: Option<&BasicAuth>,
    bearer: Option<&BearerToken>,
) -> Result<Vec<(String, String)>, ScmError> {
    let header = |value: String| vec![("Authorization".to_owned(), value)];
    if let Some(token) = secret(facts, rules, bearer.map(|bearer| &bearer.token_ref))? {
        return Ok(header(format!("Bearer {token}")));
    }
    let Some(basic) = basic else { return Ok(Vec::new()) };
    let password = secret(facts, rules, Some(&basic.password_ref))?.unwrap_or_default();
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
}
