//! What the plans of all tools need to run.

use std::path::Path;

use plumb_core::source::RepoPath;

use crate::disk_use::DiskUse;
use crate::error::RenderError;
use crate::limits::Limits;
use crate::sandbox::{Clock, Sandbox, Scratch, ToolRun};
use crate::scratch_cleanup::ScratchRoot;
use crate::tools::Tools;

/// What a plan needs to run its tool.
pub(crate) struct RunContext<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) tools: &'a Tools,
    pub(crate) limits: &'a Limits,
    /// What this rendering writes to disk.
    pub(crate) disk: &'a DiskUse<'a>,
    /// The directory in which scratch directories are created.
    pub(crate) root: &'a ScratchRoot,
    /// The time that the tools see.
    pub(crate) clock: Clock,
    /// Called with the length of what was rendered before it is read.
    pub(crate) before_reading: &'a dyn Fn(usize),
}

impl RunContext<'_> {
    /// Creates a scratch directory.
    pub(crate) fn scratch(&self) -> Result<Scratch, RenderError> {
        let root = self.root.enter().map_err(|error| RenderError::scratch(&error))?;
        let scratch = Scratch::new(root).map_err(|error| RenderError::scratch(&error))?;
        self.clock.set(scratch.path()).map_err(|error| RenderError::scratch(&error))?;
        Ok(scratch)
    }

    /// What a tool prints for a directory of the source. Fails if files that it reads were removed in the meantime, whatever
    /// it printed. `may_change` are files that the tool itself changes.
    pub(crate) fn run(
        &self,
        (tool, path): (&'static str, &RepoPath),
        run: &ToolRun<'_>,
        may_change: impl Fn(&Path) -> bool,
    ) -> Result<Vec<u8>, RenderError> {
        let output = self.sandbox.run(run);
        // With another clock, templates are changed. Such a rendering is only compared with the real one.
        if self.clock == Clock::Real {
            self.disk.check_written(may_change)?;
        }
        output.map_err(|source| RenderError::Tool { tool, path: path.clone(), source })
    }
}
