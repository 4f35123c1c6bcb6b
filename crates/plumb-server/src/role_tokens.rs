//! The tokens of the roles of a project. Argo CD keeps them in the status and in the spec; projects that come from Git, and
//! those of old versions, have them in the spec alone.

use serde_json::Value;

/// The tokens of a role, as spec and status list them: each once.
pub(crate) fn tokens_of(project: &Value, role: &str) -> Vec<Value> {
    let status =
        project.get("status").and_then(|status| status.get("jwtTokensByRole")?.get(role)?.get("items"));
    let roles = project.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
    let spec = roles.filter(|known| known.get("name").and_then(Value::as_str) == Some(role));
    let lists = status.into_iter().chain(spec.filter_map(|role| role.get("jwtTokens")));
    let mut tokens: Vec<Value> = Vec::new();
    for token in lists.filter_map(Value::as_array).flatten() {
        if !tokens.iter().any(|known| is_same(known, token)) {
            tokens.push(token.clone());
        }
    }
    tokens
}

/// Old tokens have no id: then the time decides.
fn is_same(one: &Value, other: &Value) -> bool {
    let id = |token: &Value| token.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let time = |token: &Value| token.get("iat").and_then(Value::as_i64);
    if id(one).is_empty() || id(other).is_empty() { time(one) == time(other) } else { id(one) == id(other) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_of_the_spec_and_of_the_status_count() {
        let token = |iat: i64, id: &str| json!({"iat": iat, "id": id});
        let project = json!({
            "spec": {"roles": [
                {"name": "dev", "jwtTokens": [token(1, "both"), token(2, "spec"), {"iat": 3}]},
                {"name": "other", "jwtTokens": [token(4, "other")]},
            ]},
            "status": {"jwtTokensByRole": {"dev": {"items": [token(1, "both"), token(3, "old"), token(5, "status")]}}},
        });
        let found = tokens_of(&project, "dev");
        let ids: Vec<&str> = found.iter().filter_map(|token| token["id"].as_str()).collect();
        assert_eq!(ids, ["both", "old", "status", "spec"]);
        assert_eq!(tokens_of(&project, "none"), Vec::<Value>::new());
        assert_eq!(tokens_of(&json!({}), "dev"), Vec::<Value>::new());
    }
}
