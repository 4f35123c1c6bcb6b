//! The tools, each a command line of plumb.

use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::{Value, json};

/// A tool.
pub(super) struct Tool {
    name: &'static str,
    description: &'static str,
    /// The words of the command. `APP` is replaced by the argument `app`, and left out with its word if it is optional and
    /// missing.
    words: &'static [&'static str],
    app: AppArgument,
    writes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AppArgument {
    None,
    Optional,
    Required,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "list_apps",
        description: "All Applications, one line each: sync status, health, conditions, and what has drifted since when.",
        words: &["app", "list"],
        app: AppArgument::None,
        writes: false,
    },
    Tool {
        name: "get_app",
        description: "One Application: its sources, status and objects.",
        words: &["app", "get", "APP", "-o", "json"],
        app: AppArgument::Required,
        writes: false,
    },
    Tool {
        name: "drift",
        description: "Differences between Git and the cluster: class, evidence, author, since when, and the fix. Of one \
                      app, or of all.",
        words: &["drift", "APP", "-o", "json"],
        app: AppArgument::Optional,
        writes: false,
    },
    Tool {
        name: "doctor",
        description: "What to look at first: unhealthy for too long, really wrong, red without a reason.",
        words: &["doctor", "-o", "json"],
        app: AppArgument::None,
        writes: false,
    },
    Tool {
        name: "unmask",
        description: "Why objects are unhealthy, with the last log lines, and what changed before it began.",
        words: &["unmask", "-o", "json"],
        app: AppArgument::None,
        writes: false,
    },
    Tool {
        name: "diff",
        description: "The differences of an app that count, by object and field.",
        words: &["app", "diff", "APP", "-o", "json"],
        app: AppArgument::Required,
        writes: false,
    },
    Tool {
        name: "plan",
        description: "What a sync of an app would do: each step, why, and in which wave. From the last comparison.",
        words: &["app", "plan", "APP", "-o", "json"],
        app: AppArgument::Required,
        writes: false,
    },
    Tool {
        name: "logs",
        description: "The last 200 lines of each of an app's pods.",
        words: &["app", "logs", "APP", "--tail", "200"],
        app: AppArgument::Required,
        writes: false,
    },
    Tool {
        name: "undo_list",
        description: "Objects that plumb deleted, and that can be restored. Of one app, or of all.",
        words: &["undo", "list", "APP", "-o", "json"],
        app: AppArgument::Optional,
        writes: false,
    },
    Tool {
        name: "dry_run",
        description: "The plan of a sync, with hooks and what the API server would refuse. Objects stay as they are, but \
                      the request is written into the Application.",
        words: &["app", "sync", "APP", "--dry-run", "--timeout", "300"],
        app: AppArgument::Required,
        writes: true,
    },
    Tool {
        name: "sync",
        description: "Sync an app: make the cluster equal to Git. This changes the cluster.",
        words: &["app", "sync", "APP", "--timeout", "300"],
        app: AppArgument::Required,
        writes: true,
    },
];

/// The tools as the protocol lists them.
pub(super) fn list(allow_writes: bool) -> Vec<rmcp::model::Tool> {
    let allowed = TOOLS.iter().filter(|tool| allow_writes || !tool.writes);
    allowed.map(described).collect()
}

fn described(tool: &Tool) -> rmcp::model::Tool {
    let app = json!({"type": "string", "description": "`name`, or `namespace/name`"});
    let properties = if tool.app == AppArgument::None { json!({}) } else { json!({"app": app}) };
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    schema.insert("additionalProperties".to_owned(), json!(false));
    if tool.app == AppArgument::Required {
        schema.insert("required".to_owned(), json!(["app"]));
    }
    let hints = ToolAnnotations::new().read_only(!tool.writes).destructive(tool.writes);
    rmcp::model::Tool::new(tool.name, tool.description, Arc::new(schema)).annotate(hints)
}

/// The command line of a call, or why there is none. Arguments come from outside: an app is never read as a flag.
pub(super) fn command(name: &str, arguments: &Value, allow_writes: bool) -> Result<Vec<String>, String> {
    let tool =
        TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| format!("there is no tool `{name}`"))?;
    if tool.writes && !allow_writes {
        return Err(format!("`{name}` changes the cluster: start `plumb mcp --allow-writes` to allow it"));
    }
    // A misspelt argument would otherwise ask for all apps.
    let known = |key: &str| key == "app" && tool.app != AppArgument::None;
    if let Some(key) = arguments.as_object().into_iter().flatten().map(|(key, _)| key).find(|key| !known(key))
    {
        return Err(format!("`{name}` has no argument `{key}`"));
    }
    let app = match &arguments["app"] {
        Value::Null => None,
        Value::String(app) if !app.is_empty() && !app.starts_with('-') => Some(app.clone()),
        _ => return Err("`app` must be the name of an app".to_owned()),
    };
    if app.is_none() && tool.app == AppArgument::Required {
        return Err("`app` is missing".to_owned());
    }
    let words = tool.words.iter().filter_map(|word| match *word {
        "APP" => app.clone(),
        word => Some(word.to_owned()),
    });
    Ok(words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_allowed_tools_are_listed() {
        for (allow_writes, has_sync) in [(false, false), (true, true)] {
            let listed = list(allow_writes);
            assert_eq!(listed.iter().any(|tool| tool.name == "sync"), has_sync, "{listed:?}");
        }
    }

    #[test]
    fn a_call_is_a_command_line() {
        for (tool, arguments, allow_writes, expected) in [
            ("drift", json!({}), false, "drift -o json"),
            ("drift", json!({"app": "shop"}), false, "drift shop -o json"),
            ("plan", json!({"app": "shop"}), false, "app plan shop -o json"),
            ("dry_run", json!({"app": "shop"}), true, "app sync shop --dry-run --timeout 300"),
            ("sync", json!({"app": "shop"}), true, "app sync shop --timeout 300"),
        ] {
            assert_eq!(command(tool, &arguments, allow_writes), Ok(words(expected)));
        }
    }

    #[test]
    fn what_is_not_allowed_or_not_readable_is_refused() {
        for (tool, arguments, allow_writes, why) in [
            ("sync", json!({"app": "shop"}), false, "changes the cluster"),
            ("dry_run", json!({"app": "shop"}), false, "changes the cluster"),
            ("get_app", json!({}), false, "`app` is missing"),
            ("get_app", json!({"app": "--kubeconfig=/etc/x"}), false, "must be the name"),
            ("get_app", json!({"app": 3}), false, "must be the name"),
            ("rm", Value::Null, true, "there is no tool"),
            ("drift", json!({"application": "shop"}), false, "`drift` has no argument `application`"),
            ("drift", json!({"app": "shop", "name": "x"}), false, "`drift` has no argument `name`"),
            ("doctor", json!({"app": "shop"}), false, "`doctor` has no argument `app`"),
        ] {
            let refused = command(tool, &arguments, allow_writes).expect_err("refused");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
