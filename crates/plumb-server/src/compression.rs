//! Compressed answers.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, header};

use crate::body::AnswerBody;

/// Answers shorter than this are not worth compressing.
const FROM: usize = 1400;
/// Longer ones take a thread on which they delay no other answer.
const ELSEWHERE_FROM: usize = 256 << 10;

/// Compresses an answer that is whole, long, and not compressed yet, if the client reads that.
pub(crate) async fn compressed(headers: &HeaderMap, answer: Response<AnswerBody>) -> Response<AnswerBody> {
    let is_plain = !answer.headers().contains_key(header::CONTENT_ENCODING);
    let whole = answer.body().whole().filter(|bytes| is_plain && bytes.len() >= FROM);
    let Some(plain) = whole.filter(|_| takes_gzip(headers)) else { return answer };
    let packed = if plain.len() < ELSEWHERE_FROM {
        gzip(&plain)
    } else {
        tokio::task::spawn_blocking(move || gzip(&plain)).await.ok().flatten()
    };
    let Some(packed) = packed else { return answer };
    let mut answer = answer.map(|_| AnswerBody::full(packed));
    answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    answer
}

fn gzip(plain: &Bytes) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain).and_then(|()| encoder.finish()).ok()
}

/// True if the client reads gzip. A weight of zero means that it does not.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http_body_util::BodyExt as _;

    use super::*;

    fn accepting(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))])
    }

    #[test]
    fn a_client_says_what_it_reads() {
        for (text, expected) in
            [("gzip", true), ("br, GZIP;q=0.5", true), ("gzip; q=0", false), ("identity", false), ("", false)]
        {
            assert_eq!(takes_gzip(&accepting(text)), expected, "{text}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn long_answers_are_compressed_and_streams_are_not() {
        let headers = accepting("gzip");
        for length in [FROM, ELSEWHERE_FROM] {
            let text = "x".repeat(length);
            let answer = compressed(&headers, Response::new(AnswerBody::full(text.clone()))).await;
            assert_eq!(answer.headers()[header::CONTENT_ENCODING], "gzip");
            let packed = answer.into_body().collect().await.unwrap().to_bytes();
            let mut plain = String::new();
            flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut plain).unwrap();
            assert_eq!(plain, text);
        }
        let (_sender, frames) = tokio::sync::mpsc::channel(1);
        for body in [AnswerBody::full("short"), AnswerBody::stream(frames)] {
            let answer = compressed(&headers, Response::new(body)).await;
            assert!(!answer.headers().contains_key(header::CONTENT_ENCODING));
        }
    }
}
