//! Whether two commits of a repository have a history in common.

use std::time::Instant;

use plumb_core::app::CommitId;

use super::error::FetchError;
use super::mirrors::Mirrors;
use super::readable::Mirror;
use crate::access::RepoAccess;
use crate::command::CommandError;
use crate::objects::note_damage;
use crate::refs::RevisionSpec;
use crate::url::RepoUrl;

/// How a commit is related to an earlier one of the same repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They have an ancestor in common, or one is an ancestor of the other.
    Related,
    /// They have none.
    Unrelated,
    /// The repository no longer has the earlier commit.
    Gone,
}

impl Mirrors {
    /// Compares the histories of two commits. The mirror has the whole history of its branches and tags. A commit that it
    /// lacks, as after a force push, is asked of the server by its hash. An error means that the server cannot be asked.
    pub async fn relation(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        earlier: &CommitId,
        commit: &CommitId,
    ) -> Result<Relation, FetchError> {
        if earlier == commit {
            return Ok(Relation::Related);
        }
        let since = Instant::now();
        let mirror = match self.last_good(url, access) {
            Some(mirror) => mirror,
            None => self.fetch_since(url, access, since).await?.mirror,
        };
        if !mirror.has_commit(earlier) {
            let spec = RevisionSpec::of_submodule(earlier.as_str());
            if self.fetch_by_itself(url, access, &spec, since).await.is_err() {
                // A server that answers does not have the commit, or does not serve it.
                self.fetch_since(url, access, since).await?;
                return Ok(Relation::Gone);
            }
        }
        self.merge_base(url, access, &mirror, earlier, commit).await
    }

    async fn merge_base(
        &self,
        url: &RepoUrl,
        access: &RepoAccess,
        mirror: &Mirror,
        earlier: &CommitId,
        commit: &CommitId,
    ) -> Result<Relation, FetchError> {
        let failed = |source| FetchError::History { repository: url.to_string(), source };
        let missing =
            || CommandError::Io { command: "merge-base".to_owned(), reason: "no mirror".to_owned() };
        let repository = self.repository_path(url, access).ok_or_else(|| failed(missing()))?;
        let arguments = ["merge-base", earlier.as_str(), commit.as_str()];
        match self.git_offline(&repository, &arguments).await {
            Ok(_) => Ok(Relation::Related),
            // git exits with 1 if there is none, and with others if it fails.
            Err(CommandError::Failed { code: Some(1), .. }) => Ok(Relation::Unrelated),
            Err(error) => {
                if matches!(error, CommandError::Failed { .. } | CommandError::Cache { .. }) {
                    note_damage(mirror.damaged());
                }
                Err(failed(error))
            }
        }
    }
}
