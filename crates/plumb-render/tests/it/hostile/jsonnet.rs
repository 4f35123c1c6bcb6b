//! Programs that never end or read elsewhere.

use super::prelude::*;

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
    fails(&program("{ kind: std.length(std.repeat('aaaaaaaa', 1000000000000)) }"), "app", None, &["jsonnet"]);
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
    fails(&program("{ kind: std.extVar('x') }"), "app", Some(SourceTool::Directory(options)), &["jsonnet"]);
}
