//! Single sign-on with `OpenID` Connect: the settings, the keys of the provider, tokens, and the login of browsers.

mod form;
mod config;
mod token;
mod sealed_state;
mod provider;
mod flow;
mod sso;

pub(crate) use flow::Redirect;
pub(crate) use sso::Sso;
pub(crate) use token::{accepts, unchecked_issuer};
