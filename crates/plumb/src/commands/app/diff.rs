//! `plumb app diff`

use jiff::Timestamp;
use plumb_core::object::{FieldPath, Manifest};
use plumb_core::text::one_line;
use plumb_crd::drift_report::DriftFinding;
use plumb_crd::{Application, DriftReport};
use plumb_engine::Judged;
use plumb_kube::{ClusterClient, Target};
use serde_json::Value;

use super::diff_data::{self, counts};
use crate::connect::cluster_of;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::ExitCode;
use crate::facts::said_by_engine;
use crate::follow::refresh::{Refresh, refresh};
use crate::kinds;
use crate::output::{Colour, Format, Output};
use crate::render_here::{self, RenderArgs, RevisionOverride};
use crate::secrets::mask::Masks;
use crate::select::app::AppArg;
use crate::view::describe;
use crate::view::finding::indented;

/// Show the differences from Git that count, with class, author and time.
///
/// Shows what the engine found at the revision that the app tracks. With --revision or --local it renders on this
/// machine and compares with the cluster: `-` is what the cluster has, `+` what would be applied.
///
/// Exit code 0: no difference counts; 1 (or --diff-exit-code): at least one does; 20: error.
///
/// Examples: `plumb app diff payments`, `plumb app diff payments --revision v1.2`,
/// `plumb app diff payments --local deploy/payments`, `plumb app diff payments -o json`
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    app: AppArg,
    /// Also show differences that do not count.
    #[arg(long)]
    all: bool,
    /// Refresh the app first.
    #[arg(long)]
    refresh: bool,
    /// Refresh the app first, and render without the cache.
    #[arg(long)]
    hard_refresh: bool,
    /// Use another exit code than 0 if a difference counts.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    exit_code: bool,
    /// The exit code if a difference counts.
    #[arg(long, default_value_t = 1, value_name = "CODE")]
    diff_exit_code: u8,
    /// Output format: wide, json or yaml. JSON and YAML have the findings as the app's `DriftReport` has them; with
    /// --revision or --local also the values on both sides.
    #[arg(long, short = 'o', value_enum, default_value_t = Format::Wide)]
    output: Format,
    #[command(flatten)]
    revision_override: RevisionOverride,
    #[command(flatten)]
    render: RenderArgs,
    #[command(flatten)]
    unsupported: UnsupportedDiffFlags,
}

/// Flags of argocd that would do nothing here. Refused.
#[derive(Debug, clap::Args)]
struct UnsupportedDiffFlags {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    server_side_diff: Option<bool>,
    #[arg(long, hide = true, allow_negative_numbers = true)]
    server_side_diff_concurrency: Option<String>,
    #[arg(long, hide = true)]
    server_side_diff_max_batch_kb: Option<String>,
    #[arg(long, hide = true)]
    server_side_generate: bool,
    #[arg(long, hide = true)]
    local_include: Vec<String>,
    #[arg(long, hide = true)]
    ignore_normalizer_jq_execution_timeout: Option<String>,
}

pub(super) async fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    args.unsupported.refuse()?;
    if args.revision_override.is_given() && context.door().is_some() {
        return Err(CommandError::usage("--revision and --local compare on this machine, not through a server")
            .hint("--core compares with the kubeconfig; `plumb app manifests APP --revision` prints another revision"));
    }
    let client = context.client().await?;
    let (target, application) = args.app.read(context, &client).await?;
    if let Some(how) = Refresh::wanted(args.refresh, args.hard_refresh) {
        refresh(context, &client, &target, how).await?;
    }
    let counts = if args.revision_override.is_given() {
        let inspector = args.render.open(context).await?;
        let rendered = render_here::gather(&inspector, &application, &args.revision_override).await?;
        let judged = inspector
            .judge(&application, &rendered)
            .await
            .map_err(|error| CommandError::because(format!("compare {}", target.name), error))?;
        let denied = inspector
            .denied(&application, &rendered)
            .map_err(|error| CommandError::because(format!("compare {}", target.name), error))?;
        for why in &denied {
            context.out.note(&format!("not compared: {why}"));
        }
        let masks = Masks::read(context, &client).await;
        let objects =
            judged.values().flat_map(|object| [object.live.as_deref(), object.desired.as_ref()]).flatten();
        let all_kinds = context.client_of_all_kinds().await?;
        let there = cluster_of(context, &all_kinds, &application).await?;
        let masks = masks.with_passwords(&there, objects).await?;
        if matches!(args.output, Format::Json | Format::Yaml) {
            let data = diff_data::of_judged(&target, judged.values(), &denied, args.all, &masks);
            context.out.object(args.output, &data)?;
            judged.values().any(counts) || !denied.is_empty()
        } else {
            for object in judged.values() {
                show_judged(context.out, object, args.all, &masks);
            }
            judged.values().any(counts) || !denied.is_empty()
        }
    } else {
        reported(context, &client, (&target, &application), args).await?
    };
    Ok(if counts && args.exit_code { ExitCode::AppSelection(args.diff_exit_code) } else { ExitCode::Success })
}

/// Shows what the engine found. Returns whether a difference counts.
async fn reported(
    context: &Context,
    client: &ClusterClient,
    (target, application): (&Target, &Application),
    args: &Args,
) -> Result<bool, CommandError> {
    let report = client
        .get_at(&kinds::drift_report(), target.namespace.as_deref(), &target.name)
        .await
        .map_err(|error| CommandError::api(format!("read the drift report of {}", target.name), error))?;
    let report = report.and_then(|report| DriftReport::from_json(report.value()).ok());
    if report.is_none() && application.status.reconciled_at.is_none() {
        return Err(CommandError::new(format!("{} has not been reconciled yet", target.name))
            .hint("is `plumb run` running for this namespace? --refresh waits for it"));
    }
    said_by_engine(context, client, application, report.as_ref()).await?;
    let findings = report.map(|report| report.findings).unwrap_or_default();
    if args.output.is_data() {
        context.out.object(args.output, &diff_data::of_report(target, &findings, args.all))?;
    } else {
        show_report(context.out, &findings, args.all);
    }
    Ok(findings.iter().any(|finding| finding.counts))
}

impl UnsupportedDiffFlags {
    fn refuse(&self) -> Result<(), CommandError> {
        let server = "plumb already runs a server-side dry-run whenever it needs one";
        let given = [
            ("--server-side-diff", self.server_side_diff.is_some(), server),
            ("--server-side-diff-concurrency", self.server_side_diff_concurrency.is_some(), server),
            ("--server-side-diff-max-batch-kb", self.server_side_diff_max_batch_kb.is_some(), server),
            ("--server-side-generate", self.server_side_generate, "--local renders on this machine"),
            (
                "--local-include",
                !self.local_include.is_empty(),
                "--local renders on this machine, so no files are uploaded",
            ),
            (
                "--ignore-normalizer-jq-execution-timeout",
                self.ignore_normalizer_jq_execution_timeout.is_some(),
                "the jq timeout is set in argocd-cm and cannot be overridden here",
            ),
        ];
        match given.iter().find(|(_, given, _)| *given) {
            None => Ok(()),
            Some((flag, _, why)) => Err(CommandError::refused_flag(flag, why)),
        }
    }
}

/// Prints the findings of the engine by object.
fn show_report(out: Output, findings: &[DriftFinding], all: bool) {
    let mut before = String::new();
    let now = Timestamp::now();
    for finding in findings.iter().filter(|finding| finding.counts || all) {
        let header = header(&finding.group, &finding.kind, &finding.namespace, &finding.name);
        if header != before {
            out.print(&header);
            before = header;
        }
        let actor = Some(finding.actor.as_str()).filter(|actor| !actor.is_empty());
        let hunk = Hunk {
            class: &finding.class,
            fields: &finding.fields,
            counts: finding.counts,
            actor,
            since: finding.since,
        };
        hunk.show(out, now);
        for line in &finding.evidence {
            out.print(&format!("  {}", one_line(line)));
        }
        if let Some(fix) = finding.fix.as_ref().filter(|fix| !fix.text.is_empty()) {
            out.print(&format!("  → {}{}", one_line(&fix.text), indented(&fix.patch, "    ")));
        }
    }
}

/// Prints the findings on one object that was compared here.
fn show_judged(out: Output, object: &Judged, all: bool, masks: &Masks) {
    let verdict = &object.verdict;
    let shown: Vec<_> = verdict.findings.iter().filter(|finding| finding.counts || all).collect();
    if !shown.is_empty() {
        let key = &verdict.key;
        out.print(&header(&key.group, &key.kind, key.namespace_or_empty(), &key.name));
    }
    let now = Timestamp::now();
    for finding in shown {
        let fields: Vec<String> = finding.fields.iter().map(ToString::to_string).collect();
        let class = format!("{:?}", finding.class);
        let hunk = Hunk {
            class: &class,
            fields: &fields,
            counts: finding.counts,
            actor: finding.actor.as_deref(),
            since: finding.since,
        };
        hunk.show(out, now);
        let (live, desired) = (object.live.as_deref(), object.desired.as_ref());
        if finding.fields.is_empty() {
            show_whole(out, live, desired, masks);
        }
        for field in &finding.fields {
            show_field(out, field, live, desired, masks);
        }
        for line in &finding.evidence {
            out.print(&format!("  {}", one_line(line)));
        }
    }
}

fn header(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    let kind = if group.is_empty() { kind.to_owned() } else { format!("{group}/{kind}") };
    one_line(&format!("===== {kind} {namespace}/{name} ======")).into_owned()
}

/// One finding of an object.
struct Hunk<'a> {
    class: &'a str,
    fields: &'a [String],
    counts: bool,
    actor: Option<&'a str>,
    since: Option<Timestamp>,
}

impl Hunk<'_> {
    /// `@@ LiveEdit /spec/replicas by kubectl-scale since 2026-11-15T18:58:11Z (3h) @@`
    fn show(&self, out: Output, now: Timestamp) {
        let mut text = format!("@@ {}", self.class);
        if !self.fields.is_empty() {
            text = format!("{text} {}", self.fields.join(", "));
        }
        if let Some(actor) = self.actor {
            text = format!("{text} by {actor}");
        }
        if let Some(since) = self.since {
            text = format!("{text} since {since} ({})", describe::age(since, now));
        }
        if !self.counts {
            text.push_str(", does not count");
        }
        text.push_str(" @@");
        out.print_coloured(if self.counts { Colour::Red } else { Colour::Yellow }, &one_line(&text));
    }
}

/// A whole object that is missing in the cluster or in Git.
fn show_whole(out: Output, live: Option<&Manifest>, desired: Option<&Manifest>, masks: &Masks) {
    let (sign, object, colour) = match (live, desired) {
        (None, Some(desired)) => ('+', desired.value().clone(), Colour::Green),
        (Some(live), None) => ('-', describe::readable(live), Colour::Red),
        (Some(_), Some(_)) | (None, None) => return,
    };
    for line in plumb_crd::yaml::to_yaml(&masks.hide(object)).lines() {
        out.print_coloured(colour, &format!("{sign} {line}"));
    }
}

/// One field on both sides.
fn show_field(
    out: Output,
    field: &FieldPath,
    live: Option<&Manifest>,
    desired: Option<&Manifest>,
    masks: &Masks,
) {
    let value = |object: Option<&Manifest>| {
        let object = masks.hide(object?.value().clone());
        field.find(&object).cloned()
    };
    for (sign, value, colour) in [('-', value(live), Colour::Red), ('+', value(desired), Colour::Green)] {
        let Some(value) = value else { continue };
        let text = match &value {
            Value::Object(_) | Value::Array(_) => {
                let block = plumb_crd::yaml::to_yaml(&value);
                let lines: Vec<String> = block.lines().map(|line| format!("{sign}   {line}")).collect();
                format!("{sign} {field}:\n{}", lines.join("\n"))
            }
            scalar => format!("{sign} {field}: {}", plumb_crd::yaml::to_yaml(scalar).trim_end()),
        };
        out.print_coloured(colour, &text);
    }
}
