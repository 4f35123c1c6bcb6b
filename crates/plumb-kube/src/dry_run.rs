//! Dry runs: the API server answers as if it had carried the request out.

use plumb_core::object::Manifest;

use crate::client::ClusterClient;
use crate::error::ApiError;
use crate::write::{Applied, ApplyOptions, Effect};

impl ClusterClient {
    /// The object that an apply would result in, after defaulting, conversion and admission.
    pub async fn dry_run_apply(
        &self,
        manifest: &Manifest,
        options: &ApplyOptions,
    ) -> Result<Applied, ApiError> {
        self.send_apply(manifest, options, Effect::DryRun).await
    }

    /// The object that a replacement (`PUT`) would result in.
    pub async fn dry_run_replace(
        &self,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, ApiError> {
        self.send_replace(manifest, field_manager, None, Effect::DryRun).await
    }

    /// The object that a creation would result in. The server checks the name last, after validation and
    /// admission: `AlreadyExists` means that everything else passed.
    pub async fn dry_run_create(
        &self,
        manifest: &Manifest,
        field_manager: &str,
    ) -> Result<Applied, ApiError> {
        self.send_create(manifest, field_manager, Effect::DryRun).await
    }
}
