//! The reference of a container image, complete enough to run with the rights of plumb.

use std::fmt;
use std::str::FromStr;

/// An image with its registry, and a tag or a digest that names one version.
///
/// A name without a registry would be taken from the registry that the node prefers, and `latest` is whatever was pushed
/// last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReference(String);

/// Why a text is not the reference of an image that plumb installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnImage {
    /// No registry.
    #[error(
        "it names no registry: give `REGISTRY/NAME:TAG`, or `localhost/NAME:TAG` for an image that was loaded onto the \
         nodes"
    )]
    NoRegistry,
    /// Neither tag nor digest, or the tag `latest`.
    #[error("it names no version: give a tag other than `latest`, or a digest (`@sha256:…`)")]
    NoVersion,
    /// Not of the form of a reference.
    #[error("it is not of the form `REGISTRY/NAME:TAG` or `REGISTRY/NAME@sha256:DIGEST`")]
    Malformed,
}

impl ImageReference {
    /// Stands for the image until one is published. The name of its registry never resolves, so that no other image runs
    /// instead.
    pub fn unpublished() -> Self {
        Self(concat!("registry.invalid/plumb:", env!("CARGO_PKG_VERSION")).to_owned())
    }

    /// True for [`ImageReference::unpublished`].
    pub fn is_unpublished(&self) -> bool {
        *self == Self::unpublished()
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ImageReference {
    type Err = NotAnImage;

    fn from_str(text: &str) -> Result<Self, NotAnImage> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "./:@_-".contains(c);
        if text.is_empty() || !text.chars().all(is_plain) {
            return Err(NotAnImage::Malformed);
        }
        let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
        if let Some(digest) = digest {
            let hex = digest.strip_prefix("sha256:").ok_or(NotAnImage::Malformed)?;
            if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(NotAnImage::Malformed);
            }
        }
        let (registry, path) = name.split_once('/').ok_or(NotAnImage::NoRegistry)?;
        if !(registry.contains(['.', ':']) || registry == "localhost") {
            return Err(NotAnImage::NoRegistry);
        }
        let tag = path.rsplit_once(':').map(|(_, tag)| tag);
        let (is_empty, is_vague) = (path.is_empty() || tag == Some(""), matches!(tag, None | Some("latest")));
        match (is_empty, digest) {
            (true, _) => Err(NotAnImage::Malformed),
            (false, None) if is_vague => Err(NotAnImage::NoVersion),
            (false, _) => Ok(Self(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_names_its_registry_and_one_version() {
        let digest = format!("@sha256:{}", "0a".repeat(32));
        for good in ["registry.example.com/o/plumb:1.2", "registry:5000/plumb:1", "localhost/plumb:dev"] {
            assert_eq!(good.parse::<ImageReference>().map(|image| image.to_string()), Ok(good.to_owned()));
            assert!(format!("{good}{digest}").parse::<ImageReference>().is_ok());
        }
        assert!(format!("registry.example.com/o/plumb{digest}").parse::<ImageReference>().is_ok());
        assert!(
            format!("registry.example.com/o/plumb:latest{digest}").parse::<ImageReference>().is_ok(),
            "the digest decides"
        );
        for (bad, why) in [
            ("plumb:1", NotAnImage::NoRegistry),
            ("library/plumb:1", NotAnImage::NoRegistry),
            ("registry.example.com/o/plumb", NotAnImage::NoVersion),
            ("registry.example.com/o/plumb:latest", NotAnImage::NoVersion),
            ("registry.example.com/o/plumb:", NotAnImage::Malformed),
            ("registry.example.com/o/plumb:1\n", NotAnImage::Malformed),
            ("registry.example.com/o/plumb@sha256:12", NotAnImage::Malformed),
            ("", NotAnImage::Malformed),
        ] {
            assert_eq!(bad.parse::<ImageReference>(), Err(why), "{bad}");
        }
        assert!(ImageReference::unpublished().to_string().parse::<ImageReference>().is_ok());
    }
}
