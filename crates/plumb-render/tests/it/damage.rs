//! Everything on disk is a cache: every file of it, and all of it, may be damaged or removed at any moment.

use std::path::{Path, PathBuf};
use std::time::Instant;

use plumb_core::app::SourceTool;
use plumb_core::source::{RepoPath, SourceFiles as _};
use plumb_render::{Charts, Freshness, Limits};

use crate::charts::{Server, chart, fill_registry, registry};
use crate::workbench::{Workbench, has, names, tools};

/// What is done to a file, in words and as a function.
type Damage = (&'static str, fn(&Path));

/// Ways to damage a file.
const DAMAGES: [Damage; 7] = [
    ("removed", |path| std::fs::remove_file(path).unwrap()),
    ("emptied", |path| std::fs::write(path, "").unwrap()),
    ("cut", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("overwritten", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, bytes.iter().map(|byte| byte ^ 0x5a).collect::<Vec<_>>()).unwrap();
    }),
    ("replaced by a directory", |path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir_all(path.join("inner")).unwrap();
    }),
    ("replaced by a dangling link", |path| {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/nonexistent/file", path).unwrap();
    }),
    ("replaced by a link to a file without end", |path| {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    }),
];

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::symlink_metadata(&path).unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(&'static str, &'static str)> {
    vec![
        ("plain/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"),
        ("overlay/kustomization.yaml", "resources: [a.yaml]\nnamePrefix: x-\n"),
        ("overlay/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: overlay}\n"),
        ("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n"),
        ("chart/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\n"),
        ("jsonnet/a.jsonnet", "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'jsonnet'}}"),
    ]
}

/// What each source renders to.
fn expected() -> Vec<(&'static str, &'static str)> {
    let mut expected = vec![("plain", "ConfigMap/plain"), ("jsonnet", "ConfigMap/jsonnet")];
    if has(&tools().helm) {
        expected.push(("chart", "ConfigMap/chart"));
    }
    if has(&tools().kustomize) {
        expected.push(("overlay", "ConfigMap/x-overlay"));
    }
    expected
}

fn check_all(workbench: &Workbench, is_cached: Option<bool>, what: &str) {
    for (path, name) in expected() {
        let rendered = workbench.render(path, None).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(names(&rendered), [name], "{what}");
        assert!(is_cached.is_none_or(|is_cached| rendered.cached == is_cached), "{what}: {path}");
    }
}

#[test]
fn every_result_on_disk_may_be_damaged() {
    let workbench = Workbench::new(&sources());
    let cache = workbench.directory.path().join("cache");
    check_all(&workbench, Some(false), "new");
    let all = files(&cache);
    assert_eq!(all.len(), expected().len(), "{all:?}");
    for (how, damage) in DAMAGES {
        for file in &all {
            damage(file);
            check_all(&workbench, None, &format!("{} {how}", file.display()));
            // The result was stored again.
            check_all(&workbench, Some(true), &format!("{} {how}, again", file.display()));
        }
    }
}

#[test]
fn directories_of_results_and_temporary_files_may_be_removed() {
    let workbench = Workbench::new(&sources());
    let cache = workbench.directory.path().join("cache");
    let all_of_it = |path: &Path| std::fs::remove_dir_all(path).unwrap();
    let by_file = |path: &Path| {
        std::fs::remove_dir_all(path).unwrap();
        std::fs::write(path, "not a directory").unwrap();
    };
    let by_link = |path: &Path| {
        std::fs::remove_dir_all(path).unwrap();
        std::os::unix::fs::symlink("/nonexistent/directory", path).unwrap();
    };
    let ways: [&dyn Fn(&Path); 3] = [&all_of_it, &by_file, &by_link];
    for (index, way) in ways.iter().enumerate() {
        for directory in [cache.clone(), cache.join("results"), cache.join("scratch")] {
            way(&directory);
            check_all(&workbench, None, &format!("way {index} of {}", directory.display()));
            check_all(&workbench, Some(true), &format!("way {index} of {}, again", directory.display()));
        }
        let group = files(&cache.join("results"))[0].parent().unwrap().to_owned();
        way(&group);
        check_all(&workbench, None, &format!("way {index} of a group"));
        check_all(&workbench, Some(true), &format!("way {index} of a group, again"));
    }
}

/// A tool that does not find a template renders less than it should, and that would be deleted.
#[test]
fn a_rendering_whose_files_vanish_is_no_rendering() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    // Stands for Helm: removes a template while it runs, and prints what is left.
    let program = directory.path().join("helm");
    let script = "#!/bin/sh\nrm -r \"$PWD/templates\"\nprintf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: a}\\n'\n";
    std::fs::write(&program, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let workbench = Workbench::with_config(&sources(), |config| {
        config.directory = cache;
        config.tools.helm = program;
    });
    let helm = SourceTool::Helm(Box::default());
    let error = workbench.render("chart", Some(helm)).unwrap_err();
    let message = error.full_message();
    assert!(message.contains("files were removed or changed while a tool read them"), "{message}");
    assert!(message.contains("cache directory"), "{message}");
    assert!(!error.is_permanent());
}

/// A directory that cannot be made is a condition that says so, and ends with its cause.
#[test]
fn a_cache_directory_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    let workbench = Workbench::with_config(&sources(), |config| config.directory = disk.join("cache"));
    check_all(&workbench, Some(false), "new");
    std::fs::remove_dir_all(&disk).unwrap();
    std::fs::write(&disk, "").unwrap();
    // What needs no disk still works.
    assert_eq!(names(&workbench.render("plain", None).unwrap()), ["ConfigMap/plain"]);
    let error = workbench.render("jsonnet", None).unwrap_err();
    let message = error.full_message();
    assert!(message.contains("check the free space and owner of the cache directory"), "{message}");
    assert!(!error.is_permanent());
    std::fs::remove_file(&disk).unwrap();
    check_all(&workbench, None, "usable again");
}

/// What is in the cache is used, and plain files need no disk. Where a tool needs one, the error names it.
#[test]
fn a_disk_that_is_full_or_read_only_is_named_and_used_again_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let Some(disk) = plumb_testkit::SmallDisk::at(&cache, 8192).unwrap() else { return };
    let workbench = Workbench::with_config(&sources(), |config| config.directory = cache);
    check_all(&workbench, Some(false), "new");
    let check = |content: &str, part: &str| {
        check_all(&workbench, Some(true), part);
        // Another commit.
        for (path, _) in sources().into_iter().filter(|(path, _)| path.ends_with("a.yaml")) {
            let folder = path.split('/').next().unwrap();
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {folder}}}\ndata: {{of: {content}}}\n"
            );
            workbench.write(path, &text);
        }
        assert_eq!(names(&workbench.render("plain", None).unwrap()), ["ConfigMap/plain"], "{part}");
        for (path, name) in expected() {
            match workbench.render(path, None) {
                Ok(rendered) => assert_eq!(names(&rendered), [name], "{part}"),
                Err(error) => {
                    let message = error.full_message();
                    let is_named = ["check the free space", "no space left", "read-only file system"];
                    let is_named = is_named.iter().any(|words| message.to_lowercase().contains(words));
                    assert!(is_named, "{part} {path}: {message}");
                }
            }
        }
    };
    disk.fill().unwrap();
    check("full", "full");
    disk.make_room().unwrap();
    check_all(&workbench, None, "with room again");
    check_all(&workbench, Some(true), "with room again, stored");
    disk.make_read_only().unwrap();
    check("locked", "read-only");
    disk.make_writable().unwrap();
    check_all(&workbench, None, "writable again");
    check_all(&workbench, Some(true), "writable again, stored");
}

#[tokio::test]
async fn every_chart_on_disk_may_be_damaged() {
    let server = Server::start();
    let (old, new) = (chart("1.0.0"), chart("1.1.0"));
    server.offer(&[("1.0.0", &old), ("1.1.0", &new)]);
    fill_registry(&server);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("charts");
    let charts = Charts::new(&root, Limits::default()).unwrap();
    let check = async |what: &str| {
        for repository in [server.repository(), registry(&server, "geheim")] {
            for (asked, found) in [("1.0.0", "1.0.0"), ("1.x", "1.1.0")] {
                let fetched = charts.fetch(&repository, "web", asked, Instant::now()).await;
                let fetched = fetched.unwrap_or_else(|error| panic!("{what}: {error:?}"));
                assert_eq!(fetched.version, found, "{what}");
                let definition = fetched.files.read(&RepoPath::parse("Chart.yaml").unwrap()).unwrap();
                let definition = String::from_utf8(definition).unwrap();
                assert!(definition.contains(&format!("version: {found}")), "{what}: {definition}");
            }
        }
    };
    check("new").await;
    let all = files(&root);
    assert_eq!(all.len(), 4, "{all:?}");
    for (how, damage) in DAMAGES {
        for file in &all {
            damage(file);
            check(&format!("{} {how}", file.display())).await;
            assert_eq!(files(&root), all, "{how}: it was stored again");
        }
    }
    std::fs::remove_dir_all(&root).unwrap();
    check("all removed").await;
    std::fs::remove_dir_all(&root).unwrap();
    std::fs::write(&root, "not a directory").unwrap();
    check("replaced by a file").await;
    assert_eq!(files(&root), all);
}

/// A second rendering that may not use the cache does not need it either.
#[test]
fn a_renewed_result_replaces_whatever_is_there() {
    let workbench = Workbench::new(&sources());
    let cache = workbench.directory.path().join("cache");
    check_all(&workbench, Some(false), "new");
    for file in files(&cache) {
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
    }
    for (path, name) in expected() {
        let rendered = workbench.renderer.render(&workbench.request(path, None), Freshness::Renewed).unwrap();
        assert_eq!(names(&rendered), [name]);
    }
    check_all(&workbench, Some(true), "renewed");
}
