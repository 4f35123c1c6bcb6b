//! What clients say that they are.

use http::{HeaderMap, HeaderValue, header};

/// What a client says that it is, so that it can be logged.
pub(crate) fn agent_of(headers: &HeaderMap) -> String {
    short(headers.get(header::USER_AGENT))
}

/// Where a proxy says that a request comes from.
pub(crate) fn forwarded_of(headers: &HeaderMap) -> String {
    short(headers.get("x-forwarded-for"))
}

/// One short line for the log.
fn short(value: Option<&HeaderValue>) -> String {
    let text = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.chars().filter(|letter| !letter.is_control()).take(80).collect()
}

/// The program that a client says it is, as far as plumb knows it: the number of names in metrics is bounded.
pub(crate) fn client_name(agent: &str) -> &'static str {
    let known = [
        ("argocd-client", "argocd"),
        ("terraform", "terraform"),
        ("backstage", "backstage"),
        ("grpc-go", "grpc-go"),
        ("grpc-", "grpc"),
        ("Mozilla", "browser"),
        ("curl", "curl"),
        ("python", "python"),
        ("Go-http-client", "go"),
    ];
    let lower = agent.to_lowercase();
    let found = known.into_iter().find(|(part, _)| lower.contains(&part.to_lowercase()));
    found.map_or("other", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_a_part_of_what_they_say() {
        for (agent, name) in [
            ("argocd-client/v3.6.0 grpc-go/1.80", "argocd"),
            ("Terraform/1.9", "terraform"),
            ("grpc-node-js/1", "grpc"),
            ("somebody", "other"),
            ("", "other"),
        ] {
            assert_eq!(client_name(agent), name, "{agent}");
        }
    }

    #[test]
    fn the_log_gets_one_short_line() {
        let said = |text: &[u8]| {
            let value = HeaderValue::from_bytes(text).unwrap();
            agent_of(&HeaderMap::from_iter([(header::USER_AGENT, value)]))
        };
        assert_eq!(said(b"a\tb"), "ab");
        assert_eq!(said(&[b'b'; 200]).len(), 80);
        assert_eq!(agent_of(&HeaderMap::new()), "");
        let proxied = HeaderMap::from_iter([(
            "x-forwarded-for".parse().unwrap(),
            "10.0.0.1, 10.0.0.2".parse().unwrap(),
        )]);
        assert_eq!(forwarded_of(&proxied), "10.0.0.1, 10.0.0.2");
    }
}
