//! Manifests that blow up, nest or lie.

use super::prelude::*;

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
    let text = b"apiVersion: v1\nkind: \xff\xfe\x00\nmetadata: {name: x}\n";
    std::fs::write(workbench.root().join("app/a.yaml"), text).unwrap();
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

/// Small values take much more memory than their text.
#[test]
fn values_that_take_much_memory() {
    let number = format!("apiVersion: v1\nkind: ConfigMap\nx: [{}]\n", "1,".repeat(1_000_000));
    let maps = format!("{{\"kind\": \"ConfigMap\", \"x\": [{}0]}}", "{\"a\":1},".repeat(200_000));
    let files = [("app/a.yaml", number.as_str()), ("json/a.json", maps.as_str()), ("good/a.yaml", GOOD)];
    let workbench = Workbench::with_config(&files, |config| config.memory = 128 << 20);
    for (app, file) in [("app", "app/a.yaml"), ("json", "json/a.json")] {
        fails(&workbench, app, None, &[file, "more than 128 MiB of memory", "container"]);
    }
    // The limit is on the sum over all files.
    let one = format!("apiVersion: v1\nkind: ConfigMap\nx: [{}]\n", "1,".repeat(500_000));
    let workbench = Workbench::with_config(&[("good/a.yaml", GOOD)], |config| config.memory = 64 << 20);
    for number in 0..4 {
        workbench.write(&format!("app/{number}.yaml"), &one);
    }
    workbench.write("one/a.yaml", &one);
    fails(&workbench, "app", None, &["more than"]);
    workbench.render("one", None).unwrap();
}

/// As SOPS leaves a file: the structure in plain text, the values encrypted.
const SOPS: &str = "sops:\n  age: [{recipient: age1x, enc: y}]\n  lastmodified: '2026-01-01T00:00:00Z'\n  mac: ENC[AES256_GCM,data:z]\n  version: 3.9.0\n";

#[test]
fn files_that_sops_encrypted() {
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData: {{password: 'ENC[AES256_GCM,data:x]'}}\n{SOPS}"
    );
    let words = ["Secret db is encrypted with SOPS for age", "plumb seal"];
    let workbench = workbench(&[("app/db.yaml", &secret)]);
    fails(&workbench, "app", None, &[&["app/db.yaml"], &words[..]].concat());
    if has(&tools().kustomize) {
        workbench.write("overlay/kustomization.yaml", "resources: [db.yaml]\n");
        workbench.write("overlay/db.yaml", &secret);
        fails(&workbench, "overlay", None, &words);
        workbench
            .write("generated/kustomization.yaml", "secretGenerator: [{name: db, envs: [db.enc.env]}]\n");
        let encrypted =
            "PASSWORD=ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]\nsops_version=3.9.0\nsops_mac=ENC[z]\n";
        workbench.write("generated/db.enc.env", encrypted);
        fails(&workbench, "generated", None, &["Secret db-", "is encrypted with SOPS", "plumb seal"]);
    }
    // For PGP, and with no rule for what to encrypt: kind and name are ciphertext, too.
    let cipher = "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]";
    let whole = format!(
        "apiVersion: '{cipher}'\nkind: '{cipher}'\nmetadata: {{name: '{cipher}'}}\nsops:\n  pgp: [{{fp: A1, enc: y}}]\n  \
         lastmodified: '2026-01-01T00:00:00Z'\n  mac: ENC[z]\n  version: 3.9.0\n"
    );
    workbench.write("whole/db.yaml", &whole);
    fails(&workbench, "whole", None, &["whole/db.yaml", "an object is encrypted with SOPS for pgp"]);
    workbench.write("chart/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n");
    workbench.write("chart/templates/a.yaml", GOOD);
    workbench.write("chart/secrets.yaml", &format!("password: 'ENC[AES256_GCM,data:x]'\n{SOPS}"));
    let options = HelmOptions { value_files: vec!["secrets.yaml".to_owned()], ..HelmOptions::default() };
    fails(&workbench, "chart", Some(helm(options)), &["chart/secrets.yaml", "encrypted with SOPS"]);
    // The object of an operator that decrypts in the cluster, and a file that only has a field of that name.
    let operator =
        secret.replace("kind: Secret", "kind: SopsSecret").replace("v1\n", "isindir.github.com/v1alpha3\n");
    workbench.write("operator/db.yaml", &operator);
    workbench.write("operator/map.yaml", &format!("{GOOD}sops: {{enabled: true}}\n"));
    assert_eq!(names(&renders_without_canary(&workbench, "operator", None)).len(), 2);
}
