//! Runs `helm template`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plumb_core::desired::RenderedManifest;

use super::escape::{comma_field, escaped};
use super::now::set_clock;
use super::origins::Origins;
use super::plan::HelmPlan;
use crate::disk_use::DiskUse;
use crate::error::RenderError;
use crate::export;
use crate::helm_env::helm_environment;
use crate::parse;
use crate::read_set::{ReadSet, SourceFile};
use crate::request::RenderRequest;
use crate::run_context::RunContext;
use crate::sandbox::{Hidden, Scratch, ToolRun, flag};

impl HelmPlan {
    /// Runs Helm on the files of the set.
    pub(crate) fn render(
        &self,
        request: &RenderRequest,
        set: &ReadSet,
        context: &RunContext<'_>,
    ) -> Result<Vec<RenderedManifest>, RenderError> {
        let limits = context.limits;
        let scratch = context.scratch()?;
        export::export(set, "", &scratch.repository(), context.disk)?;
        for (dependency, from) in &self.dependencies {
            let target = scratch.repository().join(self.chart.as_str()).join("charts").join(dependency);
            export::export_directory(set, from, &target, context.disk)?;
        }
        let chart = scratch.repository().join(self.chart.as_str());
        set_clock(context.clock, &chart, limits, context.disk)?;
        for name in request.refs.keys() {
            export::export(set, name, &source_root(scratch.path(), name), context.disk)?;
        }
        let hides = |hidden: &mut Hidden| self.hide(hidden, &scratch, &chart);
        let run = ToolRun {
            program: &context.tools.helm,
            arguments: self.arguments(&scratch, context.disk)?,
            directory: &chart,
            environment: helm_environment(scratch.path()),
            helper: None,
            scratch: scratch.path(),
            network: false,
            limits,
            hides: &hides,
        };
        let output = context.run(("helm template", &self.chart), &run, |_| false)?;
        (context.before_reading)(output.len());
        let origins = Origins::read(&output, &self.chart, request.index);
        parse::tool_output(&output, "helm template", limits, |line| origins.at(line))
    }

    /// Values that a template can print with `fail`.
    fn hide(&self, hidden: &mut Hidden, scratch: &Scratch, chart: &Path) {
        for parameter in self.set.iter().chain(&self.set_string) {
            if let Some((name, value)) = parameter.split_once('=') {
                hidden.named(name, value);
                hidden.named(name, &value.replace("\\,", ","));
            }
        }
        if let Some(values) = &self.inline_values {
            hidden.yaml(values);
        }
        for file in &self.value_files {
            hidden.file(&on_disk(file, scratch.path()));
        }
        for (name, file) in &self.set_file {
            if let Ok(text) = std::fs::read_to_string(on_disk(file, scratch.path())) {
                hidden.named(name, &text);
            }
        }
        hidden.directory(chart);
    }

    fn arguments(&self, scratch: &Scratch, disk: &DiskUse<'_>) -> Result<Vec<OsString>, RenderError> {
        let mut arguments: Vec<OsString> =
            vec!["template".into(), ".".into(), flag("name-template", &self.release)];
        if !self.namespace.is_empty() {
            arguments.push(flag("namespace", &self.namespace));
        }
        if let Some(version) = &self.kube_version {
            arguments.push(flag("kube-version", version));
        }
        arguments.extend(self.set.iter().map(|text| flag("set", text)));
        arguments.extend(self.set_string.iter().map(|text| flag("set-string", text)));
        for (name, file) in &self.set_file {
            let mut text = OsString::from(format!("{name}="));
            text.push(escaped(&on_disk(file, scratch.path()), b",\\"));
            arguments.push(flag("set-file", text));
        }
        let value_files = self.value_files.iter().map(|file| on_disk(file, scratch.path()));
        arguments.extend(value_files.map(|file| flag("values", comma_field(file))));
        if let Some(values) = &self.inline_values {
            let path = scratch.path().join("values.yaml");
            disk.write(&path, values)?;
            arguments.push(flag("values", path));
        }
        arguments.extend(self.api_versions.iter().map(|version| flag("api-versions", version)));
        for (wanted, name) in [
            (!self.skip_crds, "--include-crds"),
            (self.skip_schema_validation, "--skip-schema-validation"),
            (self.skip_tests, "--skip-tests"),
        ] {
            if wanted {
                arguments.push(name.into());
            }
        }
        Ok(arguments)
    }
}

fn on_disk(file: &SourceFile, scratch: &Path) -> PathBuf {
    source_root(scratch, &file.source).join(file.path.as_str())
}

/// The directory of a source's files. Names of sources are validated, so they are safe as directory names.
fn source_root(scratch: &Path, source: &str) -> PathBuf {
    if source.is_empty() { scratch.join("repo") } else { scratch.join("ref").join(source) }
}
