//! Identifies the sender of a webhook and verifies it.

use aws_lc_rs::{constant_time, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use plumb_crd::settings::{SecretText, WebhookSecrets};

/// A kind of Git server, or the generic sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    AzureDevOps,
    /// Also Gitea and Forgejo, which sign like Gogs.
    Gogs,
    GitHub,
    GitLab,
    BitbucketCloud,
    BitbucketServer,
    /// Any sender that signs its body as GitHub does and sends plumb's own format.
    Generic,
}

/// What remains to be verified after the headers.
pub(super) enum Proof {
    /// Nothing: no secret is set for any sender, so the sender is not known.
    NotAsked,
    /// Nothing: the headers verified the sender.
    Given,
    /// The body must have this signature.
    Signature(Box<Signature>),
}

/// A signature that a body must have.
pub(super) struct Signature {
    key: hmac::Key,
    tag: Vec<u8>,
}

impl Signature {
    /// Compares in constant time.
    pub(super) fn signs(&self, body: &[u8]) -> bool {
        hmac::verify(&self.key, body, &self.tag).is_ok()
    }
}

impl Sender {
    const ALL: [Self; 7] = [
        Self::AzureDevOps,
        Self::Gogs,
        Self::GitHub,
        Self::GitLab,
        Self::BitbucketCloud,
        Self::BitbucketServer,
        Self::Generic,
    ];

    /// True if a secret is configured for the sender.
    fn has_secret(self, secrets: &WebhookSecrets) -> bool {
        match self {
            Self::AzureDevOps => {
                secrets.azure_devops_username.is_some() || secrets.azure_devops_password.is_some()
            }
            Self::Gogs => secrets.gogs.is_some(),
            Self::GitHub => secrets.github.is_some(),
            Self::GitLab => secrets.gitlab.is_some(),
            Self::BitbucketCloud => secrets.bitbucket_uuid.is_some(),
            Self::BitbucketServer => secrets.bitbucket_server.is_some(),
            Self::Generic => secrets.generic.is_some(),
        }
    }

    /// Identified by the headers. Gogs and its forks also send GitHub's headers, so they are checked first.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        const KNOWN: [(&str, Sender); 8] = [
            ("x-vss-activityid", Sender::AzureDevOps),
            ("x-gitea-event", Sender::Gogs),
            ("x-gogs-event", Sender::Gogs),
            ("x-github-event", Sender::GitHub),
            ("x-gitlab-event", Sender::GitLab),
            ("x-hook-uuid", Sender::BitbucketCloud),
            ("x-event-key", Sender::BitbucketServer),
            ("x-plumb-event", Sender::Generic),
        ];
        KNOWN.iter().find(|(header, _)| headers.contains_key(*header)).map(|(_, sender)| *sender)
    }

    /// For logs and metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AzureDevOps => "azuredevops",
            Self::Gogs => "gogs",
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::BitbucketCloud => "bitbucket",
            Self::BitbucketServer => "bitbucketserver",
            Self::Generic => "generic",
        }
    }

    /// The kind of event, as the sender calls it.
    pub(super) fn event(self, headers: &HeaderMap) -> String {
        let names: &[&str] = match self {
            Self::AzureDevOps => &[],
            Self::Gogs => &["x-gitea-event", "x-gogs-event"],
            Self::GitHub => &["x-github-event"],
            Self::GitLab => &["x-gitlab-event"],
            Self::BitbucketCloud | Self::BitbucketServer => &["x-event-key"],
            Self::Generic => &["x-plumb-event"],
        };
        names.iter().find_map(|name| text(headers, name)).unwrap_or_default().to_owned()
    }

    /// Verifies what does not need the body. As in Argo CD, senders are accepted if no secret is configured: a webhook
    /// only triggers a refresh. As soon as one sender has a secret, senders without one are refused: otherwise the
    /// header of another sender would evade the secret. The generic sender always needs a secret.
    pub(super) fn check_head(
        self,
        headers: &HeaderMap,
        secrets: &WebhookSecrets,
    ) -> Result<Proof, &'static str> {
        if !self.has_secret(secrets) {
            let has_any =
                secrets.harbor.is_some() || Self::ALL.iter().any(|sender| sender.has_secret(secrets));
            return match self {
                Self::Generic => Err("webhook.generic.secret is not set"),
                _ if has_any => Err("other senders have a secret, this one has none"),
                _ => Ok(Proof::NotAsked),
            };
        }
        match self {
            Self::AzureDevOps => {
                let expose = |text: &Option<SecretText>| {
                    text.as_ref().map(|text| text.expose().to_owned()).unwrap_or_default()
                };
                let (username, password) = (&secrets.azure_devops_username, &secrets.azure_devops_password);
                let expected = format!("{}:{}", expose(username), expose(password));
                let given = text(headers, "authorization")
                    .and_then(|value| value.strip_prefix("Basic "))
                    .and_then(|encoded| STANDARD.decode(encoded.trim()).ok())
                    .ok_or("the user and password are missing")?;
                same(&given, expected.as_bytes()).ok_or("the user or password is wrong")
            }
            Self::GitLab => token(headers, "x-gitlab-token", secrets.gitlab.as_ref()),
            Self::BitbucketCloud => token(headers, "x-hook-uuid", secrets.bitbucket_uuid.as_ref()),
            Self::Gogs => {
                let tag = text(headers, "x-gitea-signature").or_else(|| text(headers, "x-gogs-signature"));
                signature(tag, secrets.gogs.as_ref())
            }
            Self::GitHub => signature(sha256_of(headers, "x-hub-signature-256"), secrets.github.as_ref()),
            Self::BitbucketServer => {
                signature(sha256_of(headers, "x-hub-signature"), secrets.bitbucket_server.as_ref())
            }
            Self::Generic => signature(sha256_of(headers, "x-hub-signature-256"), secrets.generic.as_ref()),
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn sha256_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    text(headers, name)?.strip_prefix("sha256=")
}

fn same(given: &[u8], expected: &[u8]) -> Option<Proof> {
    constant_time::verify_slices_are_equal(given, expected).is_ok().then_some(Proof::Given)
}

fn token(headers: &HeaderMap, name: &str, secret: Option<&SecretText>) -> Result<Proof, &'static str> {
    let secret = secret.ok_or("no secret is set")?;
    let given = text(headers, name).ok_or("the token is missing")?;
    same(given.as_bytes(), secret.expose().as_bytes()).ok_or("the token is wrong")
}

fn signature(tag: Option<&str>, secret: Option<&SecretText>) -> Result<Proof, &'static str> {
    let secret = secret.ok_or("no secret is set")?;
    let tag = tag.ok_or("the signature is missing")?;
    let tag = unhex(tag).ok_or("the signature is not hexadecimal")?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    Ok(Proof::Signature(Box::new(Signature { key, tag })))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .trim()
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn secrets() -> WebhookSecrets {
        let secret = |text: &str| Some(SecretText::new(text));
        WebhookSecrets {
            github: secret("It's a Secret to Everybody"),
            gitlab: secret("lab"),
            bitbucket_uuid: secret("{u-u}"),
            bitbucket_server: secret("It's a Secret to Everybody"),
            gogs: secret("It's a Secret to Everybody"),
            azure_devops_username: secret("user"),
            azure_devops_password: secret("pass"),
            harbor: None,
            generic: secret("It's a Secret to Everybody"),
        }
    }

    /// GitHub's own example: its secret, its body, its signature.
    const BODY: &[u8] = b"Hello, World!";
    const TAG: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn proves(pairs: &[(&'static str, &str)], body: &[u8]) -> bool {
        let headers = headers(pairs);
        match Sender::of(&headers).unwrap().check_head(&headers, &secrets()) {
            Ok(Proof::Given | Proof::NotAsked) => true,
            Ok(Proof::Signature(signature)) => signature.signs(body),
            Err(_) => false,
        }
    }

    #[test]
    fn every_sender_proves_who_it_is_in_its_own_way() {
        let signed = format!("sha256={TAG}");
        let basic = format!("Basic {}", STANDARD.encode("user:pass"));
        let good: [&[(&'static str, &str)]; 8] = [
            &[("x-github-event", "push"), ("x-hub-signature-256", &signed)],
            &[("x-gogs-event", "push"), ("x-gogs-signature", TAG)],
            &[("x-gitea-event", "push"), ("x-gitea-signature", TAG), ("x-github-event", "push")],
            &[("x-event-key", "repo:refs_changed"), ("x-hub-signature", &signed)],
            &[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "lab")],
            &[("x-hook-uuid", "{u-u}"), ("x-event-key", "repo:push")],
            &[("x-vss-activityid", "1"), ("authorization", &basic)],
            &[("x-plumb-event", "push"), ("x-hub-signature-256", &signed)],
        ];
        for headers in good {
            assert!(proves(headers, BODY), "{headers:?}");
        }
        let other = STANDARD.encode("user:other");
        let other = format!("Basic {other}");
        let bad: [&[(&'static str, &str)]; 10] = [
            &[("x-github-event", "push")],
            &[("x-github-event", "push"), ("x-hub-signature-256", TAG)],
            &[("x-github-event", "push"), ("x-hub-signature-256", "sha256=zz")],
            &[("x-github-event", "push"), ("x-hub-signature-256", "sha256=")],
            &[("x-github-event", "push"), ("x-hub-signature", "sha1=00")],
            &[("x-gogs-event", "push"), ("x-hub-signature-256", &signed)],
            &[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "lab2")],
            &[("x-hook-uuid", "{other}"), ("x-event-key", "repo:push")],
            &[("x-vss-activityid", "1"), ("authorization", &other)],
            &[("x-plumb-event", "push")],
        ];
        for headers in bad {
            assert!(!proves(headers, BODY), "{headers:?}");
        }
        for headers in &good[..4] {
            assert!(!proves(headers, b"Hello, World?"), "another body: {headers:?}");
        }
    }

    #[test]
    fn without_any_secret_nothing_is_asked_except_of_the_generic_sender() {
        let none = WebhookSecrets::default();
        let push = headers(&[("x-github-event", "push")]);
        assert!(matches!(Sender::GitHub.check_head(&push, &none), Ok(Proof::NotAsked)));
        let push = headers(&[("x-plumb-event", "push")]);
        assert!(Sender::Generic.check_head(&push, &none).is_err());
        assert_eq!(Sender::of(&HeaderMap::new()), None);
    }

    #[test]
    fn the_header_of_another_sender_does_not_evade_a_secret() {
        let only_github = WebhookSecrets { github: Some(SecretText::new("s")), ..WebhookSecrets::default() };
        let none = HeaderMap::new();
        for sender in Sender::ALL {
            let answer = sender.check_head(&none, &only_github);
            assert!(answer.is_err(), "{}", sender.name());
        }
        let user_only =
            WebhookSecrets { azure_devops_username: Some(SecretText::new("u")), ..WebhookSecrets::default() };
        assert!(Sender::AzureDevOps.check_head(&none, &user_only).is_err());
        assert!(Sender::GitHub.check_head(&none, &user_only).is_err());
    }
}
