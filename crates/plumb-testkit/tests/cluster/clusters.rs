//! Clusters start side by side, and end with their caller.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use plumb_testkit::{
    client_for,
    cluster::{self, Cluster, Condition, Layout, Programs, StartOptions, attach},
    programs,
    wait::until_seen,
};

fn layout() -> Result<Layout> {
    Layout::from_environment()
}

fn alive(pid: i32) -> bool {
    // A zombie has no command line: it has ended and is not reaped yet.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

async fn server_version(kubeconfig: &Path) -> Result<String> {
    Ok(client_for(kubeconfig, "plumb-test").await?.apiserver_version().await?.git_version)
}

#[tokio::test]
async fn two_clusters_run_at_the_same_time_and_end_without_a_trace() -> Result<()> {
    let programs = tokio::task::spawn_blocking(programs).await??;
    let start = |_| tokio::task::spawn_blocking(|| attach(&layout()?, programs));
    let started = Instant::now();
    let (one, two) = tokio::try_join!(start(1), start(2))?;
    let (one, two) = (one?, two?);
    println!("two clusters at once were ready after {:.1} s", started.elapsed().as_secs_f32());

    assert_ne!(one.state().port, two.state().port);
    assert_eq!(
        server_version(&one.state().kubeconfig).await?,
        server_version(&two.state().kubeconfig).await?
    );

    for cluster in [&one, &two] {
        let nodes: Api<Node> = Api::all(client_for(&cluster.state().kubeconfig, "plumb-test").await?);
        assert_eq!(nodes.list(&ListParams::default()).await?.items.len(), 2);
    }

    let layout = layout()?;
    let mut pids = Vec::new();
    for cluster in [&one, &two] {
        let found = cluster::find(&layout, &cluster.state().name)?.expect("a running cluster is listed");
        assert_eq!(found.condition(), Condition::Ready);
        let parts: Vec<&str> = found.processes.iter().map(|process| process.part.as_str()).collect();
        for part in
            ["supervise", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
        {
            assert!(parts.contains(&part), "{part} is missing in {parts:?}");
        }
        pids.extend(found.processes.iter().map(|process| process.pid));
    }
    assert_eq!(pids.len(), 12);

    let names = [one.state().name.clone(), two.state().name.clone()];
    let directories = [one.state().kubeconfig.clone(), two.state().kubeconfig.clone()];
    let stopping = Instant::now();
    drop(one);
    drop(two);
    println!("two clusters stopped in {:.1} s", stopping.elapsed().as_secs_f32());
    assert!(pids.iter().all(|pid| !alive(*pid)), "a process outlived its cluster");
    for (name, kubeconfig) in names.iter().zip(&directories) {
        assert!(!kubeconfig.parent().expect("it is in the cluster's directory").exists());
        assert!(cluster::find(&layout, name)?.is_none());
    }
    Ok(())
}

/// What `kill -9` of a test program or of `cargo xtask` does, as the supervisor sees it: its
/// standard input ends.
#[tokio::test]
async fn a_cluster_ends_when_its_caller_is_killed() -> Result<()> {
    let programs = tokio::task::spawn_blocking(programs).await??;
    // A caller that holds the supervisor's standard input, starts it, and can be killed.
    let directory = tempfile::tempdir()?;
    let dir = directory.path().join("cluster");
    std::fs::create_dir_all(dir.join("logs"))?;
    let script = format!(
        "exec 3> >(exec '{}' supervise --name killed --dir '{}' --ports-dir '{}' --kwok '{}' --attached \
         --remove-dir > '{}' 2> '{}/logs/supervisor.log'); echo started; while :; do read -r -t 3600 <> <(:); done",
        programs.cluster.display(),
        dir.display(),
        directory.path().join("ports").display(),
        programs.kwok.display(),
        directory.path().join("word").display(),
        dir.display(),
    );
    let mut caller = tokio::process::Command::new("bash")
        .args(["-c", &script])
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let word = until_seen(
        Duration::from_mins(5),
        "the supervisor says that it is ready",
        async || std::fs::read_to_string(directory.path().join("word")).unwrap_or_default(),
        |word| word.ends_with('\n'),
    )
    .await?;
    let state: serde_json::Value = serde_json::from_str(&word)?;
    assert_eq!(state["phase"], "ready", "{word}");
    let mut pids: Vec<i32> = Vec::new();
    pids.extend(state["supervisor"].as_i64().and_then(|pid| i32::try_from(pid).ok()));
    for child in state["children"].as_array().expect("children are listed") {
        pids.extend(child["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()));
    }
    assert_eq!(pids.len(), 6, "{word}");
    assert!(pids.iter().all(|pid| alive(*pid)));

    let killed = Instant::now();
    caller.kill().await?;
    until_seen(
        Duration::from_secs(5),
        "no process of the cluster is left",
        async || pids.iter().copied().filter(|pid| alive(*pid)).collect::<Vec<_>>(),
        Vec::is_empty,
    )
    .await?;
    println!("all processes were gone {:.1} s after the caller", killed.elapsed().as_secs_f32());
    Ok(())
}

#[tokio::test]
async fn what_a_killed_supervisor_leaves_is_listed_and_removed() -> Result<()> {
    let programs = tokio::task::spawn_blocking(programs).await??;
    let layout = layout()?;
    let name = format!("test-killed-{}", std::process::id());
    let directory = tempfile::tempdir()?;
    let options = StartOptions { directory: Some(directory.path().join("cluster")), port: None };
    let state = {
        let (layout, name, options) = (layout.clone(), name.clone(), options.clone());
        tokio::task::spawn_blocking(move || cluster::up(&layout, programs, &name, &options)).await??
    };
    assert_eq!(state.kubeconfig, directory.path().join("cluster/admin.kubeconfig"));
    assert!(server_version(&state.kubeconfig).await?.starts_with("v1."));

    let again = cluster::up(&layout, programs, &name, &options).unwrap_err().to_string();
    assert!(again.contains("already up"), "{again}");
    let taken = StartOptions { directory: None, port: Some(state.port) };
    let taken = cluster::up(&layout, programs, &format!("{name}-2"), &taken).unwrap_err().to_string();
    assert_eq!(taken, format!("port {} on 127.0.0.1 is taken", state.port));

    let running = cluster::find(&layout, &name)?.expect("it is listed");
    let supervisor =
        running.processes.iter().find(|process| process.part == "supervise").expect("it is supervised");
    let pid = rustix::process::Pid::from_raw(supervisor.pid).expect("a pid is not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    let left = until_seen(
        Duration::from_secs(5),
        "the children died with their supervisor",
        async || cluster::find(&layout, &name).ok().flatten(),
        |found| found.as_ref().is_some_and(|cluster| cluster.processes.is_empty()),
    )
    .await?
    .expect("it is still listed");
    assert_eq!(left.condition(), Condition::Abandoned);
    only_what_is_left_of_it_is_removed(&layout, programs, &left).await?;

    // Its data is there: the same name goes on with it.
    let resumed = cluster::up(&layout, programs, &name, &StartOptions::default())?;
    assert!(server_version(&resumed.kubeconfig).await?.starts_with("v1."));
    let running = cluster::find(&layout, &name)?.expect("it is listed");
    cluster::stop(&layout, &running)?;
    assert!(running.processes.iter().all(|process| !alive(process.pid)));
    assert!(!running.directory.exists());
    assert!(cluster::find(&layout, &name)?.is_none());
    Ok(())
}

/// Where the kernel does not end children with their parent, they stay. A process that looks
/// like one stands for them here, beside one that only reads the cluster's files.
async fn only_what_is_left_of_it_is_removed(
    layout: &Layout,
    programs: &Programs,
    cluster: &Cluster,
) -> Result<()> {
    let log = cluster.directory.join("logs/etcd.log");
    let follow = |name: &str| {
        let mut command = tokio::process::Command::new("bash");
        command.args(["-c", "exec -a \"$0\" tail -f \"$1\"", name]).arg(&log);
        command.stdout(std::process::Stdio::null()).kill_on_drop(true).spawn()
    };
    let mut left_over = follow("/somewhere/kwok")?;
    let mut bystander = follow("/usr/bin/tail")?;
    let found = until_seen(
        Duration::from_secs(10),
        "the process is listed",
        async || cluster::find(layout, &cluster.name).ok().flatten(),
        |found| found.as_ref().is_some_and(|found| !found.processes.is_empty()),
    )
    .await?
    .context("it is listed")?;
    let parts: Vec<&str> = found.processes.iter().map(|process| process.part.as_str()).collect();
    assert_eq!(parts, ["kwok"]);
    assert_eq!(found.condition(), Condition::Abandoned);
    let again = cluster::up(layout, programs, &cluster.name, &StartOptions::default());
    let refused = again.err().context("it must not start")?.to_string();
    assert!(refused.contains("left 1 processes behind"), "{refused}");

    // As in `stop`, but the data stays for the rest of the test.
    cluster::end_processes(&found.directory)?;
    assert!(!left_over.wait().await?.success());
    assert!(bystander.try_wait()?.is_none(), "a process that is not ours was ended");
    bystander.kill().await?;
    Ok(())
}

#[tokio::test]
async fn a_part_that_dies_takes_the_cluster_down_and_is_named() -> Result<()> {
    let programs = tokio::task::spawn_blocking(programs).await??;
    let layout = layout()?;
    let attached =
        tokio::task::spawn_blocking(move || attach(&Layout::from_environment()?, programs)).await??;
    let name = attached.state().name.clone();
    let running = cluster::find(&layout, &name)?.expect("it is listed");
    let scheduler =
        running.processes.iter().find(|process| process.part == "kube-scheduler").expect("it runs");
    let pid = rustix::process::Pid::from_raw(scheduler.pid).expect("a pid is not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    let ended = until_seen(
        Duration::from_mins(1),
        "nothing of the cluster runs",
        async || cluster::find(&layout, &name).ok().flatten(),
        |found| found.as_ref().is_some_and(|cluster| cluster.processes.is_empty()),
    )
    .await?
    .expect("a failed cluster stays listed");
    assert_eq!(ended.condition(), Condition::Stopped);
    let reason = ended.state.as_ref().expect("it had a state").reason.clone();
    assert!(reason.starts_with("kube-scheduler: signal: killed; last lines of "), "{reason}");
    drop(attached);
    cluster::stop(&layout, &ended)?;
    assert!(cluster::find(&layout, &name)?.is_none());
    Ok(())
}

#[test]
fn a_directory_that_holds_something_else_is_left_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("precious"), "data")?;
    let options = StartOptions { directory: Some(directory.path().to_path_buf()), port: None };
    let error = cluster::up(&layout()?, programs()?, "test-precious", &options).unwrap_err().to_string();
    assert!(error.ends_with("is not empty and holds no cluster"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path())?.count(), 1);
    assert!(cluster::find(&layout()?, "test-precious")?.is_none());
    Ok(())
}
