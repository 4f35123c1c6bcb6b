//! Plugins that break out, hang or flood.

use plumb_render::PluginDiscovery;
use plumb_render::sandbox::FileIsolation;

use super::prelude::*;

fn plugin(script: &str) -> (Workbench, plumb_render::RenderRequest) {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    let options = PluginOptions { name: Some("evil".to_owned()), ..PluginOptions::default() };
    let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
    let generate = ["sh", "-c", script].map(str::to_owned).to_vec();
    let plugins = [("evil".to_owned(), Plugin { generate, ..Plugin::default() })].into();
    // Whatever else is wrong with them must show also where the kernel cannot confine them.
    request.settings =
        Arc::new(RenderSettings { plugins, allow_unconfined_plugins: true, ..RenderSettings::default() });
    (workbench, request)
}

#[test]
fn a_plugin_that_is_not_declared() {
    let workbench = workbench(&[("app/a.yaml", GOOD)]);
    let options = PluginOptions { name: Some("/bin/sh".to_owned()), ..PluginOptions::default() };
    fails(&workbench, "app", Some(SourceTool::Plugin(options)), &["plugin `/bin/sh` is not declared"]);
}

#[test]
fn a_plugin_that_hangs_takes_its_children_along() {
    let (workbench, request) = plugin("sleep 1000 & echo $! > child; sleep 1000");
    let scratch = workbench.directory.path().join("cache/scratch");
    // The file is removed with the scratch directory, so it is read while the plugin runs.
    let child = std::thread::spawn(move || child_of_plugin(&scratch));
    fails_with(&workbench, &request, &["plugin generate", "did not finish within 20 s"]);
    let child = child.join().unwrap().expect("the plugin wrote the process id of its child");
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_running(child) {
        assert!(Instant::now() < deadline, "process {child} is still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process id in the file `child` of the app's directory.
fn child_of_plugin(scratch: &std::path::Path) -> Option<u32> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let renderings = std::fs::read_dir(scratch).into_iter().flatten().flatten();
        let mut files = renderings.map(|rendering| rendering.path().join("repo/app/child"));
        let id = files.find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
        if id.is_some() {
            return id;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

/// False also for a process that has ended and that its parent has not waited for yet.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
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

#[test]
fn a_plugin_has_no_network() {
    let (workbench, request) = plugin("cat /proc/net/dev >&2; exit 1");
    if workbench.renderer.isolation() != plumb_render::sandbox::NetworkIsolation::Namespace {
        println!("skipped: no network namespaces here");
        return;
    }
    let message = workbench.renderer.render(&request, Freshness::Cached).unwrap_err().full_message();
    assert!(message.contains("lo:") && !message.contains("eth0"), "{message}");
}

#[test]
fn a_plugin_touches_no_file_but_its_own() {
    let (workbench, mut request) = plugin("");
    if workbench.renderer.file_isolation() != plumb_render::sandbox::FileIsolation::Landlock {
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
    let workbench = Workbench::with_config(&[("app/a.yaml", GOOD)], |config| {
        config.sandbox = config.sandbox.clone().with_file_isolation(FileIsolation::InspectionOnly);
    });
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
        for word in ["plugin `evil` is not run", "Landlock", "plumb.plugins.allow-unconfined"] {
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
