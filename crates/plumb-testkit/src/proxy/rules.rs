//! Which requests suffer which fault, and what came.

use std::time::Duration;

use http::Method;
use parking_lot::{Mutex, MutexGuard};

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is passed on after a while.
    Delay(Duration),
    /// It is answered 429, with `Retry-After` in seconds.
    TooManyRequests {
        /// Seconds; the header allows no less than 0.
        retry_after: u32,
    },
    /// It is answered with an error of this status (500, 503, 403…), in the form of the API server.
    Error(u16),
    /// The connection closes without an answer. The request does not reach the API server.
    Drop,
    /// The request reaches the API server, and the connection closes before the answer: the
    /// client cannot know whether it was done.
    DropAnswer,
    /// It is answered 200 with this text, and does not reach the API server. There are no kubelets here, so
    /// only the proxy can play the log of a container.
    Answer(String),
    /// It is answered 410: the version asked for is too old.
    Gone,
    /// A watch starts well (200) and its first event is the error 410, then it ends: the other
    /// way in which the API server says that a version is too old.
    GoneInStream,
}

/// How often a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// So often, then no more.
    Exactly(usize),
    /// Until [`heal`](super::FaultProxy::heal).
    Always,
}

impl Times {
    /// One time.
    pub const ONCE: Self = Self::Exactly(1);
}

/// Which requests are meant. Everything that is set must fit.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    method: Option<Method>,
    contains: Vec<String>,
    watch: Option<bool>,
}

impl Requests {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose path and query contain the text.
    pub fn to(text: &str) -> Self {
        Self::all().and_to(text)
    }

    /// Only those whose path and query also contain the text.
    #[must_use]
    pub fn and_to(mut self, text: &str) -> Self {
        self.contains.push(text.to_owned());
        self
    }

    /// Only those with the method.
    #[must_use]
    pub fn with(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Only watches.
    #[must_use]
    pub fn watches(mut self) -> Self {
        self.watch = Some(true);
        self
    }

    /// Only what is not a watch.
    #[must_use]
    pub fn except_watches(mut self) -> Self {
        self.watch = Some(false);
        self
    }

    pub(super) fn fits(&self, request: &Recorded) -> bool {
        self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.contains.iter().all(|text| request.target.contains(text.as_str()))
            && self.watch.is_none_or(|watch| watch == request.watch)
    }
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// Whether it asked for a watch.
    pub watch: bool,
    /// The user agent of the client.
    pub user_agent: String,
    /// What was done to it.
    pub fault: Option<Fault>,
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    recorded: Vec<Recorded>,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    requests: Requests,
    times: Times,
}

impl Rules {
    pub(super) fn add(&self, fault: Fault, requests: Requests, times: Times) {
        self.lock().rules.push(Rule { fault, requests, times });
    }

    pub(super) fn clear(&self) {
        self.lock().rules.clear();
    }

    pub(super) fn recorded(&self) -> Vec<Recorded> {
        self.lock().recorded.clone()
    }

    /// Chooses the fault of a request, uses up its rule, and records both.
    pub(super) fn judge(&self, mut request: Recorded) -> Recorded {
        let mut inner = self.lock();
        let rule = inner
            .rules
            .iter_mut()
            .find(|rule| rule.times != Times::Exactly(0) && rule.requests.fits(&request));
        request.fault = rule.map(|rule| {
            if let Times::Exactly(left) = &mut rule.times {
                *left -= 1;
            }
            rule.fault.clone()
        });
        inner.recorded.push(request.clone());
        request
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can leave the lists half changed.
        self.inner.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, target: &str) -> Recorded {
        let watch = target.contains("watch=");
        Recorded { method, target: target.to_owned(), watch, user_agent: String::new(), fault: None }
    }

    #[test]
    fn rules_are_used_in_order_and_so_often() {
        let rules = Rules::default();
        let pods = || Requests::to("/pods");
        rules.add(Fault::Drop, pods().with(Method::POST), Times::ONCE);
        rules.add(Fault::Error(500), pods(), Times::Exactly(2));
        rules.add(Fault::Gone, pods().watches(), Times::Always);
        let ask = |method, target| rules.judge(request(method, target)).fault;
        assert_eq!(ask(Method::GET, "/api/v1/secrets"), None);
        assert_eq!(ask(Method::POST, "/api/v1/pods"), Some(Fault::Drop));
        assert_eq!(ask(Method::POST, "/api/v1/pods"), Some(Fault::Error(500)));
        assert_eq!(ask(Method::GET, "/api/v1/pods?watch=1"), Some(Fault::Error(500)));
        assert_eq!(ask(Method::GET, "/api/v1/pods"), None);
        assert_eq!(ask(Method::GET, "/api/v1/pods?watch=1"), Some(Fault::Gone));
        assert_eq!(rules.recorded().len(), 6);
        rules.clear();
        assert_eq!(rules.judge(request(Method::GET, "/api/v1/pods?watch=1")).fault, None);
    }
}
