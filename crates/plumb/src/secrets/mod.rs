//! The Secrets that plumb's commands read and write. Values are used, never shown.

pub(crate) mod base64;
pub(crate) mod clusters;
pub(crate) mod mask;
pub(crate) mod repositories;
pub(crate) mod write;
