//! Gathers, renders and judges apps once, for the command line, as the engine does for all apps.

mod marks;
mod inspector;
mod survey;

pub use inspector::{InspectError, InspectOptions, Inspector, Judged, RenderAt, RenderedApp};
pub use marks::method_in_use;
pub use survey::{DryRuns, Progress, SurveyOptions, Surveyed, survey};
