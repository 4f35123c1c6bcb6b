//! Runs `kustomize edit` and `kustomize build`.

use std::ffi::OsString;
use std::path::Path;

use plumb_core::desired::RenderedManifest;

use super::edit;
use super::origins::Documents;
use super::plan::KustomizePlan;
use crate::error::RenderError;
use crate::export;
use crate::helm::set_clock;
use crate::helm_env::helm_environment;
use crate::parse;
use crate::read_set::ReadSet;
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::sandbox::{Hidden, ToolRun, flag};

impl KustomizePlan {
    /// Everything but the files, for the cache key.
    pub(crate) fn parameters(&self) -> String {
        format!(
            "{:?}",
            (
                (&self.overlay, &self.build_options, &self.helm_flags, &self.edits),
                (&self.patches, &self.environment, self.network)
            )
        )
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Runs Kustomize on the files of the set.
    pub(crate) fn render(
        &self,
        request: &RenderRequest,
        set: &ReadSet,
        context: &RunContext<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = context.limits;
        let scratch = context.scratch()?;
        let repository = scratch.repository();
        export::export(set, "", &repository, context.disk)?;
        set_clock(context.clock, &repository, limits, context.disk)?;
        let overlay = repository.join(self.overlay.as_str());
        let hides = |hidden: &mut Hidden| {
            self.patches
                .iter()
                .filter_map(|patch| patch["patch"].as_str())
                .for_each(|text| hidden.yaml(text));
            hidden.directory(&overlay);
            hidden.directory(&repository);
        };
        let run = |directory: &Path, arguments: Vec<OsString>, tool: &'static str| {
            let mut environment = helm_environment(scratch.path());
            environment.extend(self.environment.iter().map(|(name, value)| (name.into(), value.into())));
            let run = ToolRun {
                program: &self.program,
                arguments,
                directory,
                environment,
                helper: Some(&context.tools.helm),
                scratch: scratch.path(),
                network: self.network,
                limits,
                hides: &hides,
            };
            // Edits change the kustomization.
            context.run((tool, &self.overlay), &run, |file| file.parent() == Some(&overlay))
        };
        for edit in &self.edits {
            let arguments =
                std::iter::once("edit").chain(edit.iter().map(String::as_str)).map(OsString::from).collect();
            run(&overlay, arguments, "kustomize edit")?;
        }
        edit::append_patches(&overlay, &self.overlay, &self.patches, context)?;
        let mut arguments: Vec<OsString> = vec!["build".into(), overlay.clone().into()];
        arguments.extend(self.build_options.iter().map(OsString::from));
        if self.build_options.iter().any(|option| option.starts_with("--enable-helm")) {
            arguments.push(flag("helm-command", &context.tools.helm));
            arguments.extend(self.helm_flags.iter().map(OsString::from));
        }
        let output = run(&repository, arguments, "kustomize build")?;
        (context.before_reading)(output.len());
        let mut manifests = parse::tool_output(&output, "kustomize build", limits, |_| None)?;
        let documents = Documents::read(&self.hints, request.files.as_ref(), limits);
        for manifest in &mut manifests {
            manifest.origin = documents.origin_of(&manifest.value, request.index);
        }
        Ok(manifests)
    }
}
