//! What is answered to a message. No input or output happens here.

use serde_json::{Value, json};

use super::tools;

/// The newest version of the protocol that is known here.
const VERSION: &str = "2025-06-18";
/// The older ones that differ in nothing that is used.
const OLDER: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// What to do with a message.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Send this.
    Answer(Value),
    /// Run plumb with these words, and send the result under this id.
    Run { id: Value, words: Vec<String> },
    /// Nothing: a notification.
    Nothing,
}

/// What to do with a line that a client sent.
pub(super) fn step(line: &str, allow_writes: bool) -> Step {
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Step::Answer(error(&Value::Null, -32700, "this is not JSON"));
    };
    let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
    if id.is_null() {
        return Step::Nothing;
    }
    match method {
        "initialize" => Step::Answer(answer(id, &hello(&message["params"]))),
        "ping" => Step::Answer(answer(id, &json!({}))),
        "tools/list" => Step::Answer(answer(id, &tools::list(allow_writes))),
        "tools/call" => {
            let name = message["params"]["name"].as_str().unwrap_or_default();
            match tools::command(name, &message["params"]["arguments"], allow_writes) {
                Ok(words) => Step::Run { id: id.clone(), words },
                Err(why) => Step::Answer(error(id, -32602, &why)),
            }
        }
        _ => Step::Answer(error(id, -32601, &format!("there is no method `{method}`"))),
    }
}

fn hello(parameters: &Value) -> Value {
    let asked = parameters["protocolVersion"].as_str().unwrap_or_default();
    let version = OLDER.into_iter().find(|version| *version == asked).unwrap_or(VERSION);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "plumb", "version": env!("CARGO_PKG_VERSION")},
        "instructions": "Start with `doctor`, or with `drift` for one app. Differences without `counts` mean nothing.",
    })
}

/// The result of a command. The exit code 1 is an answer (something differs), not a failure.
pub(super) fn result(id: &Value, code: i32, output: &str, errors: &str) -> Value {
    let text = if output.trim().is_empty() { errors } else { output };
    answer(id, &json!({"content": [{"type": "text", "text": text}], "isError": !matches!(code, 0 | 1)}))
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, arguments: &Value, allow_writes: bool) -> Step {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        step(&message.to_string(), allow_writes)
    }

    fn words(text: &str) -> Step {
        Step::Run { id: json!(7), words: text.split(' ').map(str::to_owned).collect() }
    }

    #[test]
    fn a_client_says_hello_and_sees_only_tools_that_it_may_call() {
        let hello = step(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#,
            false,
        );
        let Step::Answer(hello) = hello else { panic!("{hello:?}") };
        assert_eq!(hello["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(step(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, false), Step::Nothing);
        for (allow_writes, has_sync) in [(false, false), (true, true)] {
            let Step::Answer(list) = step(r#"{"id":2,"method":"tools/list"}"#, allow_writes) else {
                panic!()
            };
            assert_eq!(list.to_string().contains("\"name\":\"sync\""), has_sync, "{list}");
        }
    }

    #[test]
    fn a_call_is_a_command_line() {
        assert_eq!(call("drift", &json!({}), false), words("drift -o json"));
        assert_eq!(call("drift", &json!({"app": "shop"}), false), words("drift shop -o json"));
        assert_eq!(call("sync", &json!({"app": "shop"}), true), words("app sync shop --timeout 300"));
    }

    #[test]
    fn what_is_not_allowed_or_not_readable_is_an_error() {
        for (outcome, why) in [
            (call("sync", &json!({"app": "shop"}), false), "changes the cluster"),
            (call("get_app", &json!({}), false), "`app` is missing"),
            (call("get_app", &json!({"app": "--kubeconfig=/etc/x"}), false), "must be the name"),
            (call("get_app", &json!({"app": 3}), false), "must be the name"),
            (call("rm", &Value::Null, true), "there is no tool"),
            (step("{", false), "not JSON"),
            (step(r#"{"id":1,"method":"resources/list"}"#, false), "there is no method"),
        ] {
            let Step::Answer(answer) = outcome else { panic!("{outcome:?}") };
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(why)), "{answer}");
        }
    }

    #[test]
    fn a_difference_is_an_answer_and_a_failure_is_none() {
        assert_eq!(result(&json!(1), 1, "differs", "")["result"]["isError"], false);
        let failed = result(&json!(1), 20, "", "error: no cluster");
        assert_eq!(failed["result"]["isError"], true);
        assert_eq!(failed["result"]["content"][0]["text"], "error: no cluster");
    }
}
