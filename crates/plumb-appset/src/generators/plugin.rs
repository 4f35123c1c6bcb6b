//! `plugin`: parameters from a service.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_crd::application_set::PluginGenerator;
use serde_json::{Value as Json, json};

use super::entry::Context;
use super::list::json_type;
use super::values;
use crate::error::GenerationError;
use crate::facts::{HttpAnswer, PluginCall};
use crate::params::{Data, Params, flattened};

/// How long an answer may take if the `ConfigMap` does not say so.
const USUAL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long it may take at most.
const LONGEST_TIMEOUT: Duration = Duration::from_mins(5);

pub(super) fn params(
    context: &Context<'_>,
    generator: &PluginGenerator,
) -> Result<Vec<Params>, GenerationError> {
    let call =
        call(context, generator).map_err(|error| error.during("error getting plugin from generator"))?;
    let set_name = &context.set.metadata.name;
    let listing =
        |error: GenerationError| error.during(&format!("error listing params: error get api '{set_name}'"));
    let answer = context.facts.plugin(&call).map_err(|error| listing(error.into()))?;
    let found = read(&answer).map_err(|error| listing(GenerationError::generation(error)))?;
    let input: BTreeMap<String, Json> =
        generator.input.parameters.iter().map(|(key, raw)| (key.clone(), raw.0.clone())).collect();
    let mut sets = Vec::new();
    for item in found {
        let params: Params = item.iter().map(|(key, value)| (key.clone(), Data::from_json(value))).collect();
        let mut params = if context.is_go() { params } else { flattened(&params) };
        let parameters = Data::Map(BTreeMap::from([("parameters".to_owned(), Data::RawMap(input.clone()))]));
        let asked = Data::Map(BTreeMap::from([("input".to_owned(), parameters)]));
        params.insert("generator".to_owned(), asked);
        values::append(context, &generator.values, &mut params)
            .map_err(|error| error.during("error generating params"))?;
        sets.push(params);
    }
    Ok(sets)
}

fn call(context: &Context<'_>, generator: &PluginGenerator) -> Result<PluginCall, GenerationError> {
    let failed = |message: String| GenerationError::generation(message);
    let name = &generator.config_map_ref.name;
    let config = context
        .facts
        .config_map(name)
        .map_err(|error| GenerationError::from(error).during("error fetching ConfigMap"))?;
    let field = |key: &str| config.get(key).filter(|value| !value.is_empty());
    let base_url = field("baseUrl")
        .ok_or_else(|| failed("error fetching ConfigMap: baseUrl not found in ConfigMap".to_owned()))?;
    let token = field("token")
        .ok_or_else(|| failed("error fetching ConfigMap: token not found in ConfigMap".to_owned()))?;
    let token = read_token(context, token)?;
    let timeout = field("requestTimeout").map_or(Ok(0), |timeout| {
        timeout.parse::<i64>().map_err(|_| {
            let quoted = plumb_gotemplate::format::quote(timeout);
            failed(format!("error set requestTimeout : strconv.Atoi: parsing {quoted}: invalid syntax"))
        })
    })?;
    let timeout = u64::try_from(timeout).ok().filter(|timeout| *timeout > 0);
    let parameters: serde_json::Map<String, Json> =
        generator.input.parameters.iter().map(|(key, raw)| (key.clone(), raw.0.clone())).collect();
    let input = if parameters.is_empty() { json!({}) } else { json!({"parameters": parameters}) };
    Ok(PluginCall {
        url: format!("{}/api/v1/getparams.execute", base_url.trim_end_matches('/')),
        token,
        body: json!({"applicationSetName": context.set.metadata.name, "input": input}),
        timeout: timeout.map_or(USUAL_TIMEOUT, Duration::from_secs).min(LONGEST_TIMEOUT),
    })
}

/// `$key` is a key of `argocd-secret`, `$name:key` one of another Secret. An unknown key is sent as it is written.
fn read_token(context: &Context<'_>, written: &str) -> Result<String, GenerationError> {
    let Some(reference) = written.strip_prefix('$') else {
        return Err(GenerationError::generation(format!(
            "error fetching Secret token: token is empty, or does not reference a secret key starting with '$': {written}"
        )));
    };
    let (secret, key) = reference.split_once(':').unwrap_or(("argocd-secret", reference));
    let data = context
        .facts
        .secret(secret)
        .map_err(|error| GenerationError::from(error).during("error fetching Secret token"))?;
    Ok(data.get(key).cloned().unwrap_or_else(|| written.to_owned()))
}

/// A field, whatever the case of its name; null if there is none.
fn field<'a>(json: &'a Json, name: &str) -> &'a Json {
    let fields = || json.as_object().into_iter().flatten();
    let exact = fields().find(|(key, _)| *key == name);
    exact
        .or_else(|| fields().find(|(key, _)| key.eq_ignore_ascii_case(name)))
        .map_or(&Json::Null, |(_, value)| value)
}

fn read(answer: &HttpAnswer) -> Result<Vec<serde_json::Map<String, Json>>, String> {
    if !(200..300).contains(&answer.status) {
        let body: Json = serde_json::from_str(&answer.body).unwrap_or(Json::Null);
        let text = |key: &str| body.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
        let message = text("message").or(text("error")).unwrap_or(&answer.body);
        return Err(format!("API error with status code {}: {message}", answer.status));
    }
    if answer.body.trim().is_empty() {
        return Ok(Vec::new());
    }
    // As in Go: what follows the first value does not count, and nor does the case of field names.
    let first = serde_json::Deserializer::from_str(&answer.body).into_iter::<Json>().next();
    let body = first.unwrap_or(Ok(Json::Null)).map_err(|error| format!("{error}: {}", answer.body))?;
    let wrong = |found: &Json, field: &str, expected: &str| {
        let found = json_type(found);
        format!(
            "json: cannot unmarshal {found} into Go struct field {field} of type {expected}: {}",
            answer.body
        )
    };
    let parameters = match field(field(&body, "output"), "parameters") {
        Json::Null => return Ok(Vec::new()),
        Json::Array(items) => items,
        other => return Err(wrong(other, "Output.output.parameters", "[]map[string]interface {}")),
    };
    let item = |item: &Json| match item {
        Json::Object(map) => Ok(map.clone()),
        Json::Null => Ok(serde_json::Map::new()),
        other => Err(wrong(other, "Output.output.parameters", "map[string]interface {}")),
    };
    parameters.iter().map(item).collect()
}
