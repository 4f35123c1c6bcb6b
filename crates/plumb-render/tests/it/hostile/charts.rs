//! Charts that reach for what is not theirs, or never end.

use super::prelude::*;

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
        ("/etc/passwd", "no such file or directory"),
        ("file:///etc/passwd", "not supported"),
        ("https://example.com/values.yaml", "not supported"),
        ("secrets://values.yaml", "not supported"),
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
    for (file, word) in
        [("$values/../secret.yaml", "outside"), ("$values/link.yaml", "outside"), ("$values", "not a file")]
    {
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
    fails(&workbench, "chart", Some(parameter("/etc/passwd")), &["helm.fileParameters", "no such file"]);
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
    for release in
        ["--kubeconfig=/etc/passwd", post.as_str(), "-x", "a b", "../x", "{{ env \"HOME\" }}", "{{now}}"]
    {
        let options = HelmOptions { release_name: Some(release.to_owned()), ..HelmOptions::default() };
        fails(&workbench, "chart", Some(helm(options)), &["helm.releaseName", "name of a release"]);
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
    let endless = "{{ range $i := until 2000000000 }}{{ range $j := until 2000000000 }}{{ end }}{{ end }}";
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
    fails(&chart(&flood), "chart", None, &["helm template", "and was killed"]);
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

/// The second rendering unpacks the packed charts. Each archive is within its limit, their sum is not.
#[test]
fn archives_that_fill_the_disk_together() {
    let workbench = Workbench::with_config(&CHART, |config| config.limits.export_bytes = 40 << 20);
    workbench.write("chart/templates/t.yaml", &format!("{GOOD}data: {{at: \"{{{{ now }}}}\"}}\n"));
    workbench.write("chart/files/b/Chart.yaml", "apiVersion: v2\nname: b\nversion: 1.0.0\n");
    let zeros = vec![0; 16 << 20];
    for name in ["one", "two", "three"] {
        let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let mut builder = tar::Builder::new(encoder);
        let mut header = tar::Header::new_gnu();
        header.set_size(zeros.len() as u64);
        builder.append_data(&mut header, format!("{name}/zeros"), zeros.as_slice()).unwrap();
        let bytes = builder.into_inner().unwrap().finish().unwrap();
        let path = workbench.root().join(format!("chart/files/b/charts/{name}.tgz"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let request = workbench.request("chart", None);
    let error = workbench.renderer.render(&request, Freshness::AnotherDay).unwrap_err().full_message();
    assert!(error.contains("unpacked size of") && error.contains("over the limit"), "{error}");
}

/// The limit is a share of the container's memory, and the condition says so.
#[test]
fn templates_that_use_much_memory() {
    if !has(&tools().helm) {
        return;
    }
    let mut files = CHART.to_vec();
    let template = format!("{GOOD}data:\n  x: {{{{ repeat 400000000 \"x\" | len }}}}\n");
    files.extend([("chart/templates/t.yaml", template.as_str()), ("good/a.yaml", GOOD)]);
    let workbench = Workbench::with_config(&files, |config| config.memory = 1 << 30);
    fails(&workbench, "chart", None, &["helm template", "more than 256 MiB of memory", "container"]);
}
