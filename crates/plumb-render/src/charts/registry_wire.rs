//! What OCI registries answer, read from bytes.

use serde::Deserialize;

/// Media types of a chart's archive, the second from the time before Helm 3.7.
const CHART_LAYERS: [&str; 2] =
    ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// The media type that a chart's manifest has.
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Most layers of a manifest. A chart has one, and perhaps a signature.
const MAX_LAYERS: usize = 64;

/// The archive that a manifest names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChartLayer {
    /// 64 hexadecimal digits of sha256.
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// The chart's archive; an error says why there is none. Addresses in the manifest (`urls`) are not used: the registry
/// itself has the archive.
pub(super) fn chart_layer(manifest: &[u8]) -> Result<ChartLayer, &'static str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Manifest {
        #[serde(default)]
        layers: Vec<Layer>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Layer {
        #[serde(default)]
        media_type: String,
        #[serde(default)]
        digest: String,
        #[serde(default)]
        size: u64,
    }
    let manifest: Manifest =
        serde_json::from_slice(manifest).map_err(|_| "the manifest is not valid JSON")?;
    if manifest.layers.len() > MAX_LAYERS {
        return Err("the manifest has too many layers");
    }
    let mut charts =
        manifest.layers.into_iter().filter(|layer| CHART_LAYERS.contains(&layer.media_type.as_str()));
    let (Some(layer), None) = (charts.next(), charts.next()) else {
        return Err("the manifest is not that of a Helm chart");
    };
    let sha256 = layer.digest.strip_prefix("sha256:").unwrap_or_default().to_owned();
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if !is_digest {
        return Err("the manifest has no sha256 digest of the chart");
    }
    Ok(ChartLayer { sha256, size: layer.size })
}

/// The tags of one page.
pub(super) fn tags(page: &[u8]) -> Result<Vec<String>, &'static str> {
    #[derive(Deserialize)]
    struct Tags {
        #[serde(default)]
        tags: Option<Vec<String>>,
    }
    let tags: Tags = serde_json::from_slice(page).map_err(|_| "the list of tags is not valid JSON")?;
    Ok(tags.tags.unwrap_or_default())
}

/// Where the next page is, from the header `Link`: `</v2/…>; rel="next"`.
pub(super) fn next_page(link: &str) -> Option<&str> {
    let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    parameters.split(';').any(|text| matches!(text.trim(), "rel=\"next\"" | "rel=next")).then_some(address)
}

/// The token that a token server gives.
pub(super) fn token(answer: &[u8]) -> Result<String, &'static str> {
    #[derive(Deserialize)]
    struct Token {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        access_token: Option<String>,
    }
    let answer: Token =
        serde_json::from_slice(answer).map_err(|_| "the token server's answer is not valid JSON")?;
    let token = answer.token.filter(|token| !token.is_empty()).or(answer.access_token).unwrap_or_default();
    // It becomes a part of a header.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the token server gives no usable token");
    }
    Ok(token)
}

/// What a registry asks for, from the header `WWW-Authenticate`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password.
    Basic,
    /// A token of this server.
    Bearer { realm: String, service: String, scope: String },
}

pub(super) fn challenge(header: &str) -> Option<Challenge> {
    let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (String::new(), String::new(), String::new());
    let mut rest = parameters;
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        match name.trim_matches([',', ' ']).to_ascii_lowercase().as_str() {
            "realm" => value.clone_into(&mut realm),
            "service" => value.clone_into(&mut service),
            "scope" => value.clone_into(&mut scope),
            _ => {}
        }
        rest = after;
    }
    (!realm.is_empty()).then_some(Challenge::Bearer { realm, service, scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_name_one_archive() {
        let layer = |kind: &str, digest: &str| {
            format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":7,"urls":["http://x"]}}"#)
        };
        let manifest =
            |layers: &[String]| format!(r#"{{"schemaVersion":2,"layers":[{}]}}"#, layers.join(","));
        let (chart, digest) = (CHART_LAYERS[0], format!("sha256:{}", "a".repeat(64)));
        let good = manifest(&[layer("text/plain", &digest), layer(chart, &digest)]);
        assert_eq!(chart_layer(good.as_bytes()), Ok(ChartLayer { sha256: "a".repeat(64), size: 7 }));
        for bad in [
            "{".to_owned(),
            "{}".to_owned(),
            "[]".to_owned(),
            manifest(&[layer("text/plain", &digest)]),
            manifest(&[layer(chart, &digest), layer(chart, &digest)]),
            manifest(&[layer(chart, "sha256:../../x")]),
            manifest(&[layer(chart, &format!("sha512:{}", "a".repeat(64)))]),
            manifest(&vec![layer("text/plain", &digest); MAX_LAYERS + 1]),
        ] {
            assert!(chart_layer(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_of_registries() {
        assert_eq!(
            tags(br#"{"name":"x","tags":["1.0.0","a"]}"#),
            Ok(vec!["1.0.0".to_owned(), "a".to_owned()])
        );
        assert_eq!(tags(br#"{"tags":null}"#), Ok(Vec::new()));
        assert_eq!(
            next_page("</v2/x/tags/list?last=a&n=2>; rel=\"next\""),
            Some("/v2/x/tags/list?last=a&n=2")
        );
        assert_eq!(next_page("</v2/x>; rel=\"prev\""), None);
        assert_eq!(token(br#"{"token":"t"}"#).as_deref(), Ok("t"));
        assert_eq!(token(br#"{"token":"","access_token":"a"}"#).as_deref(), Ok("a"));
        assert!(token(br#"{"token":"a\r\nX: y"}"#).is_err());
        assert!(token(b"{}").is_err());
        let bearer = |realm: &str, service: &str, scope: &str| {
            let [realm, service, scope] = [realm, service, scope].map(str::to_owned);
            Some(Challenge::Bearer { realm, service, scope })
        };
        for (header, expected) in [
            ("Basic realm=\"x\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                "Bearer realm=\"https://a/token\",service=\"s\",scope=\"repository:x:pull,push\"",
                bearer("https://a/token", "s", "repository:x:pull,push"),
            ),
            ("bearer Realm=https://a/token, service=s", bearer("https://a/token", "s", "")),
            ("Bearer realm=\"open", None),
            ("Bearer", None),
            ("Negotiate", None),
            ("", None),
        ] {
            assert_eq!(challenge(header), expected, "{header}");
        }
    }
}
