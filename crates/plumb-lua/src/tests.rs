//! What scripts can do, what they cannot, and what the settings look like.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use plumb_core::health::Custom;
use plumb_core::object::Manifest;
use serde_json::{Value, json};

use crate::{Error, Libraries, Limit, Limits, Sandbox, Scripts};

fn object() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {}, "labels": {"a": "b"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, "gone": null},
        "status": {"readyReplicas": 2, "ratio": 0.5},
    })
}

fn strict() -> Limits {
    Limits { time: Duration::from_millis(500), instructions: 2_000_000, memory: 16 << 20, answer: 10_000 }
}

fn health(libraries: Libraries, script: &str) -> String {
    let sandbox = Sandbox::new(libraries, strict()).expect("a sandbox");
    match sandbox.health(script, &object()) {
        Ok(Some(health)) => health.to_string(),
        Ok(None) => "no status".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

fn check(script: &str, expected: &Expect) {
    expected.assert_eq(&health(Libraries::Plain, script));
}

fn check_open(script: &str, expected: &Expect) {
    expected.assert_eq(&health(Libraries::Open, script));
}

#[test]
fn the_object_is_there_as_tables() {
    check(
        r#"
        hs = {}
        hs.status = "Progressing"
        if obj.spec.replicas == 3 and obj.spec.template.spec.containers[2].name == "b" and obj.spec.gone == nil then
          hs.message = obj.metadata.name .. " " .. #obj.spec.template.spec.containers .. " " .. obj.status.ratio
        end
        return hs"#,
        &expect!["Progressing: web 2 0.5"],
    );
}

#[test]
fn answers_are_read_as_argo_cd_reads_them() {
    check("return nil", &expect!["no status"]);
    check("return {}", &expect!["no status"]);
    check("x = 1", &expect!["no status"]);
    check(r#"return {status = "Fine"}"#, &expect!["Unknown: Lua returned an invalid health status"]);
    check(r#"return {message = "m"}"#, &expect!["Unknown: Lua returned an invalid health status"]);
    check(r#"return "Healthy""#, &expect!["error: the Lua script returned a string, expected a table"]);
    check("return 1", &expect!["error: the Lua script returned a number, expected a table"]);
    check(r#"return {status = "Suspended"}"#, &expect!["Suspended"]);
    check(r#"return {status = "Degraded", message = 3}"#, &expect!["Degraded: 3"]);
}

#[test]
fn errors_name_the_line() {
    check(
        "return {",
        &expect![
            "error: cannot compile the Lua script: syntax error: script:1: unexpected symbol near '<eof>'"
        ],
    );
    check(
        "\nlocal x = obj.no.thing",
        &expect!["error: the Lua script failed: script:2: attempt to index field 'no' (a nil value)"],
    );
    check("error('mine')", &expect!["error: the Lua script failed: script:1: mine"]);
}

#[test]
fn only_the_promised_globals_are_there() {
    let names = r#"
        local names = {}
        for name in pairs(_G) do if name ~= "obj" then table.insert(names, name) end end
        table.sort(names)
        return {status = "Healthy", message = table.concat(names, " ")}"#;
    check(
        names,
        &expect![
            "Healthy: _G _VERSION actionParams assert collectgarbage error getmetatable ipairs loadstring next package pairs pcall print rawequal rawget rawset require select setmetatable table tonumber tostring type unpack xpcall"
        ],
    );
    check_open(
        names,
        &expect![
            "Healthy: _G _VERSION actionParams assert collectgarbage coroutine error getmetatable ipairs loadstring math next os package pairs pcall print rawequal rawget rawset require select setmetatable string table tonumber tostring type unpack xpcall"
        ],
    );
    check(
        r#"local os = require("os")
        local names = {}
        for name in pairs(os) do table.insert(names, name) end
        table.sort(names)
        return {status = type(os.time()) == "number" and "Healthy" or "Degraded", message = table.concat(names, " ")}"#,
        &expect!["Healthy: clock date difftime time"],
    );
    check(r#"require("io")"#, &expect!["error: the Lua script failed: module io not found"]);
    check(
        r#"return {status = "Healthy", message = ("x"):rep(3)}"#,
        &expect!["error: the Lua script failed: script:1: attempt to index a string value"],
    );
    check_open(
        r#"return {status = "Healthy", message = ("x"):rep(3) .. string.upper("y")}"#,
        &expect!["Healthy: xxxY"],
    );
    check_open(
        "return {status = 'Healthy', message = tostring(string.dump) .. tostring(os.execute)}",
        &expect!["Healthy: nilnil"],
    );
}

#[test]
fn code_that_was_compiled_elsewhere_is_refused() {
    let sandbox = Sandbox::new(Libraries::Plain, strict()).expect("a sandbox");
    let told = sandbox.health("\u{1b}Lua...", &object());
    assert!(matches!(told, Err(Error::Compile { .. })), "{told:?}");
    check(
        r#"local f = loadstring("\27Lua") return {status = "Healthy"}"#,
        &expect!["error: the Lua script failed: syntax error: attempt to load a binary chunk (mode is 't')"],
    );
    check(
        r#"local f = loadstring("return obj.metadata.name") return {status = "Healthy", message = f()}"#,
        &expect!["Healthy: web"],
    );
}

#[test]
fn one_run_leaves_nothing_to_the_next() {
    let sandbox = Sandbox::new(Libraries::Open, strict()).expect("a sandbox");
    let vandal = r#"
        secret = "left behind"
        table.insert = nil
        string.upper = function() return "evil" end
        pairs = nil
        _G.tostring = nil
        package.loaded.os = nil
        return {status = "Healthy"}"#;
    let visitor = r#"
        local t = {}
        table.insert(t, string.upper("a") .. ("b"):upper())
        for _ in pairs(t) do end
        return {status = "Healthy", message = tostring(secret) .. t[1] .. type(require("os").time())}"#;
    for _ in 0..3 {
        assert!(sandbox.health(vandal, &object()).is_ok());
        let told = sandbox.health(visitor, &object()).expect("it runs").map(|health| health.message);
        assert_eq!(told.as_deref(), Some("nilABnumber"));
    }
    check_open(
        "getmetatable('').__index = {}",
        &expect!["error: the Lua script failed: script:1: attempt to index a boolean value"],
    );
    check_open(
        "setmetatable('', {})",
        &expect![
            "error: the Lua script failed: script:1: bad argument #1 to 'setmetatable' (table expected, got string)"
        ],
    );
}

/// A thread runs scripts for as long as plumb runs: what a run leaves behind must go.
#[test]
fn runs_do_not_pile_up() {
    for libraries in [Libraries::Plain, Libraries::Open] {
        let sandbox = Sandbox::new(libraries, strict()).expect("a sandbox");
        for _ in 0..3000 {
            let told = sandbox.health("return {status = 'Healthy', message = obj.metadata.name}", &object());
            assert!(told.is_ok(), "{told:?}");
        }
        assert!(sandbox.used_memory() < 4 << 20, "{} bytes", sandbox.used_memory());
    }
}

/// No script may run for much longer than its limit, whatever it tries.
#[test]
fn limits_hold_and_cannot_be_caught() {
    for (what, script, limit) in [
        ("a loop", "while true do end", Limit::Instructions),
        (
            "recursion with pcall",
            "while true do pcall(function() while true do end end) end",
            Limit::Instructions,
        ),
        (
            "a handler",
            "while true do xpcall(function() while true do end end, function() while true do end end) end",
            Limit::Instructions,
        ),
        (
            "coroutines",
            "while true do local c = coroutine.create(function() while true do end end) coroutine.resume(c) end",
            Limit::Instructions,
        ),
        (
            "wrapped coroutines",
            "while true do pcall(coroutine.wrap(function() while true do end end)) end",
            Limit::Instructions,
        ),
        ("growth", "local t = {} while true do t[#t + 1] = {1, 2, 3, 4} end", Limit::Memory),
        ("a long text", "local s = 'x' while true do s = s .. s end", Limit::Memory),
        ("a huge text", "return string.rep('x', 1e9)", Limit::Memory),
        ("a slow search", "local s = string.rep('a', 50000) return string.find(s, '.-.-.-.-b')", Limit::Size),
        (
            "an optional character, many times",
            "return ('a'):rep(30):find(('a?'):rep(40) .. ('a'):rep(40))",
            Limit::Size,
        ),
        ("balanced characters", "return string.find(('('):rep(50000), '%b()')", Limit::Size),
        (
            "a long text in a long text",
            "return string.find(('a'):rep(4e6), ('a'):rep(1e6) .. 'b', 1, true)",
            Limit::Size,
        ),
        (
            "a long text as a pattern",
            "return string.find(('a'):rep(4e6), ('a'):rep(1e6) .. 'b')",
            Limit::Size,
        ),
        ("nothing, many times", "return string.rep('', 2e9)", Limit::Size),
        ("an entry before the list", "table.insert({1}, -2e9, 1)", Limit::Size),
        ("a long list to sort", "local t = {} for i = 1, 30000 do t[i] = i end table.sort(t)", Limit::Size),
        ("a slow method", "local s = string.rep('a', 50000) return s:match('a*a*a*b')", Limit::Size),
    ] {
        let sandbox = Sandbox::new(Libraries::Open, strict()).expect("a sandbox");
        let start = Instant::now();
        let told = sandbox.health(script, &object());
        let took = start.elapsed();
        match told {
            Err(Error::Limit { limit: passed }) => {
                assert!(passed == limit || passed == Limit::Time, "{what}: {passed}");
            }
            other => panic!("{what}: {other:?}"),
        }
        assert!(took < Duration::from_secs(5), "{what} took {took:?}");
        let after = sandbox.health("return {status = 'Healthy'}", &object());
        assert_eq!(
            after.expect("the next one runs").map(|health| health.status.to_string()).as_deref(),
            Some("Healthy")
        );
    }
}

#[test]
fn the_clock_is_a_limit_too() {
    let limits = Limits { instructions: u64::MAX, time: Duration::from_millis(50), ..strict() };
    let sandbox = Sandbox::new(Libraries::Plain, limits).expect("a sandbox");
    let start = Instant::now();
    assert_eq!(sandbox.health("while true do end", &object()), Err(Error::Limit { limit: Limit::Time }));
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn answers_have_a_size() {
    let sandbox = Sandbox::new(Libraries::Plain, strict()).expect("a sandbox");
    let none = BTreeMap::new();
    for script in [
        "local t = {} t.t = t return t",
        "local t = {a = 1} for i = 1, 40 do t = {l = t, r = t} end return t",
        "local t = {} for i = 1, 20000 do t[i] = i end return t",
    ] {
        assert_eq!(
            sandbox.act(script, &object(), &none),
            Err(Error::Limit { limit: Limit::Size }),
            "{script}"
        );
    }
}

fn impacts(script: &str) -> String {
    let sandbox = Sandbox::new(Libraries::Plain, strict()).expect("a sandbox");
    let params = BTreeMap::from([("replicas".to_owned(), "5".to_owned())]);
    match sandbox.act(script, &object(), &params) {
        Ok(impacts) => {
            let lines: Vec<_> =
                impacts.iter().map(|impact| format!("{:?} {}", impact.operation, impact.object)).collect();
            lines.join("\n") + "\n"
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn actions_return_objects() {
    expect![[r#"
        Patch {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{"a":"b"},"name":"web"},"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}},"status":{"ratio":0.5,"readyReplicas":2}}
    "#]]
    .assert_eq(&impacts("obj.spec.replicas = tonumber(actionParams['replicas']) return obj"));
    expect![[r#"
        Create {"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"web-job"},"spec":{"parallelism":2}}
        Patch {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{},"name":"web"}}
    "#]]
    .assert_eq(&impacts(
        r#"
        local job = {apiVersion = "batch/v1", kind = "Job", metadata = {name = obj.metadata.name .. "-job"}, spec = {parallelism = 2}}
        local same = {apiVersion = obj.apiVersion, kind = obj.kind, metadata = {name = "web", labels = {}, annotations = {}}}
        return {{operation = "create", resource = job}, {operation = "patch", resource = same}}"#,
    ));
    expect!["error: the Lua script returned \"drop\", expected `create` or `patch` as operation"]
        .assert_eq(&impacts(r#"return {{operation = "drop", resource = obj}}"#));
    expect!["error: the Lua script returned a table, expected an object, or a list of operations on objects"]
        .assert_eq(&impacts("return {a = 1}"));
    expect!["error: the Lua script returned a list with holes, expected data"]
        .assert_eq(&impacts("return {[1] = 'a', [3] = 'b'}"));
    expect!["error: the Lua script returned a table that is both a list and a map, expected data"]
        .assert_eq(&impacts("return {1, a = 2}"));
    expect!["error: the Lua script returned function, expected data"]
        .assert_eq(&impacts("return {a = print}"));
}

#[test]
fn actions_are_discovered_by_name() {
    let sandbox = Sandbox::new(Libraries::Plain, strict()).expect("a sandbox");
    let found = sandbox
        .discover(
            r#"local actions = {}
            actions["scale"] = {["disabled"] = obj.spec.replicas > 2, ["params"] = {{["name"] = "replicas", ["default"] = "3"}}}
            actions["restart"] = {["displayName"] = "Restart", ["iconClass"] = "fa fa-redo"}
            actions["pause"] = {}
            return actions"#,
            &object(),
        )
        .expect("it runs");
    let told: Vec<String> = found
        .iter()
        .map(|action| {
            let params: Vec<_> = action.params.iter().map(|param| param.name.as_str()).collect();
            format!("{} {} {:?} {params:?}", action.name, action.disabled, action.display_name)
        })
        .collect();
    expect![[r#"
        pause false None []
        restart false Some("Restart") []
        scale true None ["replicas"]"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(sandbox.discover("return {}", &object()), Ok(Vec::new()));
    assert!(sandbox.discover("return {a = 1}", &object()).is_err());
    assert!(sandbox.discover("return 'restart'", &object()).is_err());
}

fn settings(pairs: &[(&str, &str)]) -> (Scripts, String) {
    let data = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let (scripts, problems) = Scripts::parse(&data, Limits::default());
    (scripts, problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn told(scripts: &Scripts, api_version: &str, kind: &str) -> String {
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    match scripts.health(&Manifest::new(object).expect("an object")) {
        Custom::Absent => "absent".to_owned(),
        Custom::Judged(None) => "no status".to_owned(),
        Custom::Judged(Some(health)) => health.to_string(),
    }
}

#[test]
fn the_settings_name_the_script_for_a_kind() {
    let (scripts, problems) = settings(&[
        ("url", "https://example.com"),
        (
            "resource.customizations.health.cert-manager.io_Certificate",
            "return {status = 'Healthy', message = 'exact'}",
        ),
        ("resource.customizations.health.ConfigMap", "return {status = 'Healthy', message = 'core'}"),
        ("resource.customizations.health.example.com_Broken", "return {"),
        (
            "resource.customizations.health.example.com_Open",
            "return {status = 'Healthy', message = string.rep('x', 2)}",
        ),
        ("resource.customizations.useOpenLibs.example.com_Open", "true"),
        (
            "resource.customizations.health.example.com_Closed",
            "return {status = 'Healthy', message = string.rep('x', 2)}",
        ),
        ("resource.customizations.ignoreDifferences.all", "jsonPointers: []"),
        (
            "resource.customizations",
            "\"*.crossplane.io/*\":\n  health.lua: |\n    return {status = 'Progressing', message = 'wild'}\n\"*.aws.crossplane.io/*\":\n  health.lua: |\n    return {status = 'Progressing', message = 'wilder'}\nold.example.com/Thing:\n  health.lua: |\n    return {status = 'Healthy', message = string.upper('old')}\n  health.lua.useOpenLibs: true\n",
        ),
    ]);
    assert_eq!(problems, "");
    assert_eq!(told(&scripts, "cert-manager.io/v1", "Certificate"), "Healthy: exact");
    assert_eq!(told(&scripts, "v1", "ConfigMap"), "Healthy: core");
    assert_eq!(told(&scripts, "v1", "Secret"), "absent");
    assert_eq!(told(&scripts, "example.com/v1", "Open"), "Healthy: xx");
    expect!["Unknown: the Lua script failed: script:1: attempt to index global 'string' (a nil value)"]
        .assert_eq(&told(&scripts, "example.com/v1", "Closed"));
    expect!["Unknown: cannot compile the Lua script: syntax error: script:1: unexpected symbol near '<eof>'"]
        .assert_eq(&told(&scripts, "example.com/v1", "Broken"));
    assert_eq!(told(&scripts, "s3.crossplane.io/v1", "Bucket"), "Progressing: wild");
    assert_eq!(told(&scripts, "s3.aws.crossplane.io/v1", "Bucket"), "Progressing: wilder");
    assert_eq!(told(&scripts, "old.example.com/v1", "Thing"), "Healthy: OLD");
}

#[test]
fn settings_that_cannot_be_read_are_told() {
    let (_, problems) = settings(&[
        ("resource.customizations.haelth.Pod", "x"),
        ("resource.customizations.useOpenLibs.Pod", "yes"),
        ("resource.customizations.actions.Pod", "definitions:\n- name: x\n"),
        ("resource.customizations", "- a\n"),
    ]);
    expect!["resource.customizations: it is not a map of kinds; resource.customizations.actions.Pod: a definition needs `name` and `action.lua`; resource.customizations.haelth.Pod: unknown customisation `haelth`; resource.customizations.useOpenLibs.Pod: `yes` is neither true nor false"]
        .assert_eq(&problems);
}

#[test]
fn actions_of_the_settings_run() {
    let (scripts, problems) = settings(&[(
        "resource.customizations.actions.apps_Deployment",
        "mergeBuiltinActions: true\ndiscovery.lua: |\n  return {stop = {}}\ndefinitions:\n- name: stop\n  action.lua: |\n    obj.spec.replicas = 0\n    return obj\n",
    )]);
    assert_eq!(problems, "");
    let deployment = Manifest::new(object()).expect("an object");
    assert!(scripts.actions(&deployment).is_some_and(|actions| actions.merge_builtin));
    assert_eq!(scripts.discover(&deployment).map(|found| found.len()), Ok(1));
    let impacts = scripts.act(&deployment, "stop", &BTreeMap::new()).expect("it runs");
    assert_eq!(impacts[0].object["spec"]["replicas"], json!(0));
    assert_eq!(
        scripts.act(&deployment, "start", &BTreeMap::new()).map_err(|error| error.to_string()),
        Err("no action `start` is defined for apps/Deployment".to_owned())
    );
}

#[test]
fn scripts_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let (scripts, _) =
        settings(&[("resource.customizations.health.ConfigMap", "return {status = 'Healthy'}")]);
    is_shared(&scripts);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(told(&scripts, "v1", "ConfigMap"), "Healthy"));
        }
    });
}
