//! The formats of `plumb doctor`.

use jiff::Timestamp;
use plumb_core::doctor::{self, Diagnosis};

use crate::context::Context;
use crate::error::CommandError;
use crate::output::Format;

/// The formats of `plumb doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DoctorFormat {
    /// One screen.
    Text,
    /// JSON, with everything.
    Json,
    /// YAML, with everything.
    Yaml,
    /// SARIF 2.1.0, for code hosts.
    Sarif,
    /// `JUnit` XML, for CI systems.
    Junit,
    /// Markdown, for merge requests.
    Markdown,
}

impl DoctorFormat {
    pub(super) fn print(
        self,
        context: &Context,
        diagnosis: &Diagnosis,
        now: Timestamp,
    ) -> Result<(), CommandError> {
        let namespace = context.namespace();
        match self {
            Self::Text => context.out.print(&doctor::text(diagnosis, namespace, now)),
            Self::Json => context.out.object(Format::Json, &doctor::data(diagnosis))?,
            Self::Yaml => context.out.object(Format::Yaml, &doctor::data(diagnosis))?,
            Self::Sarif => {
                context.out.object(Format::Json, &doctor::sarif(diagnosis, env!("CARGO_PKG_VERSION")))?;
            }
            Self::Junit => context.out.print_data(&doctor::junit(diagnosis)),
            Self::Markdown => context.out.print_data(&doctor::markdown(diagnosis, namespace, now)),
        }
        Ok(())
    }
}
