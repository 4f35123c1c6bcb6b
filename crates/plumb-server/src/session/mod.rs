//! Who is asking: logins, tokens, and how often a login may fail.

mod authenticate;
mod first_start;
mod limits;
mod login;

pub(crate) use authenticate::{COOKIE, Identity, Sessions, cookie_token};
pub(crate) use first_start::prepare;
pub(crate) use login::hash;
