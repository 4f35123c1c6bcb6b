//! The steps in order.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plumb_testkit::cluster::{self, AttachedCluster, ClientProgram, Layout};

use super::counts::Counts;
use super::demo;
use super::steps::{self, cargo, say, step};
use crate::cluster::ensure_programs;

/// The linter over everything. Traces are not in a default build: this keeps them compiling.
const LINT: [&str; 9] = [
    "clippy",
    "--workspace",
    "--all-targets",
    "--features",
    "plumb/traces",
    "--quiet",
    "--",
    "-D",
    "warnings",
];

/// Which steps to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skip everything that needs a cluster: a quick check while editing.
    #[arg(long)]
    no_cluster: bool,
    /// Give tests that share the cluster no second run alone if they fail beside the others.
    #[arg(long)]
    no_second_run: bool,
    /// Also run the stories with these programs, which take minutes to build the first time: `argocd`, `oidc`,
    /// `external-secrets`.
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "no_cluster")]
    with: Vec<With>,
    /// Run nothing but the stories of --with.
    #[arg(long, requires = "with")]
    only: bool,
}

/// A program that is built only where it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum With {
    /// Argo CD's own command line.
    Argocd,
    /// An `OpenID` provider.
    Oidc,
    /// The operator of External Secrets.
    ExternalSecrets,
}

impl With {
    const ALL: [Self; 3] = [Self::Argocd, Self::Oidc, Self::ExternalSecrets];

    fn name(self) -> &'static str {
        match self {
            Self::Argocd => "argocd",
            Self::Oidc => "oidc",
            Self::ExternalSecrets => "external-secrets",
        }
    }

    fn program(self) -> ClientProgram {
        match self {
            Self::Argocd => ClientProgram::Argocd,
            Self::Oidc => ClientProgram::OidcProvider,
            Self::ExternalSecrets => ClientProgram::ExternalSecrets,
        }
    }

    /// The stories that need the program, by the beginning of their names.
    fn stories(self) -> &'static str {
        match self {
            Self::Argocd => "server_argocd",
            Self::Oidc => "server_sso",
            Self::ExternalSecrets => "external::",
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = crate::repository::root();
    let (mut counts, mut unsteady) = (Counts::default(), Vec::new());
    if args.only {
        stories(root, &args.with, &TestCluster::start()?.environment(), &mut counts)?;
        say(&counts.to_string());
        return Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }

    step(&mut counts, "formatting", || cargo(root, &["fmt", "--all", "--check"], &[]))?;
    step(&mut counts, "clippy", || cargo(root, &LINT, &[]))?;
    step(&mut counts, "tidy", || steps::tidy(root))?;
    step(&mut counts, "licences and advisories", || steps::deny(root))?;

    if args.no_cluster {
        let without = [
            "test",
            "--workspace",
            "--no-fail-fast",
            "--exclude",
            "plumb-testkit",
            "--exclude",
            "plumb-cluster-tests",
            "--exclude",
            "plumb",
        ];
        step(&mut counts, "tests", || cargo(root, &without, &[]))?;
        say("skipped: everything that needs a cluster (--no-cluster)");
    } else {
        let cluster = TestCluster::start()?;
        let env = cluster.environment();
        let tests = ["test", "--workspace", "--no-fail-fast"];
        if args.no_second_run {
            step(&mut counts, "tests", || cargo(root, &tests, &env))?;
        } else {
            step(&mut counts, "tests", || steps::cargo_with_cluster(root, &tests, &env, &mut unsteady))?;
        }
        stories(root, &args.with, &env, &mut counts)?;
        drop(cluster);
        step(&mut counts, "demo", || demo::settles(root))?;
        step(&mut counts, "demo, left running", || demo::stays(root))?;
        step(&mut counts, "site of the documents", || Ok(steps::book(root)))?;
        step(&mut counts, "image", || Ok(steps::image(root)))?;
        step(&mut counts, "release", || Ok(steps::release(root)))?;
    }

    for names in unsteady {
        say(&format!("unsteady, passed only alone: {names}"));
    }
    // Scripts parse the last line: keep its format.
    say(&counts.to_string());
    Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The stories with programs that are built only where they are asked for.
fn stories(root: &Path, with: &[With], env: &[(&str, OsString)], counts: &mut Counts) -> Result<()> {
    for one in With::ALL {
        let name = one.name();
        if !with.contains(&one) {
            say(&format!("skipped: stories with {name} (--with {name})"));
            *counts += Counts { skipped: 1, ..Counts::default() };
            continue;
        }
        step(counts, &format!("stories with {name}"), || {
            let program = one.program().ensure(&Layout::from_environment()?, &mut say)?;
            let mut env = env.to_vec();
            env.push((one.program().variable(), program.into_os_string()));
            let words = ["test", "--workspace", "--test", "stories", one.stories(), "--", "--ignored"];
            cargo(root, &words, &env)
        })?;
    }
    Ok(())
}

/// The cluster of all tests of this run. Dropping it stops the cluster.
struct TestCluster {
    cluster: AttachedCluster,
    path: OsString,
}

impl TestCluster {
    fn start() -> Result<Self> {
        let layout = Layout::from_environment()?;
        let programs = ensure_programs(&layout)?;
        let path = crate::programs::path_with(&programs);
        Ok(Self { cluster: cluster::attach(&layout, &programs)?, path })
    }

    /// The variables that tests read: the kubeconfig and the PATH of the tools.
    fn environment(&self) -> [(&'static str, OsString); 2] {
        let kubeconfig = self.cluster.state().kubeconfig.clone().into_os_string();
        [("PLUMB_TEST_KUBECONFIG", kubeconfig), ("PATH", self.path.clone())]
    }
}
