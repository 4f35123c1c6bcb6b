//! Charts from OCI registries.

use std::collections::BTreeMap;

use plumb_core::version::{Constraint, Version};
use reqwest::header::{LINK, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};

use super::error::ChartError;
use super::fetch::{Charts, FetchedChart, MAX_ARCHIVE};
use super::http::{Request, RequestCredentials, is_same_origin};
use super::index::newest_hint;
use super::query::ChartQuery;
use super::registry_wire::{self as wire, Challenge};
use super::repository::ChartRepository;

/// Largest manifest and largest answer of a token server, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Largest page of tags, in bytes.
const MAX_PAGE: usize = 4 << 20;
const MAX_PAGES: usize = 100;
/// Most tags of a chart.
const MAX_TAGS: usize = 50_000;

impl Charts {
    /// Pulls a chart. It is stored under the tag that was asked for.
    pub(super) async fn pull(&self, query: &ChartQuery<'_>) -> Result<FetchedChart, ChartError> {
        let mut registry = Registry::of(query)?;
        let tag = if Version::parse(query.version).is_some() {
            query.version.replace('+', "_")
        } else {
            registry.newest_tag(query).await?
        };
        let what = format!("chart `{}` {} of {}", query.name, as_version(&tag), query.repository.shown());
        let path = format!("manifests/{tag}");
        let manifest = registry.get(&path, &what, Some(wire::MANIFEST), MAX_ANSWER).await;
        let manifest = manifest.map_err(|error| not_found(query, error))?;
        let bad = |reason: &str| ChartError::Protocol { what: what.clone(), reason: reason.to_owned() };
        let layer = wire::chart_layer(&manifest).map_err(bad)?;
        if layer.size > MAX_ARCHIVE as u64 {
            return Err(ChartError::TooLarge { what, limit: MAX_ARCHIVE });
        }
        let version = as_version(&tag);
        if let Some(chart) = self.stored(query, &version, Some(layer.sha256.clone())).await {
            return Ok(FetchedChart { stored_as: version, chart });
        }
        let (request, response) =
            registry.send(&format!("blobs/sha256:{}", layer.sha256), &what, None).await?;
        let archive = request.file(request.checked(response)?, MAX_ARCHIVE, &self.archives.directory).await?;
        self.store(query, &version, archive, &layer.sha256).await
    }
}

/// A tag as a version: `+` is not allowed in tags, so Helm writes `_`.
fn as_version(tag: &str) -> String {
    tag.replace('_', "+")
}

fn not_found(query: &ChartQuery<'_>, error: ChartError) -> ChartError {
    match error {
        ChartError::Http { source, .. } if source.status() == Some(StatusCode::NOT_FOUND) => {
            ChartError::NotFound {
                repository: query.repository.shown(),
                name: query.name.to_owned(),
                version: query.version.to_owned(),
                hint: String::new(),
            }
        }
        other => other,
    }
}

/// One chart in a registry.
struct Registry<'a> {
    repository: &'a ChartRepository,
    /// `https://host/v2/path/chart/`
    base: Url,
    /// `path/chart`
    name: String,
    login: Login,
}

/// What the registry asked for.
enum Login {
    Unknown,
    Basic,
    Token(String),
}

impl<'a> Registry<'a> {
    fn of(query: &ChartQuery<'a>) -> Result<Self, ChartError> {
        let (server, path) = query.repository.registry()?;
        let name = format!("{path}/{}", query.name);
        let name = name.trim_start_matches('/').to_owned();
        let base = server.join(&format!("v2/{name}/"));
        let base = base.map_err(|_| ChartError::Url { url: query.repository.shown() })?;
        Ok(Self { repository: query.repository, base, name, login: Login::Unknown })
    }

    /// The newest tag that satisfies the constraint.
    async fn newest_tag(&mut self, query: &ChartQuery<'_>) -> Result<String, ChartError> {
        let what = format!("tags of chart `{}` of {}", query.name, query.repository.shown());
        let mut path = "tags/list".to_owned();
        let mut tags: BTreeMap<String, String> = BTreeMap::new();
        for _ in 0..MAX_PAGES {
            let (request, response) = self.send(&path, &what, None).await?;
            let response = request.checked(response).map_err(|error| not_found(query, error))?;
            let next =
                response.headers().get(LINK).and_then(|link| link.to_str().ok()).and_then(wire::next_page);
            let next = next.and_then(|next| response.url().join(next).ok());
            let next = next.filter(|next| is_same_origin(next, &self.base));
            let page = wire::tags(&request.bytes(response, MAX_PAGE).await?)
                .map_err(|reason| ChartError::Protocol { what: what.clone(), reason: reason.to_owned() })?;
            // Other tags are not versions of the chart.
            let versions = page.into_iter().filter(|tag| tag.len() <= 128);
            tags.extend(
                versions
                    .map(|tag| (as_version(&tag), tag))
                    .filter(|(text, _)| Version::parse(text).is_some()),
            );
            if tags.len() > MAX_TAGS {
                return Err(ChartError::Protocol {
                    what,
                    reason: format!("there are more than {MAX_TAGS} tags"),
                });
            }
            match next {
                Some(next) => next.as_str().clone_into(&mut path),
                None => break,
            }
        }
        let constraint = Constraint::parse(query.version);
        let newest = constraint.and_then(|constraint| constraint.newest(tags.keys().map(String::as_str)));
        newest.and_then(|version| tags.get(version)).cloned().ok_or_else(|| ChartError::NotFound {
            repository: query.repository.shown(),
            name: query.name.to_owned(),
            version: query.version.to_owned(),
            hint: newest_hint(tags.keys().map(String::as_str)),
        })
    }

    async fn get(
        &mut self,
        path: &str,
        what: &str,
        accept: Option<&str>,
        limit: usize,
    ) -> Result<Vec<u8>, ChartError> {
        let (request, response) = self.send(path, what, accept).await?;
        request.bytes(request.checked(response)?, limit).await
    }

    /// Sends a request, and once more if the registry asks for credentials.
    async fn send<'r>(
        &mut self,
        path: &str,
        what: &'r str,
        accept: Option<&'r str>,
    ) -> Result<(Request<'r>, Response), ChartError>
    where
        'a: 'r,
    {
        let address = self.base.join(path).map_err(|_| ChartError::Url { url: self.repository.shown() })?;
        let request = Request {
            repository: self.repository,
            address,
            credentials: RequestCredentials::None,
            accept,
            what,
        };
        let response = request.with(self.login.credentials()).send().await?;
        let mut headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenge = headers.find_map(|header| wire::challenge(header.to_str().ok()?));
        let is_refused = response.status() == StatusCode::UNAUTHORIZED;
        match challenge.filter(|_| is_refused && matches!(self.login, Login::Unknown)) {
            Some(challenge) => {
                self.login = self.log_in(challenge, what).await?;
                let response = request.with(self.login.credentials()).send().await?;
                Ok((request, response))
            }
            None => Ok((request, response)),
        }
    }

    async fn log_in(&self, challenge: Challenge, what: &str) -> Result<Login, ChartError> {
        let (realm, service, scope) = match challenge {
            Challenge::Basic => return Ok(Login::Basic),
            Challenge::Bearer { realm, service, scope } => (realm, service, scope),
        };
        let bad = |reason: &str| ChartError::Protocol { what: what.to_owned(), reason: reason.to_owned() };
        let mut address = Url::parse(&realm)
            .map_err(|_| bad("the registry names a token server without a valid address"))?;
        // The password goes there.
        if address.scheme() != "https"
            && !is_same_origin(&address, &self.base)
            && self.base.scheme() != "http"
        {
            return Err(bad("the registry names a token server that is not https"));
        }
        let scope = if scope.is_empty() { format!("repository:{}:pull", self.name) } else { scope };
        {
            let mut query = address.query_pairs_mut();
            if !service.is_empty() {
                query.append_pair("service", &service);
            }
            query.append_pair("scope", &scope);
        }
        let request = Request {
            repository: self.repository,
            address,
            credentials: RequestCredentials::Password,
            accept: None,
            what,
        };
        let answer = request.checked(request.send().await?)?;
        wire::token(&request.bytes(answer, MAX_ANSWER).await?).map(Login::Token).map_err(bad)
    }
}

impl Login {
    fn credentials(&self) -> RequestCredentials<'_> {
        match self {
            Self::Unknown => RequestCredentials::Certificate,
            Self::Basic => RequestCredentials::Repository,
            Self::Token(token) => RequestCredentials::Bearer(token),
        }
    }
}
