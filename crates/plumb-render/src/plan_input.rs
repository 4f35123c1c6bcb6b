//! What the planners of all tools are given.

use plumb_core::source::RepoPath;

use crate::build_env::BuildEnvironment;
use crate::limits::Limits;
use crate::request::RenderRequest;
use crate::tools::Tools;

/// The source to plan. A planner adds the files that the tool will read to the read set and fixes the tool's
/// arguments; it runs nothing.
pub(crate) struct PlanInput<'a> {
    pub(crate) request: &'a RenderRequest,
    /// The app's directory in the source, with links resolved.
    pub(crate) path: &'a RepoPath,
    pub(crate) environment: &'a BuildEnvironment,
    pub(crate) tools: &'a Tools,
    pub(crate) limits: &'a Limits,
}
