//! Finds the call of an HTTP request, and makes the request of it.

use serde_json::{Map, Value};

use crate::status::Status;
use crate::table::{Cardinality, Field, Kind, MessageId, Method, Rule, Segment, Tables};

/// A call that REST asks for.
#[derive(Debug)]
pub struct Routed<'t> {
    /// The call.
    pub method: &'t Method,
    rule: &'t Rule,
    values: PathValues<'t>,
}

/// The values of a path, each with the names of its field.
type PathValues<'t> = Vec<(&'t [String], String)>;

/// No rule has this path, or none with this verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No rule has the path.
    Path,
    /// Rules have the path, but not the verb.
    Verb,
}

/// Deepest path of a field in a query, such as `a.b.c`.
const DEEPEST: usize = 16;

impl Tables {
    /// The call of a request. The path is percent-encoded.
    pub fn route(&self, verb: &str, path: &str) -> Result<Routed<'_>, NoRoute> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let mut best: Option<(usize, Routed<'_>)> = None;
        let mut has_path = false;
        for method in self.methods() {
            for rule in &method.rules {
                let Some((texts, values)) = matched(rule, &parts) else { continue };
                has_path = true;
                // Of several rules the one with more fixed parts counts: `/account/password` is no account's name.
                if rule.verb == verb && best.as_ref().is_none_or(|(most, _)| texts > *most) {
                    best = Some((texts, Routed { method, rule, values }));
                }
            }
        }
        match best {
            Some((_, routed)) => Ok(routed),
            None if has_path => Err(NoRoute::Verb),
            None => Err(NoRoute::Path),
        }
    }
}

/// The number of fixed parts, and the values of the others.
fn matched<'t>(rule: &'t Rule, parts: &[&str]) -> Option<(usize, PathValues<'t>)> {
    let mut values = Vec::new();
    let mut texts = 0;
    for (index, segment) in rule.segments.iter().enumerate() {
        match segment {
            Segment::Text(text) => {
                if parts.get(index) != Some(&text.as_str()) {
                    return None;
                }
                texts += 1;
            }
            Segment::Field(names) => {
                let part = parts.get(index).filter(|part| !part.is_empty())?;
                values.push((names.as_slice(), unescape(part, false)));
            }
            Segment::Rest(names) => {
                let rest = parts.get(index..)?.iter().map(|part| unescape(part, false)).collect::<Vec<_>>();
                values.push((names.as_slice(), rest.join("/")));
                return Some((texts, values));
            }
        }
    }
    (rule.segments.len() == parts.len()).then_some((texts, values))
}

impl Routed<'_> {
    /// True if the rule reads a body.
    pub fn takes_body(&self) -> bool {
        !self.rule.body.is_empty()
    }

    /// The request: the body, the values of the path and the query, each in its field.
    pub fn request(&self, tables: &Tables, query: &str, body: &[u8]) -> Result<Value, Status> {
        let mut request = Map::new();
        let is_empty = body.iter().all(u8::is_ascii_whitespace);
        if self.takes_body() && !is_empty {
            let body: Value = serde_json::from_slice(body)
                .map_err(|error| Status::invalid(format!("cannot read the body: {error}")))?;
            match (self.rule.body.as_str(), body) {
                ("*", Value::Object(map)) => request = map,
                ("*", _) => return Err(Status::invalid("the body must be a JSON object")),
                (field, body) => {
                    request.insert(field.to_owned(), body);
                }
            }
            request = known_fields(tables, self.method.input, request);
        }
        for (names, value) in &self.values {
            set(tables, self.method.input, &mut request, names, value)?;
        }
        if self.rule.body != "*" {
            for (name, value) in query_pairs(query) {
                let names: Vec<String> = name.split('.').map(str::to_owned).collect();
                set(tables, self.method.input, &mut request, &names, &value)?;
            }
        }
        Ok(Value::Object(request))
    }
}

/// The fields that the message has, as gRPC passes them on. A handler must never read or store a field that only REST
/// could bring.
fn known_fields(tables: &Tables, id: MessageId, map: Map<String, Value>) -> Map<String, Value> {
    let known = map.into_iter().filter_map(|(name, value)| {
        let field = field_named(tables, id, &name)?;
        let Kind::Message(inner) = field.kind else { return Some((name, value)) };
        let nested = |value: Value| match value {
            Value::Object(map) => Value::Object(known_fields(tables, inner, map)),
            other => other,
        };
        let value = match (field.cardinality, value) {
            (Cardinality::List, Value::Array(items)) => items.into_iter().map(nested).collect(),
            (Cardinality::Map, Value::Object(map)) => {
                Value::Object(map.into_iter().map(|(key, value)| (key, nested(value))).collect())
            }
            (_, value) => nested(value),
        };
        Some((name, value))
    });
    known.collect()
}

/// The field with this very name, also among those that JSON has beside the others.
fn field_named<'t>(tables: &'t Tables, id: MessageId, name: &str) -> Option<&'t Field> {
    let fields = &tables.message(id)?.fields;
    let own = fields.iter().find(|field| !field.is_inline && field.json == name);
    own.or_else(|| {
        fields.iter().filter(|field| field.is_inline).find_map(|field| match field.kind {
            Kind::Message(inner) => field_named(tables, inner, name),
            _ => None,
        })
    })
}

/// Sets a field to a value that is written as text. Unknown names are ignored.
fn set(
    tables: &Tables,
    id: MessageId,
    map: &mut Map<String, Value>,
    names: &[String],
    text: &str,
) -> Result<(), Status> {
    let Some((name, rest)) = names.split_first().filter(|_| names.len() <= DEEPEST) else { return Ok(()) };
    let Some(field) = tables.message(id).and_then(|message| message.by_json(name)) else { return Ok(()) };
    if let Kind::Message(inner) = field.kind
        && !rest.is_empty()
        && !matches!(field.cardinality, Cardinality::List | Cardinality::Map)
    {
        let entry = map.entry(field.json.clone()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(nested) = entry {
            return set(tables, inner, nested, rest, text);
        }
        return Ok(());
    }
    let Some(value) = scalar(field, text)? else { return Ok(()) };
    if field.cardinality == Cardinality::List {
        let list = map.entry(field.json.clone()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
    } else {
        map.insert(field.json.clone(), value);
    }
    Ok(())
}

fn scalar(field: &Field, text: &str) -> Result<Option<Value>, Status> {
    let wrong = || Status::invalid(format!("cannot read {}: {text:?} is not its type", field.json));
    Ok(Some(match field.kind {
        Kind::Text | Kind::Bytes | Kind::Quantity | Kind::IntOrText => text.into(),
        Kind::Time => {
            text.parse::<jiff::Timestamp>().map_err(|_| wrong())?;
            text.into()
        }
        Kind::Bool => match text {
            "true" | "1" | "t" | "T" | "TRUE" | "True" => true.into(),
            "false" | "0" | "f" | "F" | "FALSE" | "False" => false.into(),
            _ => return Err(wrong()),
        },
        Kind::Int => text.parse::<i64>().map_err(|_| wrong())?.into(),
        Kind::Raw | Kind::Message(_) => return Ok(None),
    }))
}

/// The names and values of a query.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(name, true), unescape(value, true))
    })
}

/// Decodes percent signs; in queries a plus is a blank. What is not encoded correctly stays as it is.
fn unescape(text: &str, plus_is_blank: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits
            .filter(|digits| byte == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(decoded) = decoded {
            out.push(decoded);
            at += 3;
        } else {
            out.push(if byte == b'+' && plus_is_blank { b' ' } else { byte });
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(verb: &str, path: &str, query: &str, body: &str, expected: &Expect) {
        let tables = Tables::get();
        let found = match tables.route(verb, path) {
            Ok(routed) => match routed.request(tables, query, body.as_bytes()) {
                Ok(request) => format!("{} {request}", routed.method.path),
                Err(status) => status.to_string(),
            },
            Err(no) => format!("{no:?}"),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn paths_queries_and_bodies() {
        check(
            "GET",
            "/api/v1/applications",
            "projects=a&projects=b&selector=x%3Dy&unknown=1",
            "",
            &expect![[r#"application.ApplicationService/List {"projects":["a","b"],"selector":"x=y"}"#]],
        );
        check(
            "POST",
            "/api/v1/applications",
            "upsert=true",
            r#"{"metadata":{"name":"x"}}"#,
            &expect![[
                r#"application.ApplicationService/Create {"application":{"metadata":{"name":"x"}},"upsert":true}"#
            ]],
        );
        check(
            "GET",
            "/api/v1/clusters/https%3A%2F%2Fkubernetes.default.svc",
            "id.type=name",
            "",
            &expect![[
                r#"cluster.ClusterService/Get {"id":{"type":"name","value":"https://kubernetes.default.svc"}}"#
            ]],
        );
        check(
            "GET",
            "/api/v1/account/can-i/applications/get/default/shop",
            "",
            "",
            &expect![[
                r#"account.AccountService/CanI {"action":"get","resource":"applications","subresource":"default/shop"}"#
            ]],
        );
        check(
            "PUT",
            "/api/v1/account/password",
            "",
            r#"{"newPassword":"x"}"#,
            &expect![[r#"account.AccountService/UpdatePassword {"newPassword":"x"}"#]],
        );
        check(
            "POST",
            "/api/v1/applications/shop/resource",
            "kind=Pod&resourceName=p",
            r#""{}""#,
            &expect![[
                r#"application.ApplicationService/PatchResource {"kind":"Pod","name":"shop","patch":"{}","resourceName":"p"}"#
            ]],
        );
    }

    #[test]
    fn fields_that_the_message_does_not_have_are_dropped() {
        check(
            "POST",
            "/api/v1/repositories",
            "",
            r#"{"repo":"a","url":"b","connectionState":{"status":"x","url":"b"}}"#,
            &expect![[
                r#"repository.RepositoryService/Create {"repo":{"connectionState":{"status":"x"},"repo":"a"}}"#
            ]],
        );
        check(
            "PUT",
            "/api/v1/applications/shop/spec",
            "",
            r#"{"x":1,"project":"p","sources":[{"repoURL":"r","y":1}],"syncPolicy":{"z":1,"automated":{}},"source":{"helm":{"valuesObject":{"any":{"thing":1}}}}}"#,
            &expect![[
                r#"application.ApplicationService/UpdateSpec {"name":"shop","spec":{"project":"p","source":{"helm":{"valuesObject":{"any":{"thing":1}}}},"sources":[{"repoURL":"r"}],"syncPolicy":{"automated":{}}}}"#
            ]],
        );
    }

    #[test]
    fn what_no_rule_has() {
        check("GET", "/api/v1/nothing", "", "", &expect!["Path"]);
        check("PATCH", "/api/v1/session", "", "", &expect!["Verb"]);
        check(
            "GET",
            "/api/v1/applications/a/logs",
            "tailLines=x",
            "",
            &expect![[r#"InvalidArgument: cannot read tailLines: "x" is not its type"#]],
        );
        check(
            "POST",
            "/api/v1/session",
            "",
            "[1]",
            &expect!["InvalidArgument: the body must be a JSON object"],
        );
    }
}
