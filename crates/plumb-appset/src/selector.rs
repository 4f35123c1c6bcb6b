//! Selectors over labels, and over parameters.

use std::collections::BTreeMap;

use plumb_crd::application_set::LabelSelector;

/// What a selector's values may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// As Kubernetes' label values.
    Strict,
    /// Anything: parameters may be URLs.
    Free,
}

/// Checks a selector as Kubernetes does.
pub(crate) fn check(selector: &LabelSelector, values: Values) -> Result<(), String> {
    for (key, value) in &selector.match_labels {
        check_key(key)?;
        check_value(key, value, values)?;
    }
    for requirement in &selector.match_expressions {
        let given = &requirement.values;
        match requirement.operator.as_str() {
            "In" | "NotIn" => {
                if given.is_empty() {
                    return Err(
                        "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                            .to_owned(),
                    );
                }
            }
            "Exists" | "DoesNotExist" => {
                if !given.is_empty() {
                    let shown: Vec<String> =
                        given.iter().map(|value| plumb_gotemplate::format::quote(value)).collect();
                    let shown = shown.join(",");
                    return Err(format!(
                        "values: Invalid value: [{shown}]: values set must be empty for exists and does not exist"
                    ));
                }
            }
            other => {
                let quoted = plumb_gotemplate::format::quote(other);
                return Err(format!("{quoted} is not a valid pod selector operator"));
            }
        }
        check_key(&requirement.key)?;
        given.iter().try_for_each(|value| check_value(&requirement.key, value, values))?;
    }
    Ok(())
}

fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && text.bytes().all(inner)
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}

/// A DNS name in lower case.
fn is_domain(text: &str) -> bool {
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if is_name(name) && prefix.is_none_or(is_domain) {
        return Ok(());
    }
    Err(format!(
        "key: Invalid value: {}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
         end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        plumb_gotemplate::format::quote(key)
    ))
}

fn check_value(key: &str, value: &str, values: Values) -> Result<(), String> {
    if values == Values::Free || value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(format!(
        "values[0][{key}]: Invalid value: {}: a valid label must be an empty string or consist of alphanumeric \
         characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        plumb_gotemplate::format::quote(value)
    ))
}

/// True if there is nothing to fulfil.
pub(crate) fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

/// True if parameters, flattened, match.
pub(crate) fn matches(selector: &LabelSelector, flat: &BTreeMap<String, String>) -> bool {
    selector.matches(flat)
}
