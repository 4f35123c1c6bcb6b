//! `plumb mcp`, as an assistant talks to it: lines of JSON over pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub(crate) struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn start(words: &[&str]) -> Result<Self> {
        // A cluster that nobody can reach: what a tool says about it is an answer like any other.
        let cluster = ["--kubeconfig", "/nonexistent/kubeconfig"];
        Self::begin(Command::new(env!("CARGO_BIN_EXE_plumb")).arg("mcp").args(words).args(cluster))
    }

    pub(crate) fn begin(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().context("stdin")?;
        let output = BufReader::new(child.stdout.take().context("stdout")?);
        let mut talk = Self { child, input, output };
        let client = json!({"name": "test", "version": "1"});
        let hello = talk.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        )?;
        assert_eq!(hello["result"]["serverInfo"]["name"], "plumb", "{hello}");
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        talk.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(talk)
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}").context("write to plumb")
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("plumb sent {line:?}"))
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The client leaves; plumb ends by itself.
    pub(crate) fn end(self) -> Result<()> {
        let Self { mut child, input, output } = self;
        drop((input, output));
        assert!(child.wait()?.success());
        Ok(())
    }
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn an_assistant_lists_tools_and_calls_them() -> Result<()> {
    let mut talk = Talk::start(&[])?;
    let list = talk.ask("tools/list", &json!({}))?;
    let reading = ["list_apps", "get_app", "drift", "doctor", "unmask", "diff", "plan", "logs", "undo_list"];
    assert_eq!(names(&list), reading);
    assert!(
        list["result"]["tools"]
            .as_array()
            .is_some_and(|tools| { tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true) })
    );
    let unreachable = talk.call("list_apps", &json!({}))?;
    assert_eq!(unreachable["result"]["isError"], true, "{unreachable}");
    assert!(unreachable.to_string().contains("error: cannot "), "{unreachable}");
    let refused = talk.call("sync", &json!({"app": "shop"}))?;
    assert!(refused["error"]["message"].to_string().contains("--allow-writes"), "{refused}");
    let flag = talk.call("get_app", &json!({"app": "--kubeconfig=/etc/x"}))?;
    assert!(flag["error"]["message"].to_string().contains("must be the name"), "{flag}");
    let unknown = talk.ask("resources/read", &json!({"uri": "file:///etc/passwd"}))?;
    assert!(unknown["error"]["code"].is_number(), "{unknown}");
    talk.end()
}

#[test]
fn writes_are_offered_only_where_the_user_allows_them() -> Result<()> {
    let mut talk = Talk::start(&["--allow-writes"])?;
    let list = talk.ask("tools/list", &json!({}))?;
    assert_eq!(names(&list).last(), Some(&"sync"));
    talk.end()
}

/// `list_apps` can go through a server, `doctor` cannot: after a login they must not show two clusters.
#[test]
fn all_tools_ask_the_cluster_of_the_kubeconfig() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let login = "contexts:\n- {name: far, server: 'argocd.invalid:443', user: far}\ncurrent-context: far\n\
                 servers:\n- {server: 'argocd.invalid:443'}\nusers:\n- {name: far, auth-token: x}\n";
    std::fs::write(directory.path().join("config"), login)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command
        .arg("mcp")
        .env("ARGOCD_CONFIG_DIR", directory.path())
        .env("KUBECONFIG", "/nonexistent/kubeconfig");
    let mut talk = Talk::begin(&mut command)?;
    for tool in ["list_apps", "doctor"] {
        let answer = talk.call(tool, &json!({}))?.to_string();
        assert!(answer.contains("/nonexistent/kubeconfig") && !answer.contains("argocd.invalid"), "{answer}");
    }
    talk.end()
}
