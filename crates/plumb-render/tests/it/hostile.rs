//! Repositories that attack. None may show a byte from outside, hang, or disturb a good app beside it, and each
//! error names the file and the reason.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::{
    DirectoryOptions, HelmFileParameter, HelmOptions, HelmParameter, JsonnetVariable, KustomizeOptions,
    KustomizePatch, PluginOptions, Source, SourceTool,
};
use plumb_render::{Freshness, LocalFiles, Plugin, RenderSettings, Rendered};

use crate::workbench::{Workbench, has, names, tools};

/// Stands in files outside every source.
pub(crate) const CANARY: &str = "canary-5b1f0a";

pub(crate) const GOOD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: good\n";

/// A workbench with a secret beside the source, a good app in it, and small limits.
pub(crate) fn workbench(files: &[(&str, &str)]) -> Workbench {
    let workbench = Workbench::with_config(files, |config| {
        config.limits.time = Duration::from_secs(20);
        config.limits.memory = 3 << 30;
        config.limits.objects = 500;
        config.limits.directory_bytes = 1 << 20;
        config.limits.output = 4 << 20;
        config.limits.export_files = 3000;
    });
    let secret = format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: {CANARY}\n");
    std::fs::write(workbench.directory.path().join("secret.yaml"), &secret).unwrap();
    std::fs::create_dir(workbench.directory.path().join("outside")).unwrap();
    std::fs::write(workbench.directory.path().join("outside/secret.yaml"), &secret).unwrap();
    std::fs::write(
        workbench.directory.path().join("outside/kustomization.yaml"),
        "resources: [secret.yaml]\n",
    )
    .unwrap();
    workbench.write("good/a.yaml", GOOD);
    workbench
}

pub(crate) fn secret_path(workbench: &Workbench) -> String {
    workbench.directory.path().join("secret.yaml").display().to_string()
}

/// Nothing from outside may be in what came out.
fn no_canary(rendered: &Rendered) {
    let text = format!("{rendered:?}");
    assert!(!text.contains(CANARY), "a file from outside was read: {text}");
    assert!(!text.contains("root:x:0"), "/etc/passwd was read: {text}");
}

/// The app must fail with all of these words, soon, and leave the good app alone.
pub(crate) fn fails(workbench: &Workbench, path: &str, tool: Option<SourceTool>, words: &[&str]) {
    fails_with(workbench, &workbench.request(path, tool), words);
}

pub(crate) fn fails_with(workbench: &Workbench, request: &plumb_render::RenderRequest, words: &[&str]) {
    let started = Instant::now();
    let message = match workbench.renderer.render(request, Freshness::Cached) {
        Ok(rendered) => {
            no_canary(&rendered);
            panic!("it rendered: {:?}", names(&rendered));
        }
        Err(error) => error.full_message(),
    };
    assert!(started.elapsed() < Duration::from_secs(90), "it took {:?}", started.elapsed());
    assert!(!message.contains(CANARY) && !message.contains("root:x:0"), "{message}");
    let scratch = workbench.directory.path().join("cache").display().to_string();
    assert!(!message.contains(&scratch), "a temporary path is shown: {message}");
    for word in words {
        assert!(message.contains(word), "`{word}` is missing in: {message}");
    }
    good_app_renders(workbench);
}

/// It may render, but nothing from outside.
pub(crate) fn renders_without_canary(
    workbench: &Workbench,
    path: &str,
    tool: Option<SourceTool>,
) -> Rendered {
    let rendered = workbench.render(path, tool).unwrap_or_else(|error| panic!("{}", error.full_message()));
    no_canary(&rendered);
    good_app_renders(workbench);
    rendered
}

fn good_app_renders(workbench: &Workbench) {
    let good = workbench.renderer.render(&workbench.request("good", None), Freshness::Fresh).unwrap();
    assert_eq!(names(&good), ["ConfigMap/good"]);
}

pub(crate) fn helm(options: HelmOptions) -> SourceTool {
    SourceTool::Helm(Box::new(options))
}

fn kustomize(options: KustomizeOptions) -> SourceTool {
    SourceTool::Kustomize(Box::new(options))
}

fn recurse() -> SourceTool {
    SourceTool::Directory(DirectoryOptions { recurse: true, ..DirectoryOptions::default() })
}

/// A text that its aliases blow up to 9^12 items.
fn bomb() -> String {
    let levels = (1..12).map(|level| {
        let previous = vec![format!("*a{}", level - 1); 9].join(", ");
        format!("a{level}: &a{level} [{previous}]\n")
    });
    std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain(levels)
        .collect::<Vec<_>>()
        .concat()
}

mod links {
    use super::*;

    #[test]
    fn absolute_link() {
        let workbench = workbench(&[]);
        workbench.link("app/a.yaml", &secret_path(&workbench));
        fails(&workbench, "app", None, &["app/a.yaml", "outside the repository"]);
    }

    #[test]
    fn climbing_link() {
        let workbench = workbench(&[]);
        workbench.link("app/a.yaml", "../../secret.yaml");
        fails(&workbench, "app", None, &["app/a.yaml", "outside the repository"]);
    }

    #[test]
    fn chained_links() {
        let workbench = workbench(&[]);
        workbench.link("app/a.yaml", "b.yaml");
        workbench.link("app/b.yaml", "../step/c.yaml");
        workbench.link("step/c.yaml", "../../secret.yaml");
        fails(&workbench, "app", None, &["step/c.yaml", "outside the repository"]);
    }

    #[test]
    fn link_through_a_linked_directory() {
        let workbench = workbench(&[("x/y/z/keep", "")]);
        workbench.link("up", "x/y/z");
        // By text it stays inside; by the way it really goes it would too, unless `..` were cut off by text.
        workbench.link("app/a.yaml", "../up/../../../../secret.yaml");
        fails(&workbench, "app", None, &["outside the repository"]);
    }

    #[test]
    fn link_loop() {
        let workbench = workbench(&[]);
        workbench.link("app/a.yaml", "b.yaml");
        workbench.link("app/b.yaml", "a.yaml");
        fails(&workbench, "app", None, &["app/a.yaml", "more than 40 links"]);
    }

    #[test]
    fn link_to_a_directory_outside() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        workbench.link("app/dir", "../../outside");
        workbench.link("app/etc", "/etc");
        let rendered = renders_without_canary(&workbench, "app", Some(recurse()));
        assert_eq!(names(&rendered), ["ConfigMap/good"]);
    }

    #[test]
    fn the_app_path_is_a_link_outside() {
        let workbench = workbench(&[]);
        workbench.link("app", "../outside");
        fails(&workbench, "app", None, &["app path `app`", "outside the repository"]);
    }

    #[test]
    fn link_to_its_own_parent() {
        if !has(&tools().kustomize) {
            return;
        }
        let workbench =
            workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
        workbench.link("app/loop", ".");
        fails(&workbench, "app", None, &["app/loop", "links"]);
    }

    #[test]
    fn links_that_double_with_every_level() {
        if !has(&tools().kustomize) {
            return;
        }
        let workbench =
            workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
        workbench.write("level30/file", "x");
        for level in (0..30).rev() {
            workbench.link(&format!("level{level}/left"), &format!("../level{}", level + 1));
            workbench.link(&format!("level{level}/right"), &format!("../level{}", level + 1));
        }
        workbench.link("app/start", "../level0");
        fails(&workbench, "app", None, &["limit"]);
    }
}

mod paths {
    use super::*;

    #[test]
    fn app_paths_outside() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        for path in ["..", "../outside", "app/../../outside", "/etc", "app/../../../../../../etc"] {
            fails(&workbench, path, None, &["app path"]);
        }
        fails(&workbench, "", None, &["names no path"]);
        fails(&workbench, "app/a.yaml", None, &["is not a directory"]);
        fails(&workbench, "App", None, &["app path `App`", "does not exist"]);
    }

    #[test]
    fn globs_that_explode() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        let options = |include: String| {
            Some(SourceTool::Directory(DirectoryOptions {
                include: Some(include),
                ..DirectoryOptions::default()
            }))
        };
        let started = Instant::now();
        let _ = workbench.render("app", options("{a,b,c,d}*".repeat(50)));
        let _ = workbench.render("app", options("*a".repeat(5000)));
        assert!(started.elapsed() < Duration::from_secs(5));
        fails(&workbench, "app", options("[".to_owned()), &["directory.include"]);
    }
}

mod manifests {
    use super::*;

    #[test]
    fn billion_laughs() {
        let bomb = format!("{}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\n", bomb());
        let workbench = workbench(&[("app/bomb.yaml", &bomb)]);
        let started = Instant::now();
        fails(&workbench, "app", None, &["app/bomb.yaml", "not valid YAML"]);
        assert!(started.elapsed() < Duration::from_secs(3));
    }

    #[test]
    fn nesting_without_end() {
        let deep = format!("apiVersion: v1\nkind: X\nspec: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
        let workbench = workbench(&[("app/deep.yaml", &deep)]);
        fails(&workbench, "app", None, &["app/deep.yaml"]);
        let deep = format!("{{\"kind\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        workbench.write("json/deep.json", &deep);
        fails(&workbench, "json", None, &["json/deep.json"]);
    }

    #[test]
    fn huge_files() {
        let huge = format!("{GOOD}data:\n  x: {}\n", "y".repeat(2 << 20));
        let workbench = workbench(&[("app/huge.yaml", &huge)]);
        fails(&workbench, "app", None, &["app/huge.yaml", "over the limit"]);
    }

    #[test]
    fn too_many_objects() {
        let many: Vec<String> =
            (0..2000).map(|n| format!("---\n{}", GOOD.replace("good", &format!("n{n}")))).collect();
        let many = many.concat();
        let workbench = workbench(&[("app/many.yaml", &many)]);
        fails(&workbench, "app", None, &["app/many.yaml", "number of objects", "500"]);
    }

    #[test]
    fn pointers_of_git_lfs() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n";
        let workbench = workbench(&[("app/a.yaml", pointer)]);
        fails(&workbench, "app", None, &["app/a.yaml", "Git LFS"]);
    }

    #[test]
    fn bytes_that_are_no_text() {
        let workbench = workbench(&[]);
        std::fs::create_dir(workbench.root().join("app")).unwrap();
        std::fs::write(workbench.root().join("app/a.yaml"), b"kind: \xff\xfe\x00\n").unwrap();
        fails(&workbench, "app", None, &["app/a.yaml"]);
    }

    #[test]
    fn duplicate_keys() {
        let workbench = workbench(&[("app/a.yaml", &format!("{GOOD}kind: Secret\n"))]);
        fails(&workbench, "app", None, &["app/a.yaml", "kind"]);
    }

    #[test]
    fn names_that_are_no_text() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"bad\xff.yaml");
        std::fs::write(workbench.root().join("app").join(name), GOOD).unwrap();
        fails(&workbench, "app", None, &["app", "unusable name"]);
    }
}

mod overlays {
    use super::*;

    fn refused(resources: &str, words: &[&str]) {
        let workbench = workbench(&[("app/kustomization.yaml", resources), ("app/a.yaml", GOOD)]);
        workbench.link("app/link.yaml", "a.yaml");
        let mut all = vec!["app/kustomization.yaml"];
        all.extend(words);
        fails(&workbench, "app", None, &all);
    }

    #[test]
    fn absolute_and_climbing_resources() {
        refused("resources: [/etc/passwd]\n", &["absolute"]);
        refused("resources: [../../secret.yaml]\n", &["outside the repository"]);
        refused("resources: [../../outside]\n", &["outside the repository"]);
        refused("bases: [../../outside]\n", &["outside the repository"]);
        refused("components: [../../outside]\n", &["outside the repository"]);
        refused("configMapGenerator: [{name: x, files: [k=/etc/passwd]}]\n", &["absolute"]);
        refused("configMapGenerator: [{name: x, envs: [../../secret.yaml]}]\n", &["outside"]);
        refused("secretGenerator: [{name: x, files: [../../secret.yaml]}]\n", &["outside"]);
        refused("patches: [{path: /etc/passwd}]\n", &["absolute"]);
        refused("replacements: [{path: ../../secret.yaml}]\n", &["outside"]);
        refused("openapi: {path: /etc/passwd}\n", &["absolute"]);
        refused("helmGlobals: {chartHome: /etc}\n", &["absolute"]);
    }

    #[test]
    fn remote_bases() {
        for base in [
            "https://example.com/base.yaml",
            "github.com/example/repo//base?ref=main",
            "git@github.com:example/repo.git",
            "ssh://git@example.com/repo",
            "git::https://example.com/repo",
            "https://user:hunter2@example.com/repo?ref=x",
        ] {
            refused(&format!("resources: [\"{base}\"]\n"), &["refused", "no network"]);
        }
        refused("helmCharts: [{name: x, repo: \"https://example.com\"}]\n", &["no network"]);
    }

    #[test]
    fn credentials_in_addresses_are_not_shown() {
        let workbench = workbench(&[(
            "app/kustomization.yaml",
            "resources: [\"https://user:hunter2@example.com/repo\"]\n",
        )]);
        let error = workbench.render("app", None).unwrap_err().full_message();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn file_addresses_even_with_network() {
        for base in ["file:///etc", "git::file:///etc", "ext::sh -c id"] {
            let files = [("app/kustomization.yaml", format!("resources: [\"{base}\"]\n"))];
            let workbench = workbench(&[(files[0].0, &files[0].1)]);
            let mut request = workbench.request("app", None);
            let settings = RenderSettings { allow_network: true, ..RenderSettings::default() };
            request.settings = Arc::new(settings);
            fails_with(&workbench, &request, &["app/kustomization.yaml", "neither in the repository"]);
        }
    }

    #[test]
    fn links_to_files_outside() {
        let workbench = workbench(&[(
            "app/kustomization.yaml",
            "configMapGenerator: [{name: x, files: [secret.yaml]}]\n",
        )]);
        workbench.link("app/secret.yaml", "../../secret.yaml");
        fails(&workbench, "app", None, &["app/secret.yaml", "outside the repository"]);
    }

    #[test]
    fn programs_in_transformers_do_not_run() {
        if !has(&tools().kustomize) {
            return;
        }
        let workbench = workbench(&[
            ("app/kustomization.yaml", "resources: [a.yaml]\ntransformers: [t.yaml]\n"),
            ("app/a.yaml", GOOD),
            ("app/run.sh", "#!/bin/sh\ntouch ran\ncat\n"),
        ]);
        let function = "apiVersion: example.com/v1\nkind: Evil\nmetadata:\n  name: t\n  annotations:\n    \
                        config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n";
        workbench.write("app/t.yaml", function);
        fails(&workbench, "app", None, &["kustomize build"]);
        assert!(!workbench.root().join("app/ran").exists());
    }

    #[test]
    fn options_of_the_settings_that_run_programs() {
        let workbench =
            workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
        for option in ["--enable-exec", "--enable-alpha-plugins", "--network=true"] {
            let mut request = workbench.request("app", None);
            let settings =
                RenderSettings { kustomize_build_options: option.to_owned(), ..RenderSettings::default() };
            request.settings = Arc::new(settings);
            fails_with(&workbench, &request, &["kustomize.buildOptions", option]);
        }
    }

    #[test]
    fn options_of_the_application_that_leave() {
        let workbench =
            workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
        let components =
            KustomizeOptions { components: vec!["../../outside".to_owned()], ..KustomizeOptions::default() };
        fails(&workbench, "app", Some(kustomize(components)), &["kustomize.components", "outside"]);
        let patch = KustomizePatch { path: Some("/etc/passwd".to_owned()), ..KustomizePatch::default() };
        let patches = KustomizeOptions { patches: vec![patch], ..KustomizeOptions::default() };
        fails(&workbench, "app", Some(kustomize(patches)), &["kustomize.patches", "absolute"]);
        let version =
            KustomizeOptions { version: Some("../../bin/sh".to_owned()), ..KustomizeOptions::default() };
        fails(&workbench, "app", Some(kustomize(version)), &["kustomize.version", "not registered"]);
    }

    #[test]
    fn values_that_look_like_options() {
        if !has(&tools().kustomize) {
            return;
        }
        let workbench =
            workbench(&[("app/kustomization.yaml", "resources: [a.yaml]\n"), ("app/a.yaml", GOOD)]);
        let options =
            KustomizeOptions { name_prefix: Some("--help".to_owned()), ..KustomizeOptions::default() };
        let rendered = renders_without_canary(&workbench, "app", Some(kustomize(options)));
        assert_eq!(names(&rendered), ["ConfigMap/--helpgood"], "the value is a value, nothing else");
    }

    #[test]
    fn overlays_that_contain_each_other() {
        if !has(&tools().kustomize) {
            return;
        }
        let workbench = workbench(&[
            ("a/kustomization.yaml", "resources: [../b]\n"),
            ("b/kustomization.yaml", "resources: [../a]\n"),
        ]);
        fails(&workbench, "a", None, &["kustomize build", "cycle"]);
    }

    #[test]
    fn a_kustomization_that_is_a_bomb() {
        let bomb = bomb();
        let workbench = workbench(&[("app/kustomization.yaml", &bomb)]);
        fails(&workbench, "app", None, &["app/kustomization.yaml"]);
    }
}

mod charts {
    use super::*;

    const CHART: [(&str, &str); 2] = [
        ("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n"),
        ("chart/values.yaml", "text: x\n"),
    ];

    fn chart(template: &str) -> Workbench {
        let workbench = workbench(&CHART);
        workbench.write("chart/templates/t.yaml", template);
        workbench
    }

    fn value_file(file: &str) -> SourceTool {
        helm(HelmOptions { value_files: vec![file.to_owned()], ..HelmOptions::default() })
    }

    #[test]
    fn value_files_outside() {
        let workbench = chart(GOOD);
        for (file, word) in [
            ("../../secret.yaml", "outside the repository"),
            ("/../secret.yaml", "outside the repository"),
            ("/etc/passwd", "does not exist in the repository"),
            ("file:///etc/passwd", "not read"),
            ("https://example.com/values.yaml", "not read"),
            ("secrets://values.yaml", "not read"),
            ("$values/../../secret.yaml", "no source of this app has `ref: values`"),
        ] {
            fails(&workbench, "chart", Some(value_file(file)), &["value", word]);
        }
        workbench.link("chart/link.yaml", "../../secret.yaml");
        fails(&workbench, "chart", Some(value_file("link.yaml")), &["link.yaml", "outside the repository"]);
    }

    #[test]
    fn references_that_leave_their_source() {
        let workbench = chart(GOOD);
        let other = workbench.directory.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink("../secret.yaml", other.join("link.yaml")).unwrap();
        for (file, word) in [
            ("$values/../secret.yaml", "outside"),
            ("$values/link.yaml", "outside"),
            ("$values", "not a file"),
        ] {
            let mut request = workbench.request("chart", Some(value_file(file)));
            request.refs.insert("values".to_owned(), Arc::new(LocalFiles::new(&other)));
            fails_with(&workbench, &request, &["value", word]);
        }
    }

    #[test]
    fn file_parameters_outside() {
        let workbench = chart(GOOD);
        let parameter = |path: &str| {
            helm(HelmOptions {
                file_parameters: vec![HelmFileParameter { name: "text".to_owned(), path: path.to_owned() }],
                ..HelmOptions::default()
            })
        };
        fails(&workbench, "chart", Some(parameter("../../secret.yaml")), &["helm.fileParameters", "outside"]);
        fails(
            &workbench,
            "chart",
            Some(parameter("/etc/passwd")),
            &["helm.fileParameters", "does not exist"],
        );
    }

    #[test]
    fn templates_cannot_read_files_outside() {
        if !has(&tools().helm) {
            return;
        }
        let template = format!(
            "{GOOD}data:\n  a: {{{{ .Files.Get \"../../secret.yaml\" | quote }}}}\n  \
             b: {{{{ .Files.Get \"/etc/passwd\" | quote }}}}\n  c: {{{{ env \"HOME\" | quote }}}}\n"
        );
        let workbench = chart(&template.replace("  c: {{ env \"HOME\" | quote }}\n", ""));
        let rendered = renders_without_canary(&workbench, "chart", None);
        assert_eq!(rendered.manifests[0].value["data"]["a"], "");
        workbench.write("chart/templates/t.yaml", &template);
        fails(&workbench, "chart", None, &["helm template", "env"]);
    }

    #[test]
    fn templates_that_are_links_outside() {
        let workbench = chart(GOOD);
        workbench.link("chart/templates/s.yaml", "../../../secret.yaml");
        fails(&workbench, "chart", None, &["chart/templates/s.yaml", "outside"]);
        let workbench = chart(GOOD);
        workbench.link("chart/charts", "/etc");
        fails(&workbench, "chart", None, &["chart/charts", "outside"]);
    }

    #[test]
    fn names_that_look_like_options() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(GOOD);
        let marker = workbench.directory.path().join("ran");
        let post = format!("--post-renderer={}", marker.display());
        for release in ["--kubeconfig=/etc/passwd", post.as_str(), "-x", "a b", "../x"] {
            let options = HelmOptions { release_name: Some(release.to_owned()), ..HelmOptions::default() };
            fails(&workbench, "chart", Some(helm(options)), &["helm template", "name"]);
        }
        let namespace = HelmOptions { namespace: Some("--debug".to_owned()), ..HelmOptions::default() };
        renders_without_canary(&workbench, "chart", Some(helm(namespace)));
        assert!(!marker.exists());
    }

    #[test]
    fn parameters_are_values_only() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(&format!("{GOOD}data:\n  text: {{{{ .Values.text | quote }}}}\n"));
        let options = HelmOptions {
            parameters: vec![HelmParameter {
                name: "text".to_owned(),
                value: "a,other=b,--set-file=text=/etc/passwd".to_owned(),
                force_string: false,
            }],
            ..HelmOptions::default()
        };
        let rendered = renders_without_canary(&workbench, "chart", Some(helm(options)));
        assert_eq!(rendered.manifests[0].value["data"]["text"], "a,other=b,--set-file=text=/etc/passwd");
    }

    #[test]
    fn templates_that_never_end() {
        if !has(&tools().helm) {
            return;
        }
        let recursion = "{{ define \"x\" }}{{ include \"x\" . }}{{ end }}{{ include \"x\" . }}";
        fails(&chart(recursion), "chart", None, &["helm template"]);
        let endless =
            "{{ range $i := until 2000000000 }}{{ range $j := until 2000000000 }}{{ end }}{{ end }}";
        fails(&chart(endless), "chart", None, &["helm template"]);
    }

    #[test]
    fn templates_that_print_without_end() {
        if !has(&tools().helm) {
            return;
        }
        let flood = format!(
            "{GOOD}data:\n{{{{ range $i := until 200000 }}}}\n  k{{{{ $i }}}}: \"{}\"{{{{ end }}}}\n",
            "x".repeat(100)
        );
        // Either of the limits on output and time will do: Helm also sorts what it prints.
        fails(&chart(&flood), "chart", None, &["helm template", "and was ended"]);
    }

    #[test]
    fn values_that_are_a_bomb() {
        if !has(&tools().helm) {
            return;
        }
        let bomb = bomb();
        let workbench = chart(GOOD);
        workbench.write("chart/bomb.yaml", &bomb);
        fails(&workbench, "chart", Some(value_file("bomb.yaml")), &["helm template"]);
    }

    #[test]
    fn names_are_not_looked_up() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(&format!("{GOOD}data:\n  ip: {{{{ getHostByName \"localhost\" | quote }}}}\n"));
        let rendered = renders_without_canary(&workbench, "chart", None);
        assert_eq!(rendered.manifests[0].value["data"]["ip"], "");
    }
}

mod jsonnet {
    use super::*;

    fn program(text: &str) -> Workbench {
        workbench(&[("app/a.jsonnet", text)])
    }

    #[test]
    fn recursion_without_end() {
        fails(&program("local f(x) = f(x + 1) + 1; f(0)"), "app", None, &["app/a.jsonnet", "stack"]);
        fails(&program("{ a: self.a }"), "app", None, &["app/a.jsonnet", "recursion"]);
    }

    #[test]
    fn loops_without_end() {
        let text = "local f(x) = if x < 0 then 0 else f(x + 1) tailstrict; { kind: f(0) }";
        fails(&program(text), "app", None, &["jsonnet"]);
        let text = "{ kind: std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0) }";
        fails(&program(text), "app", None, &["jsonnet"]);
    }

    #[test]
    fn memory_without_end() {
        fails(
            &program("{ kind: std.length(std.repeat('aaaaaaaa', 1000000000000)) }"),
            "app",
            None,
            &["jsonnet"],
        );
        let doubling = "local f(s, n) = if n == 0 then s else f(s + s, n - 1); { kind: f('xxxxxxxx', 60) }";
        fails(&program(doubling), "app", None, &["jsonnet"]);
    }

    #[test]
    fn imports_outside() {
        for import in
            ["import '../../secret.yaml'", "importstr '/etc/passwd'", "importbin '../../../../etc/passwd'"]
        {
            let text = format!("{{ kind: 'X', x: {import} }}");
            fails(&program(&text), "app", None, &["app/a.jsonnet", "not found in the repository"]);
        }
        let workbench = program("{ kind: 'X', x: importstr 'link.txt' }");
        workbench.link("app/link.txt", "../../secret.yaml");
        fails(&workbench, "app", None, &["link.txt"]);
    }

    #[test]
    fn imports_by_libraries_and_variables() {
        let options = DirectoryOptions { libs: vec!["../outside".to_owned()], ..DirectoryOptions::default() };
        fails(
            &program("{}"),
            "app",
            Some(SourceTool::Directory(options)),
            &["directory.jsonnet.libs", "outside"],
        );
        let code =
            JsonnetVariable { name: "x".to_owned(), value: "importstr '/etc/passwd'".to_owned(), code: true };
        let options = DirectoryOptions { ext_vars: vec![code], ..DirectoryOptions::default() };
        fails(
            &program("{ kind: std.extVar('x') }"),
            "app",
            Some(SourceTool::Directory(options)),
            &["jsonnet"],
        );
    }
}

mod plugins {
    use super::*;

    fn plugin(script: &str) -> (Workbench, plumb_render::RenderRequest) {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        let options = PluginOptions { name: Some("evil".to_owned()), ..PluginOptions::default() };
        let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
        let generate = ["sh", "-c", script].map(str::to_owned).to_vec();
        let plugins = [("evil".to_owned(), Plugin { generate, ..Plugin::default() })].into();
        request.settings = Arc::new(RenderSettings { plugins, ..RenderSettings::default() });
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
        fails_with(&workbench, &request, &["plugin generate", "did not finish within 20 s"]);
        let left = std::process::Command::new("pgrep").args(["-f", "^sleep 1000$"]).output().unwrap();
        let left = String::from_utf8_lossy(&left.stdout);
        assert!(left.trim().is_empty(), "still running: {left}");
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
            assert!(
                is_proxy || known.iter().any(|start| name.starts_with(start)),
                "unexpected variable: {line}"
            );
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
}

mod overrides {
    use super::*;

    #[test]
    fn files_in_git_cannot_move_the_source() {
        let workbench = workbench(&[
            ("app/a.yaml", GOOD),
            ("app/.argocd-source.yaml", "repoURL: file:///etc\npath: ../outside\ntargetRevision: evil\n"),
        ]);
        let mut request = workbench.request("app", None);
        let source = request.source.clone();
        request.overrides = Some(Arc::new(move |patches| {
            let text = |key: &str| patches[0][key].as_str().unwrap_or_default().to_owned();
            Ok(Source { repo_url: text("repoURL"), path: Some(text("path")), ..source.clone() })
        }));
        let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
        assert_eq!(names(&rendered), ["ConfigMap/good"]);
    }

    #[test]
    fn an_override_that_is_a_link_outside() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        workbench.link("app/.argocd-source.yaml", "../../secret.yaml");
        let mut request = workbench.request("app", None);
        request.overrides = Some(Arc::new(|_| Err("not reached".to_owned())));
        fails_with(&workbench, &request, &["app/.argocd-source.yaml", "outside"]);
    }
}
