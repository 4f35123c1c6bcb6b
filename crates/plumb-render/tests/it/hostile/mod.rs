//! Repositories that attack. None may show a byte from outside, hang, or affect another app, and each error names the
//! file and the reason.

mod charts;
mod jsonnet;
mod links;
mod manifests;
mod overlays;
mod overrides;
mod paths;
mod plugins;
pub(crate) mod prelude;
