//! Single sign-on as the settings have it now.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tracing::warn;

use super::config::OidcConfig;
use super::flow::{Flow, Redirect, begin};
use super::provider::Provider;
use crate::state::State;

/// Single sign-on. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sso(Arc<Shared>);

struct Shared {
    state: State,
    flow: Flow,
    provider: Mutex<Option<Arc<Provider>>>,
}

impl Sso {
    pub(crate) fn new(state: State) -> Self {
        Self(Arc::new(Shared { state, flow: Flow::default(), provider: Mutex::default() }))
    }

    /// The settings; `None` if there are none, or if they cannot be read.
    pub(crate) fn config(&self) -> Option<OidcConfig> {
        let read = OidcConfig::read(&self.0.state.config(), &self.0.state.named_values());
        read.unwrap_or_else(|reason| {
            warn!(reason, "cannot use oidc.config of argocd-cm");
            None
        })
    }

    /// The provider, with its keys. Other settings make another one.
    fn provider(&self) -> Result<Arc<Provider>, String> {
        let config = self.config().ok_or("single sign-on is not configured")?;
        let mut known = self.0.provider.lock();
        if let Some(provider) = known.as_ref().filter(|provider| provider.config == config) {
            return Ok(Arc::clone(provider));
        }
        let provider = Arc::new(Provider::new(config)?);
        *known = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// The claims of a token of the provider.
    pub(crate) async fn verify(&self, token: &str, now: i64) -> Result<Map<String, Value>, String> {
        let provider = self.provider()?;
        let mut claims = provider.verify(token, None, now).await?;
        // The names of project roles and of API keys are not for a provider to give.
        if claims.get("sub").and_then(Value::as_str).is_some_and(|subject| subject.starts_with("proj:")) {
            return Err("the subject of the token is reserved".to_owned());
        }
        self.0.flow.add_groups(&provider, &mut claims, now)?;
        Ok(claims)
    }

    /// Begins the login of a browser.
    pub(crate) async fn begin(&self, return_url: &str, now: i64) -> Result<Redirect, String> {
        let key = self.0.state.signing_key().ok_or("the server has no key yet")?;
        let provider = self.provider()?;
        begin(&provider, &self.0.state.addresses(), return_url, &key, now).await
    }

    /// Ends the login of a browser.
    pub(crate) async fn end(
        &self,
        state: &str,
        code: &str,
        cookie: &str,
        now: i64,
    ) -> Result<Redirect, String> {
        let key = self.0.state.signing_key().ok_or("the server has no key yet")?;
        let provider = self.provider()?;
        self.0.flow.end(&provider, &self.0.state.addresses(), (state, code), cookie, (&key, now)).await
    }
}
