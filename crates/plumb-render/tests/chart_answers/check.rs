//! What holds for any bytes that a chart server answers. Shared with the fuzz target `chart_answers`.

use plumb_render::answers;

/// No panic, and no more versions than the limit.
pub(crate) fn any_bytes(bytes: &[u8]) {
    let n_versions = answers::index_versions(bytes, "web");
    assert!(n_versions.unwrap_or(0) <= 20_000);
    let digest = answers::manifest_digest(bytes);
    assert!(digest.is_none_or(|digest| digest.len() == 64));
    let token = answers::token(bytes);
    assert!(token.is_none_or(|token| token.bytes().all(|byte| byte.is_ascii_graphic())));
    let _ = answers::n_tags(bytes);
    assert!(answers::archive_files(bytes).unwrap_or(0) <= 1000);
    if let Ok(header) = std::str::from_utf8(bytes) {
        answers::headers(header);
    }
}
