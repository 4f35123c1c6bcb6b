//! More repositories that attack: by names that a tool reads as lists, by trees that contain themselves, by files that
//! other files name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_core::app::{
    DirectoryOptions, HelmFileParameter, HelmOptions, PluginOptions, PluginParameter, PluginValue, SourceTool,
};
use plumb_core::source::{Entry, EntryKind, RepoPath, SourceError, SourceFiles};
use plumb_render::{Freshness, Plugin, PluginDiscovery, RenderSettings};

use crate::hostile::prelude::{
    CANARY, GOOD, fails, fails_with, helm, renders_without_canary, secret_path, workbench,
};
use crate::workbench::{Workbench, has, names, tools};

const CHART: &str = "apiVersion: v2\nname: demo\nversion: 1.0.0\n";
const SHOW: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {text: {{ .Values | toJson | quote }}}\n";

fn chart(definition: &str) -> Workbench {
    let workbench = workbench(&[("chart/Chart.yaml", definition), ("chart/templates/t.yaml", SHOW)]);
    workbench.write("chart/values.yaml", "text: x\n");
    workbench
}

fn value_file(file: &str) -> SourceTool {
    helm(HelmOptions { value_files: vec![file.to_owned()], ..HelmOptions::default() })
}

mod names_as_lists {
    use super::*;

    /// Helm takes `--values=a,/etc/passwd` for two files.
    #[test]
    fn a_value_file_with_a_comma_is_one_file() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(CHART);
        let outside = secret_path(&workbench);
        let name = format!("a.yaml,{outside}");
        workbench.write("chart/a.yaml", "from: a\n");
        workbench.write(&format!("chart/{name}"), "from: {name: \"the file, itself\"}\n");
        let rendered = renders_without_canary(&workbench, "chart", Some(value_file(&name)));
        let text = rendered.manifests[0].value["data"]["text"].as_str().unwrap();
        assert!(text.contains("the file, itself"), "{text}");
    }

    #[test]
    fn a_value_file_with_quotes_is_one_file() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(CHART);
        workbench.write("chart/a\"b,c\".yaml", "from: quoted\n");
        let rendered = renders_without_canary(&workbench, "chart", Some(value_file("a\"b,c\".yaml")));
        assert!(rendered.manifests[0].value["data"]["text"].as_str().unwrap().contains("quoted"));
    }

    /// Helm takes `--set-file text=x,evil=/etc/passwd` for two values.
    #[test]
    fn a_file_parameter_with_a_comma_is_one_value() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(CHART);
        let outside = secret_path(&workbench);
        let path = format!("x,evil={outside}");
        workbench.write("chart/x", "the start");
        workbench.write(&format!("chart/{path}"), "the file itself");
        let parameter = |name: &str| {
            let file = HelmFileParameter { name: name.to_owned(), path: path.clone() };
            helm(HelmOptions { file_parameters: vec![file], ..HelmOptions::default() })
        };
        let rendered = renders_without_canary(&workbench, "chart", Some(parameter("text")));
        let text = rendered.manifests[0].value["data"]["text"].as_str().unwrap();
        assert!(text.contains("the file itself") && !text.contains("evil"), "{text}");
        let name = format!("evil={outside},text");
        fails(
            &workbench,
            "chart",
            Some(parameter(&name)),
            &["helm.fileParameters", "not the name of one value"],
        );
    }
}

mod trees {
    use super::*;

    /// Every directory holds ten more, without end, as a tree that names the same tree ten times does for as many
    /// levels as one likes. Some hold a file.
    #[derive(Debug)]
    struct Endless {
        file: Option<&'static str>,
    }

    impl SourceFiles for Endless {
        fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, SourceError> {
            Ok(self.entry(path)?.map(|entry| entry.kind))
        }

        fn entry(&self, path: &RepoPath) -> Result<Option<Entry>, SourceError> {
            let (name, hash) = (path.name().to_owned(), "0".repeat(40));
            let kind = if self.file == Some(path.name()) { EntryKind::File } else { EntryKind::Directory };
            let is_there = path.is_root() || name.starts_with('d') || kind == EntryKind::File;
            Ok(is_there.then_some(Entry { name, kind, hash }))
        }

        fn list(&self, _: &RepoPath) -> Result<Vec<Entry>, SourceError> {
            let entry = |name: String, kind| Entry { name, kind, hash: "0".repeat(40) };
            let directories = (0..10).map(|n| entry(format!("d{n}"), EntryKind::Directory));
            Ok(directories.chain(self.file.map(|name| entry(name.to_owned(), EntryKind::File))).collect())
        }

        fn read(&self, _: &RepoPath) -> Result<Vec<u8>, SourceError> {
            Ok(GOOD.as_bytes().to_vec())
        }
    }

    fn ends_soon(
        file: Option<&'static str>,
        tool: Option<SourceTool>,
        settings: RenderSettings,
        words: &[&str],
    ) {
        let workbench = workbench(&[]);
        let mut request = workbench.request("d0", tool);
        request.files = Arc::new(Endless { file });
        request.settings = Arc::new(settings);
        let started = Instant::now();
        fails_with(&workbench, &request, words);
        assert!(started.elapsed() < Duration::from_secs(15), "it took {:?}", started.elapsed());
    }

    #[test]
    fn a_directory_without_end() {
        let recurse = DirectoryOptions { recurse: true, ..DirectoryOptions::default() };
        for file in [None, Some("a.yaml"), Some("README")] {
            let tool = SourceTool::Directory(recurse.clone());
            ends_soon(file, Some(tool), RenderSettings::default(), &["d0", "limit"]);
        }
    }

    #[test]
    fn a_chart_and_an_overlay_without_end() {
        let words = ["limit"];
        ends_soon(Some("Chart.yaml"), None, RenderSettings::default(), &words);
        ends_soon(Some("kustomization.yaml"), None, RenderSettings::default(), &words);
    }

    #[test]
    fn a_pattern_of_value_files_without_end() {
        let workbench = chart(CHART);
        let mut request = workbench.request("chart", Some(value_file("$other/**/no.yaml")));
        request.refs.insert("other".to_owned(), Arc::new(Endless { file: None }));
        let started = Instant::now();
        fails_with(&workbench, &request, &["limit"]);
        assert!(started.elapsed() < Duration::from_secs(15), "it took {:?}", started.elapsed());
    }

    #[test]
    fn a_plugin_that_searches_without_end() {
        let plugin = Plugin {
            generate: vec!["true".to_owned()],
            discover: PluginDiscovery::Find("**/never.cue".to_owned()),
            ..Plugin::default()
        };
        let plugins = [("cue".to_owned(), plugin)].into();
        ends_soon(
            None,
            None,
            RenderSettings { plugins, ..RenderSettings::default() },
            &["plugin discovery", "limit"],
        );
    }
}

mod overlays {
    use super::*;

    /// Many settings have it, so that overlays may share files.
    fn unrestricted(workbench: &Workbench, words: &[&str]) {
        let mut request = workbench.request("app", None);
        let settings = RenderSettings {
            kustomize_build_options: "--load-restrictor LoadRestrictionsNone".to_owned(),
            ..RenderSettings::default()
        };
        request.settings = Arc::new(settings);
        fails_with(workbench, &request, words);
    }

    #[test]
    fn plugins_that_name_files_outside() {
        let generator = |file: &str| {
            format!(
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: x}}\nfiles: [\"{file}\"]\n"
            )
        };
        let patch =
            "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: ../../secret.yaml\n";
        let replacement = "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: x}\nreplacements: [{path: /etc/passwd}]\n";
        for (field, config, word) in [
            ("generators", generator("/etc/passwd"), "absolute"),
            ("generators", generator("k=../../secret.yaml"), "outside the repository"),
            ("transformers", patch.to_owned(), "outside the repository"),
            ("transformers", replacement.to_owned(), "absolute"),
        ] {
            let in_a_file = workbench(&[
                ("app/kustomization.yaml", &format!("{field}: [p.yaml]\n")),
                ("app/p.yaml", &config),
            ]);
            unrestricted(&in_a_file, &["app/kustomization.yaml", word]);
            let indented = config.replace('\n', "\n  ");
            let inline = workbench(&[("app/kustomization.yaml", &format!("{field}:\n- |\n  {indented}\n"))]);
            unrestricted(&inline, &["app/kustomization.yaml", word]);
            let in_a_directory = workbench(&[
                ("app/kustomization.yaml", &format!("{field}: [p]\n")),
                ("app/p/kustomization.yaml", "resources: [p.yaml]\n"),
                ("app/p/p.yaml", &config.replace("../../", "../../../")),
            ]);
            unrestricted(&in_a_directory, &["app/p/kustomization.yaml", word]);
        }
    }

    #[test]
    fn charts_that_name_files_outside_or_the_network() {
        for (chart, word) in [
            ("{name: x, valuesFile: ../../secret.yaml}", "outside the repository"),
            ("{name: x, additionalValuesFiles: [/etc/passwd]}", "absolute"),
            ("{name: x, repo: \"oci://169.254.169.254/x\"}", "no network"),
            ("{name: x, repo: \"file:///etc\"}", "neither in the repository"),
        ] {
            let workbench = workbench(&[("app/kustomization.yaml", &format!("helmCharts: [{chart}]\n"))]);
            fails(&workbench, "app", None, &["app/kustomization.yaml", word]);
        }
        let generator = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: x\nrepo: https://example.com\n";
        let workbench =
            workbench(&[("app/kustomization.yaml", "generators: [g.yaml]\n"), ("app/g.yaml", generator)]);
        fails(&workbench, "app", None, &["app/kustomization.yaml", "no network"]);
    }
}

mod charts {
    use super::*;

    /// A schema may refer to others by address.
    #[test]
    fn schemas_that_refer_outside() {
        if !has(&tools().helm) {
            return;
        }
        let workbench = chart(CHART);
        let outside = workbench.directory.path().join("schema.json");
        std::fs::write(&outside, format!("{{\"required\": [\"{CANARY}\"]}}")).unwrap();
        for address in [format!("file://{}", outside.display()), "http://127.0.0.1:9/schema.json".to_owned()]
        {
            workbench.write("chart/values.schema.json", &format!("{{\"$ref\": \"{address}\"}}"));
            fails(&workbench, "chart", None, &["helm template"]);
        }
    }

    #[test]
    fn dependencies_outside() {
        for (name, repository, word) in [
            ("x", "file://../../outside", "outside the repository"),
            ("x", "file:///etc", "absolute"),
            ("../../x", "file://../lib", "not a valid name"),
            (".git", "file://../lib", "not a valid name"),
        ] {
            let dependency = format!(
                "dependencies: [{{name: \"{name}\", version: \"1\", repository: \"{repository}\"}}]\n"
            );
            fails(&chart(&format!("{CHART}{dependency}")), "chart", None, &["chart/Chart.yaml", word]);
        }
        let workbench = chart(&format!(
            "{CHART}dependencies: [{{name: lib, version: \"1\", repository: \"file://../lib\"}}]\n"
        ));
        workbench.link("lib", "../outside");
        fails(&workbench, "chart", None, &["lib", "outside the repository"]);
        let many = (0..300)
            .map(|n| format!("- {{name: d{n}, version: \"1\", repository: \"https://example.com\"}}\n"));
        let many = format!("{CHART}dependencies:\n{}", many.collect::<String>());
        fails(&chart(&many), "chart", None, &["number of dependencies", "limit"]);
    }

    /// Archives in `charts/` are Helm's to unpack.
    #[test]
    fn archives_in_the_repository() {
        if !has(&tools().helm) {
            return;
        }
        let workbench =
            chart(&format!("{CHART}dependencies: [{{name: evil, version: 1.0.0, repository: \"\"}}]\n"));
        std::fs::create_dir(workbench.root().join("chart/charts")).unwrap();
        let archive = workbench.root().join("chart/charts/evil-1.0.0.tgz");
        let write = |fill: &dyn Fn(&mut tar::Builder<flate2::write::GzEncoder<std::fs::File>>)| {
            let file = std::fs::File::create(&archive).unwrap();
            let mut builder =
                tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
            let mut header = tar::Header::new_gnu();
            let definition = "apiVersion: v2\nname: evil\nversion: 1.0.0\n";
            header.set_size(definition.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, "evil/Chart.yaml", definition.as_bytes()).unwrap();
            fill(&mut builder);
            builder.into_inner().unwrap().finish().unwrap();
        };
        write(&|builder| {
            let mut header = tar::Header::new_gnu();
            header.set_size(400 << 20);
            header.set_mode(0o644);
            let zeros = std::io::Read::take(std::io::repeat(0), 400 << 20);
            builder.append_data(&mut header, "evil/files/bomb", zeros).unwrap();
        });
        fails(&workbench, "chart", None, &["helm template"]);
        let outside = secret_path(&workbench);
        write(&|builder| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            builder.append_link(&mut header, "evil/templates/s.yaml", &outside).unwrap();
        });
        match workbench.render("chart", None) {
            Ok(rendered) => assert!(!format!("{rendered:?}").contains(CANARY)),
            Err(error) => assert!(!error.full_message().contains(CANARY)),
        }
    }
}

mod programs {
    use super::*;

    #[test]
    fn imports_that_never_end() {
        let workbench = workbench(&[("app/a.jsonnet", &"import/*".repeat(10_000))]);
        fails(&workbench, "app", None, &["app"]);
    }

    #[test]
    fn imports_of_itself() {
        let workbench = workbench(&[("app/a.jsonnet", "import 'a.jsonnet'")]);
        fails(&workbench, "app", None, &["app/a.jsonnet"]);
    }

    #[test]
    fn a_plugin_gets_no_variable_but_its_own() {
        let script = "test -z \"$LD_PRELOAD\" && test \"$HOME\" != /root && cat a.yaml && \
                      printf '%s\\n' \"data: {path: '$PATH', preload: '$ARGOCD_ENV_LD_PRELOAD', param: '$PARAM_A_B_C'}\"";
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        let text = |text: &str| Some(PluginValue::String(text.to_owned()));
        let options = PluginOptions {
            name: Some("p".to_owned()),
            env: [
                ("LD_PRELOAD", "/tmp/evil.so"),
                ("PATH", "/tmp"),
                ("X=HOME", "/root"),
                ("Y\nHOME", "/root"),
                ("NUL", "a\0b"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            parameters: vec![
                PluginParameter { name: "a=b\nc".to_owned(), value: text("kept") },
                PluginParameter { name: "nul\0".to_owned(), value: text("a\0b") },
            ],
        };
        let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
        let generate = ["sh", "-c", script].map(str::to_owned).to_vec();
        let plugins = [("p".to_owned(), Plugin { generate, ..Plugin::default() })].into();
        request.settings =
            Arc::new(RenderSettings { plugins, allow_unconfined_plugins: true, ..RenderSettings::default() });
        let rendered = workbench.renderer.render(&request, Freshness::Cached).unwrap();
        let data = &rendered.manifests[0].value["data"];
        assert_eq!((data["preload"].as_str(), data["param"].as_str()), (Some("/tmp/evil.so"), Some("kept")));
        assert!(!data["path"].as_str().unwrap().starts_with("/tmp"), "{data}");
    }

    #[test]
    fn more_variables_than_a_program_can_have() {
        let workbench = workbench(&[("app/a.yaml", GOOD)]);
        let options = PluginOptions {
            name: Some("p".to_owned()),
            env: vec![("BIG".to_owned(), "x".repeat(8 << 20))].into_iter().collect(),
            ..PluginOptions::default()
        };
        let mut request = workbench.request("app", Some(SourceTool::Plugin(options)));
        let plugins =
            [("p".to_owned(), Plugin { generate: vec!["true".to_owned()], ..Plugin::default() })].into();
        request.settings =
            Arc::new(RenderSettings { plugins, allow_unconfined_plugins: true, ..RenderSettings::default() });
        fails_with(&workbench, &request, &["plugin generate", "too long"]);
    }
}

/// Names go into messages that people read in a terminal.
#[test]
fn names_that_move_the_cursor() {
    let twice = format!("{GOOD}kind: Secret\n");
    let workbench = workbench(&[("app/\u{1b}[2Ja\n.yaml", &twice), ("link/b.yaml", GOOD)]);
    let message = workbench.render("app", None).unwrap_err().full_message();
    assert!(message.contains("app/\\u{1b}[2Ja\\n.yaml") && !message.contains('\u{1b}'), "{message}");
    workbench.link("link/a.yaml", "/\u{1b}[2J");
    let message = workbench.render("link", None).unwrap_err().full_message();
    assert!(message.contains("outside the repository") && !message.contains('\u{1b}'), "{message}");
}

/// Two files whose names differ by case are two files.
#[test]
fn names_that_differ_by_case() {
    let workbench = workbench(&[("app/a.yaml", GOOD), ("app/A.yaml", &GOOD.replace("good", "other"))]);
    let mut found = names(&renders_without_canary(&workbench, "app", None));
    found.sort();
    assert_eq!(found, ["ConfigMap/good", "ConfigMap/other"]);
}
