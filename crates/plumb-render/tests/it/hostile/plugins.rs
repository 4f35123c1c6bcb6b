//! Plugins that break out, hang or flood.

use plumb_render::PluginDiscovery;
use plumb_render::sandbox::{Namespaces, Sandbox};

use super::prelude::*;

fn plugin(script: &str) -> (Workbench, plumb_render::RenderRequest) {
    plugin_in(script, Capabilities::detect())
}

fn plugin_in(script: &str, capabilities: Capabilities) -> (Workbench, plumb_render::RenderRequest) {
    let workbench = workbench_in(&[("app/a.yaml", GOOD)], capabilities);
    let options = PluginOptions { name: Some("evil".to_owned()), ..PluginOptions::default() };
    let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
    let generate = ["sh", "-c", script].map(str::to_owned).to_vec();
    let plugins = [("evil".to_owned(), Plugin { generate, ..Plugin::default() })].into();
    // Whatever else is wrong with them must show also where the kernel cannot confine them.
    request.settings =
        Arc::new(RenderSettings { plugins, allow_unconfined_plugins: true, ..RenderSettings::default() });
    (workbench, request)
}

/// What this system has, and what a pod on it would have: no namespaces.
fn with_and_without_namespaces() -> Vec<Capabilities> {
    let here = Capabilities::detect();
    let pod = Capabilities { namespaces: Namespaces::None, ..here };
    let shared = Capabilities { namespaces: Namespaces::SharedProc, ..here };
    if here.namespaces == Namespaces::OwnProc { vec![here, shared, pod] } else { vec![here, pod] }
}

/// The error output of a plugin that runs this script and then fails.
fn said(script: &str, capabilities: Capabilities) -> String {
    let (workbench, request) = plugin_in(&format!("exec >&2; {script}; echo end; exit 1"), capabilities);
    let message = workbench.renderer.render(&request, Freshness::Fresh).unwrap_err().full_message();
    assert!(message.contains("end"), "the script did not end: {message}");
    message
}

#[test]
fn a_plugin_that_is_not_declared() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    let options = PluginOptions { name: Some("/bin/sh".to_owned()), ..PluginOptions::default() };
    fails(&workbench, "app", Some(SourceTool::Plugin(options)), &["plugin `/bin/sh` is not declared"]);
}

#[test]
fn a_plugin_that_hangs_takes_its_children_along() {
    for capabilities in with_and_without_namespaces() {
        // Also a child that has left the process group and whose parent has ended.
        let script = format!("{}; sleep 1000", leave_child("sleep 1000"));
        let workbench = Workbench::with_config(&[("app/a.yaml", GOOD), ("good/a.yaml", GOOD)], |config| {
            config.sandbox = Sandbox::detect().with_capabilities(capabilities);
            config.limits.time = Duration::from_secs(5);
        });
        let (_, mut request) = plugin_in(&script, capabilities);
        request.files = workbench.request("app", None).files;
        let scratch = workbench.directory.path().join("cache/scratch");
        // The file is removed with the scratch directory, so it is read while the plugin runs.
        let child = std::thread::spawn(move || child_of_plugin(&scratch));
        fails_with(&workbench, &request, &["plugin generate", "did not finish within"]);
        let child = child.join().unwrap().expect("the plugin told the name of its child");
        wait_until_gone(&child, capabilities);
    }
}

/// A child that outlives a plugin that succeeds.
#[test]
fn a_plugin_that_ends_leaves_no_process() {
    for capabilities in with_and_without_namespaces() {
        let script = format!("{} >/dev/null 2>&1; cat a.yaml", leave_child("sleep 1000"));
        let (workbench, request) = plugin_in(&script, capabilities);
        let before = Instant::now();
        let rendered = workbench.renderer.render(&request, Freshness::Fresh).unwrap();
        assert_eq!(names(&rendered), ["ConfigMap/good"]);
        assert!(before.elapsed() < Duration::from_secs(15), "it waited for the child");
        let name = CHILDREN.lock().unwrap().pop().unwrap();
        wait_until_gone(&name, capabilities);
    }
}

/// The names of children, which are arguments that only they have.
static CHILDREN: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// A command that starts another one as a daemon and writes its name to the file `child`.
fn leave_child(command: &str) -> String {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("plumb-left-{}-{number}", std::process::id());
    CHILDREN.lock().unwrap().push(name.clone());
    format!("(setsid sh -c ': {name}; {command}; :' & ) ; echo {name} > child")
}

/// Waits until no process has this text in its command line.
fn wait_until_gone(name: &str, capabilities: Capabilities) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_running(name) {
        assert!(Instant::now() < deadline, "{name} is still running with {capabilities:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The name in the file `child` of the app's directory.
fn child_of_plugin(scratch: &std::path::Path) -> Option<String> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let renderings = std::fs::read_dir(scratch).into_iter().flatten().flatten();
        let mut files = renderings.map(|rendering| rendering.path().join("repo/app/child"));
        let name = files.find_map(|file| std::fs::read_to_string(file).ok());
        if let Some(name) = name.filter(|name| name.ends_with('\n')) {
            return Some(name.trim().to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

fn is_running(name: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut command_lines =
        processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    command_lines.any(|line| String::from_utf8_lossy(&line).contains(&format!(": {name};")))
}

#[test]
fn a_plugin_sees_no_environment_but_its_own() {
    let (workbench, request) = plugin("env | sed 's/^/# /'; cat a.yaml");
    let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/good"]);
    let (workbench, request) = plugin("env >&2; exit 1");
    let message = workbench.renderer.render(&request, Freshness::Cached).unwrap_err().full_message();
    for line in message.lines().filter(|line| line.contains('=')) {
        let name = line.split('=').next().unwrap_or_default().rsplit(' ').next().unwrap_or_default();
        let known = [
            "ARGOCD_", "KUBE_", "PARAM_", "HOME", "PATH", "PWD", "TMPDIR", "LC_ALL", "TZ", "_", "SHLVL",
            "OLDPWD",
        ];
        let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
        assert!(is_proxy || known.iter().any(|start| name.starts_with(start)), "unexpected variable: {line}");
    }
}

/// TCP, UDP and sockets of the file system.
#[test]
fn a_plugin_has_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_nonblocking(true).unwrap();
    let udp = receiver.local_addr().unwrap().port();
    for capabilities in with_and_without_namespaces() {
        let script = format!(
            "bash -c 'echo x > /dev/tcp/127.0.0.1/{port} && echo tcp-open; echo x > /dev/udp/127.0.0.1/{udp} && echo udp-open'"
        );
        let message = said(&script, capabilities);
        for word in ["tcp-open", "udp-open"] {
            assert!(!message.contains(word), "{capabilities:?}: {message}");
        }
        assert!(receiver.recv(&mut [0; 8]).is_err(), "a packet arrived");
    }
}

/// A tool can neither signal nor see plumb, whether there are namespaces or not.
#[test]
fn a_plugin_reaches_no_other_process() {
    let plumb = std::process::id();
    for capabilities in with_and_without_namespaces() {
        let script = format!(
            "kill -0 {plumb} && echo signalled; kill -0 -1 && true; cat /proc/{plumb}/cmdline && echo seen; \
             echo 500 > /proc/{plumb}/oom_score_adj && echo written"
        );
        let message = said(&script, capabilities);
        for word in ["signalled", "seen", "written"] {
            assert!(!message.contains(word), "{capabilities:?}: {message}");
        }
    }
}

/// On a kernel without Landlock the filter of system calls still keeps signals from plumb.
#[test]
fn a_plugin_that_only_filters_restrict_does_not_signal_plumb() {
    let here = Capabilities::detect();
    if !here.seccomp {
        println!("skipped: no seccomp here");
        return;
    }
    let bare = Capabilities { seccomp: true, child_lists: here.child_lists, ..Capabilities::NONE };
    let plumb = std::process::id();
    let script =
        format!("kill -0 {plumb} && echo signalled; kill -0 -1 && echo signalled; true & kill $!; wait");
    let message = said(&script, bare);
    assert!(!message.contains("signalled"), "{message}");
    let script = "bash -c 'exec 3<>/dev/udp/127.0.0.1/9 && echo opened'";
    let message = said(script, bare);
    assert!(!message.contains("opened"), "{message}");
}

#[test]
fn a_plugin_cannot_write_to_proc() {
    for capabilities in with_and_without_namespaces() {
        let script = "cat /proc/sys/kernel/core_pattern > pattern; \
                      { cat pattern > /proc/sys/kernel/core_pattern; } && echo kernel-written; \
                      { echo -1000 > /proc/self/oom_score_adj; } && echo adj-written";
        let message = said(script, capabilities);
        assert!(!message.contains("-written"), "{capabilities:?}: {message}");
    }
}

#[test]
fn a_plugin_creates_no_namespace_and_no_mount() {
    for capabilities in with_and_without_namespaces() {
        let script = "unshare --user --map-root-user true && echo new-user; unshare --net true && echo new-net; \
                      mkdir m; mount -t tmpfs none m && echo mounted; mknod d c 1 1 && echo device";
        let message = said(script, capabilities);
        for word in ["new-user", "new-net", "mounted", "device\n"] {
            assert!(!message.contains(word), "{capabilities:?}: {message}");
        }
    }
}

#[test]
fn a_plugin_that_uses_much_memory() {
    for capabilities in with_and_without_namespaces() {
        // Each process stays below the limit, their sum does not.
        let grow = "head -c 60000000 /dev/zero | tail -c 60000000 | { sleep 15; cat > /dev/null; } &";
        let script = format!("{grow} {grow} {grow} {grow} sleep 15");
        let workbench = Workbench::with_config(&[("app/a.yaml", GOOD), ("good/a.yaml", GOOD)], |config| {
            config.sandbox = Sandbox::detect().with_capabilities(capabilities);
            config.memory = 512 << 20;
        });
        let (_, mut request) = plugin_in(&script, capabilities);
        request.files = workbench.request("app", None).files;
        fails_with(&workbench, &request, &["plugin generate", "more than 128 MiB of memory", "container"]);
        let again = Instant::now();
        fails_with(&workbench, &request, &["more than 128 MiB of memory"]);
        assert!(again.elapsed() < Duration::from_secs(5), "the same failure is not run again at once");
    }
}

#[test]
fn a_plugin_that_starts_many_processes() {
    for capabilities in with_and_without_namespaces() {
        let script = "i=0; while [ $i -lt 2000 ]; do sleep 30 & i=$((i+1)); done; wait";
        let (workbench, request) = plugin_in(script, capabilities);
        fails_with(&workbench, &request, &["plugin generate", "more than 512 processes"]);
    }
}

#[test]
fn a_plugin_that_fills_the_disk() {
    for capabilities in with_and_without_namespaces() {
        let workbench = Workbench::with_config(&[("app/a.yaml", GOOD), ("good/a.yaml", GOOD)], |config| {
            config.sandbox = Sandbox::detect().with_capabilities(capabilities);
            config.limits.export_bytes = 8 << 20;
        });
        let script =
            "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done; sleep 60";
        let (_, mut request) = plugin_in(script, capabilities);
        request.files = workbench.request("app", None).files;
        fails_with(&workbench, &request, &["plugin generate", "more than 16 MiB of temporary files"]);
    }
}

#[test]
fn a_plugin_touches_no_file_but_its_own() {
    let (workbench, mut request) = plugin("");
    if !workbench.renderer.isolation_level().files {
        println!("skipped: no Landlock here");
        return;
    }
    let marker = workbench.directory.path().join("written");
    let script = format!(
        "cat {} >&2; cat /etc/passwd >&2; ls {} >&2; echo x > {}; echo x > inside; cat a.yaml inside >&2; exit 1",
        secret_path(&workbench),
        workbench.root().display(),
        marker.display()
    );
    let generate = vec!["sh".to_owned(), "-c".to_owned(), script];
    let plugins = [("evil".to_owned(), Plugin { generate, ..Plugin::default() })].into();
    request.settings = Arc::new(RenderSettings { plugins, ..RenderSettings::default() });
    fails_with(&workbench, &request, &["Permission denied", "name: good\nx"]);
    assert!(!marker.exists());
    assert!(!workbench.root().join("app/inside").exists(), "the source itself was written to");
}

#[test]
fn a_plugin_that_prints_without_end() {
    let (workbench, request) = plugin("yes 'a: b'");
    fails_with(&workbench, &request, &["plugin generate", "printed more than"]);
}

/// Where the kernel cannot confine it, a plugin could read whatever plumb can.
#[test]
fn a_plugin_that_nothing_confines_is_not_run() {
    let workbench = workbench_in(&[("app/a.yaml", GOOD)], Capabilities::NONE);
    let marker = workbench.directory.path().join("ran");
    let generate =
        vec!["sh".to_owned(), "-c".to_owned(), format!("echo x > {}; cat a.yaml", marker.display())];
    let plugin =
        Plugin { generate, discover: PluginDiscovery::FileName("*.yaml".to_owned()), ..Plugin::default() };
    let plugins: std::collections::BTreeMap<_, _> = [("evil".to_owned(), plugin)].into();
    let named = PluginOptions { name: Some("evil".to_owned()), ..PluginOptions::default() };
    // Named by the source, or claiming it by a file.
    for tool in [Some(SourceTool::Plugin(named)), None] {
        let mut request = workbench.request("app", tool);
        request.settings = Arc::new(RenderSettings { plugins: plugins.clone(), ..RenderSettings::default() });
        let error = workbench.renderer.render(&request, Freshness::Cached).unwrap_err().full_message();
        for word in
            ["plugin `evil` is not run", "files", "network", "processes", "plumb.plugins.allow-unconfined"]
        {
            assert!(error.contains(word), "{error}");
        }
        assert!(!marker.exists(), "it ran");
    }
    let mut request = workbench.request("app", None);
    request.settings =
        Arc::new(RenderSettings { plugins, allow_unconfined_plugins: true, ..RenderSettings::default() });
    let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
    assert_eq!(names(&rendered), ["ConfigMap/good"]);
    assert!(marker.exists(), "an administrator's word lets it run");
    // What was rendered while it was allowed is not given out when it no longer is.
    request.settings = Arc::new(RenderSettings {
        allow_unconfined_plugins: false,
        ..RenderSettings::clone(&request.settings)
    });
    assert!(workbench.renderer.render(&request, Freshness::Cached).is_err());
}
