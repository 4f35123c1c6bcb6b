//! From a red column to a quiet one: the commands that the demo suggests, each with what it must have done.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::planted::{PLANTED, Planted, RED};
use super::stage::Stage;
use crate::say::say;

/// What an operator may wait for all of it.
const LONGEST: Duration = Duration::from_mins(2);

/// The number of apps that a three-way diff never shows as `Synced`.
const N_RED: usize = 20;

/// Runs the commands. Returns how long they took, the syncs between them included.
pub(super) fn walk(stage: &Stage, plumb: &Path) -> Result<f64> {
    let walk = Walk { stage, plumb, started: Instant::now() };
    walk.starts_red()?;
    walk.doctor_names_the_crash_loop_first()?;
    walk.fix()?;
    walk.adopt()?;
    walk.orphans()?;
    walk.is_quiet()?;
    let took = walk.started.elapsed();
    ensure!(took < LONGEST, "it took {:.0} s", took.as_secs_f64());
    Ok(took.as_secs_f64())
}

struct Walk<'stage> {
    stage: &'stage Stage,
    plumb: &'stage Path,
    started: Instant,
}

impl Walk<'_> {
    /// Every planted fault is in a report, and only real ones make an app red.
    fn starts_red(&self) -> Result<()> {
        let mut red: BTreeSet<&str> =
            PLANTED.iter().map(|planted| planted.app).filter(|app| !app.ends_with('*')).collect();
        red.extend(RED);
        ensure!(red.len() == N_RED, "{} apps have a planted fault: {red:?}", red.len());
        let not_synced = self.not_synced()?;
        ensure!(
            not_synced.len() == RED.len() - 1 && not_synced.iter().all(|name| RED.contains(&name.as_str())),
            "OutOfSync: {not_synced:?}"
        );
        Ok(())
    }

    /// Whatever noise there is, what is ill is the first line.
    fn doctor_names_the_crash_loop_first(&self) -> Result<()> {
        let said = self.run(&["doctor"])?;
        let first = said.lines().next().unwrap_or_default();
        ensure!(first.starts_with("UNHEALTHY") && first.contains("argo-rollouts"), "the first line: {first}");
        ensure!(said.contains("CrashLoopBackOff"), "doctor does not name the crash loop:\n{said}");
        for part in ["Unadopted", "SharedResource", "plumb fix", "plumb adopt", "plumb orphans"] {
            ensure!(said.contains(part), "doctor does not name {part}:\n{said}");
        }
        Ok(())
    }

    /// One branch, one commit per class. It is merged, and everything syncs by itself.
    fn fix(&self) -> Result<()> {
        let folder = self.stage.repository.folder().display().to_string();
        let said =
            self.run(&["fix", "--repo", &folder, "--for", "argocd", "--yes", "--branch", "less-noise"])?;
        let classes = ["SchemaDefault", "PhantomDefault", "SharedResource", "UnstableRender"];
        for class in classes {
            ensure!(said.contains(class), "fix changes nothing for {class}:\n{said}");
        }
        self.stage.repository.merge("less-noise")?;
        self.stage.kubectl.run(&[
            "-n",
            "argocd",
            "annotate",
            "applications.argoproj.io",
            "--all",
            "argocd.argoproj.io/refresh=normal",
        ])?;
        // The claim templates of a StatefulSet say what Argo CD looks at; its other defaults stay out of Git.
        let ends = |planted: &&Planted| {
            planted.kind != "StatefulSet" && planted.classes.iter().any(|class| classes.contains(class))
        };
        self.until("what fix changed is found no more", || {
            let reports = self.stage.reports()?;
            let left = PLANTED.iter().filter(ends).filter(|planted| planted.is_found(&reports));
            Ok(left.map(|planted| format!("{}: {}", planted.app, planted.name)).collect())
        })
    }

    fn adopt(&self) -> Result<()> {
        let said = self.run(&["adopt", "--all", "--yes"])?;
        for planted in PLANTED.iter().filter(|planted| planted.classes == ["Unadopted"]) {
            ensure!(
                said.lines().any(|line| line.starts_with("adopted") && line.contains(planted.name)),
                "{} is not adopted:\n{said}",
                planted.name
            );
        }
        self.until("nothing is unadopted", || self.apps_with("Unadopted"))
    }

    /// What is deleted can be restored from the folder.
    fn orphans(&self) -> Result<()> {
        let dump = self.stage.repository.folder().with_extension("orphans");
        let said = self.run(&[
            "orphans",
            "--delete",
            "--yes",
            "--watch-for",
            "1",
            "--dump",
            &dump.display().to_string(),
        ])?;
        let n_files = std::fs::read_dir(&dump).with_context(|| format!("no dump: {said}"))?.count();
        ensure!(n_files > 0, "nothing was deleted:\n{said}");
        std::fs::remove_dir_all(&dump).context("cannot remove the dump")?;
        self.until("there is no orphan", || self.apps_with("Orphan"))
    }

    /// Nothing counts, nothing is noise, and the crash loop is all that is left to look at.
    fn is_quiet(&self) -> Result<()> {
        self.until("all apps are Synced", || self.not_synced())?;
        let said = self.run(&["doctor"])?;
        ensure!(said.lines().next().is_some_and(|line| line.contains("argo-rollouts")), "{said}");
        ensure!(
            said.contains("0 wrong, 0 not in Git, 0 red without a reason"),
            "doctor still shows noise:\n{said}"
        );
        Ok(())
    }

    fn apps_with(&self, class: &str) -> Result<Vec<String>> {
        Ok(self.findings()?.into_iter().filter(|(_, found)| found == class).map(|(app, _)| app).collect())
    }

    /// App and class of every finding.
    fn findings(&self) -> Result<Vec<(String, String)>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let reports = self.stage.reports()?;
        let reports = reports["items"].as_array().into_iter().flatten();
        let findings = reports.flat_map(|report| {
            let found = report["findings"].as_array().into_iter().flatten();
            found.map(move |finding| (text(&report["metadata"]["name"]), text(&finding["class"])))
        });
        Ok(findings.collect())
    }

    fn not_synced(&self) -> Result<Vec<String>> {
        let applications = self.stage.applications()?;
        let apps = applications["items"].as_array().into_iter().flatten();
        let red = apps.filter(|app| app["status"]["sync"]["status"] != "Synced");
        Ok(red.filter_map(|app| Some(app["metadata"]["name"].as_str()?.to_owned())).collect())
    }

    /// Waits until a list is empty.
    fn until(&self, what: &str, left: impl Fn() -> Result<Vec<String>>) -> Result<()> {
        let end = self.started + LONGEST;
        let waited = self.stage.until(end, what, || left().is_ok_and(|left| left.is_empty()));
        if let Err(error) = waited {
            bail!("{error:#}; left: {:?}", left()?);
        }
        Ok(())
    }

    /// Runs a command of plumb, as it is printed.
    fn run(&self, args: &[&str]) -> Result<String> {
        let started = Instant::now();
        let output = Command::new(self.plumb)
            .args(args)
            .arg("--kubeconfig")
            .arg(self.stage.kubectl.kubeconfig())
            .env("PATH", self.stage.kubectl.path())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run plumb {}", args.join(" ")))?;
        let (answer, talk) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        say(&format!("\n$ plumb {}  # {:.1} s", args.join(" "), started.elapsed().as_secs_f64()));
        say(&format!("{answer}{talk}"));
        ensure!(output.status.success(), "plumb {} failed: {talk}", args.join(" "));
        Ok(answer.into_owned())
    }
}
