//! Dry runs: the API server answers as if it had carried the request out.

use plumb_core::object::Manifest;

use crate::client::ClusterClient;
use crate::error::ApiError;
use crate::write::{Applied, ApplyOptions, Effect};

impl ClusterClient {
    /// What the server would make of an apply: with defaults, conversions and admission, and without effect.
    pub async fn dry_run_apply(
        &self,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Applied, ApiError> {
        self.send_apply(manifest, options, Effect::DryRun).await
    }

    /// What the server would make of a replacement (`PUT`), without effect.
    pub async fn dry_run_replace(
        &self,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, ApiError> {
        self.send_replace(manifest, field_manager, None, Effect::DryRun).await
    }

    /// What the server would make of a creation, without effect.
    /// An object of this name that exists is refused last, after validation and admission: `AlreadyExists` means
    /// that nothing else stands in the way.
    pub async fn dry_run_create(
        &self,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, ApiError> {
        self.send_create(manifest, field_manager, Effect::DryRun).await
    }
}
