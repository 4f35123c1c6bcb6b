//! The formats of `plumb lint`.

use plumb_core::change::{RepositoryChange, Summary};
use plumb_core::lint::{self, LintFinding};

use crate::context::Context;
use crate::error::CommandError;
use crate::output::Format;

/// The formats of `plumb lint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LintFormat {
    /// One line per finding, as compilers print them.
    Text,
    /// JSON, with everything.
    Json,
    /// YAML, with everything.
    Yaml,
    /// SARIF 2.1.0, for code hosts.
    Sarif,
    /// `JUnit` XML, for CI systems.
    Junit,
    /// Annotations of GitHub Actions.
    Github,
    /// Markdown, for a comment on a merge request.
    Markdown,
}

impl LintFormat {
    pub(super) fn print(
        self,
        context: &Context,
        findings: &[LintFinding],
        apps: &[&str],
        change: Option<&RepositoryChange>,
    ) -> Result<(), CommandError> {
        let sentence = change.map(|change| Summary::of(change).sentence("this merge"));
        let sentence = sentence.as_deref();
        match self {
            Self::Text => context.out.print(&lint::text(findings, apps.len(), sentence)),
            Self::Json => context.out.object(Format::Json, &lint::data(findings, change))?,
            Self::Yaml => context.out.object(Format::Yaml, &lint::data(findings, change))?,
            Self::Sarif => {
                context.out.object(Format::Json, &lint::sarif(findings, env!("CARGO_PKG_VERSION")))?;
            }
            Self::Junit => context.out.print_data(&lint::junit(findings, apps)),
            Self::Github => {
                let lines = lint::github(findings, sentence);
                if !lines.is_empty() {
                    context.out.print(&lines);
                }
            }
            Self::Markdown => context.out.print_data(&lint::markdown(findings, change)),
        }
        Ok(())
    }
}
