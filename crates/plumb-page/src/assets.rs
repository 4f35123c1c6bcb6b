//! The bundle that the build embeds.

/// One file of the bundle. Its name has a hash of its content, so it never changes.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// Its bytes.
    pub plain: &'static [u8],
    /// The same, compressed.
    pub gzip: &'static [u8],
}

static ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file by its name.
pub fn asset(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// The document, for a page below `base` (a path that ends with a slash). `None` if plumb was built without a page.
pub fn index_html(base: &str) -> Option<String> {
    document(base, &ASSETS.iter().map(|asset| asset.name).collect::<Vec<_>>())
}

fn document(base: &str, names: &[&str]) -> Option<String> {
    let find = |end: &str| names.iter().find(|name| name.ends_with(end));
    let (script, style) = (find(".js")?, find(".css")?);
    let base = escape(base);
    Some(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <base href=\"{base}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"plumb-build\" content=\"{script}\">\n\
         <title>plumb</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <link rel=\"stylesheet\" href=\"assets/{style}\">\n\
         <script type=\"module\" src=\"assets/{script}\"></script>\n\
         </head>\n<body>\n<div id=\"page\"></div>\n\
         <noscript>This page needs JavaScript. The commands of plumb show the same: plumb doctor</noscript>\n\
         </body>\n</html>\n"
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_names_its_files_and_has_no_inline_code() {
        let html = document("/a\"b/", &["main-1.js", "page-2.css"]).unwrap();
        assert!(html.contains("<base href=\"/a&quot;b/\">") && html.contains("src=\"assets/main-1.js\""));
        assert!(!html.contains("<style") && !html.contains("onload"));
        assert_eq!(html.matches("<script").count(), 1);
        assert_eq!(document("/", &["page.css"]), None, "a page without its script is no page");
    }

    #[test]
    fn the_bundle_keeps_its_budget() {
        let size = |end: &str| -> usize {
            ASSETS.iter().filter(|asset| asset.name.ends_with(end)).map(|asset| asset.gzip.len()).sum()
        };
        assert!(size(".js") <= 60 * 1024, "{} bytes of script", size(".js"));
        assert!(size(".css") <= 12 * 1024, "{} bytes of style", size(".css"));
    }
}
