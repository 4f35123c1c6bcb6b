//! What the plans of all tools need to run.

use std::path::Path;

use crate::disk_use::DiskUse;
use crate::error::RenderError;
use crate::limits::Limits;
use crate::sandbox::{Clock, Sandbox, Scratch};
use crate::tools::Tools;

/// What a plan needs to run its tool.
pub(crate) struct RunContext<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) tools: &'a Tools,
    pub(crate) limits: &'a Limits,
    /// What this rendering writes to disk.
    pub(crate) disk: &'a DiskUse<'a>,
    /// The directory in which scratch directories are created.
    pub(crate) root: &'a Path,
    /// The time that the tools see.
    pub(crate) clock: Clock,
}

impl RunContext<'_> {
    /// Creates a scratch directory.
    pub(crate) fn scratch(&self) -> Result<Scratch, RenderError> {
        let scratch = Scratch::new(self.root).map_err(|error| RenderError::scratch(&error))?;
        self.clock.set(scratch.path()).map_err(|error| RenderError::scratch(&error))?;
        Ok(scratch)
    }
}
