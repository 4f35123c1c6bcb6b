//! Requests to providers, and who answers them.

use std::collections::BTreeMap;
use std::fmt;

use crate::facts::Unanswered;

/// A request. It is its own key: the same request has the same answer within one generation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HttpCall {
    /// The whole URL.
    pub url: String,
    /// Such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// JSON to send with POST; without it the request is a GET.
    pub body: Option<String>,
    /// Do not verify the certificate.
    pub insecure: bool,
    /// Certificates of authorities in PEM, besides the usual ones.
    pub authorities: Option<String>,
}

/// Headers hold credentials: only the address is shown.
impl fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCall").field("url", &self.url).finish_non_exhaustive()
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScmAnswer {
    /// Status code.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// A Secret of the set's namespace.
#[derive(Clone, Default)]
pub struct SetSecret {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its data, decoded.
    pub data: BTreeMap<String, String>,
}

/// A GitHub App, as its Secret describes it.
#[derive(Clone)]
pub struct GithubApp {
    /// A signed statement of who asks. It is valid for some minutes.
    pub statement: String,
    /// Where the app is installed; `None`: in the organisation that is asked for.
    pub installation_id: Option<u64>,
    /// Address of the API of an enterprise; empty: GitHub's own.
    pub enterprise_base_url: String,
}

/// Which providers sets may ask.
#[derive(Clone, Debug)]
pub struct ScmRules {
    /// `applicationsetcontroller.enable.scm.providers`.
    pub enabled: bool,
    /// `applicationsetcontroller.allowed.scm.providers`; empty: all.
    pub allowed: Vec<String>,
    /// Without a list of permitted providers none may be asked: the set is not in Argo CD's namespace.
    pub needs_list: bool,
    /// `applicationsetcontroller.enable.tokenref.strict.mode`.
    pub strict_tokens: bool,
}

impl Default for ScmRules {
    fn default() -> Self {
        Self { enabled: true, allowed: Vec::new(), needs_list: false, strict_tokens: false }
    }
}

/// Answers of providers, and the credentials for them.
pub trait ScmFacts {
    /// The namespace of the set.
    fn namespace(&self) -> &str;
    /// A Secret of the set's namespace.
    fn set_secret(&self, name: &str) -> Result<SetSecret, Unanswered>;
    /// A `ConfigMap` of the set's namespace.
    fn set_config_map(&self, name: &str) -> Result<BTreeMap<String, String>, Unanswered>;
    /// The GitHub App of a Secret in Argo CD's namespace.
    fn github_app(&self, secret_name: &str) -> Result<GithubApp, Unanswered>;
    /// The answer to a request.
    fn http(&self, call: &HttpCall) -> Result<ScmAnswer, Unanswered>;
}
