//! Flags of argocd's source hydrator, which plumb does not support.

use crate::error::CommandError;

/// Flags of argocd's source hydrator. Refused.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::edit) struct HydratorFlags {
    #[arg(long, hide = true)]
    dry_source_repo: Option<String>,
    #[arg(long, hide = true)]
    dry_source_revision: Option<String>,
    #[arg(long, hide = true)]
    dry_source_path: Option<String>,
    #[arg(long, hide = true)]
    sync_source_branch: Option<String>,
    #[arg(long, hide = true)]
    sync_source_path: Option<String>,
    #[arg(long, hide = true)]
    hydrate_to_branch: Option<String>,
}

impl HydratorFlags {
    /// An error for the first one that was given.
    pub(crate) fn refuse(&self) -> Result<(), CommandError> {
        let given = [
            ("--dry-source-repo", &self.dry_source_repo),
            ("--dry-source-revision", &self.dry_source_revision),
            ("--dry-source-path", &self.dry_source_path),
            ("--sync-source-branch", &self.sync_source_branch),
            ("--sync-source-path", &self.sync_source_path),
            ("--hydrate-to-branch", &self.hydrate_to_branch),
        ];
        match given.iter().find(|(_, given)| given.is_some()) {
            None => Ok(()),
            Some((flag, _)) => {
                Err(CommandError::refused_flag(flag, "plumb does not support the source hydrator yet")
                    .hint("set the source itself: --repo, --path and --revision"))
            }
        }
    }
}
