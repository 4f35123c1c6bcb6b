//! Realistic values, by the name and type of the field.

use serde_json::{Value, json};

use crate::random::Random;

/// A text for a field of this name. `salt` makes the texts of different fields differ.
pub fn text(name: &str, salt: usize) -> String {
    match name {
        "name" | "claimName" | "secretName" | "configMapName" | "stepName" | "volumeName" | "hostname"
        | "subdomain" | "pdName" | "shareName" | "diskName" | "policyName" | "deviceClassName"
        | "resourceClaimName" | "serviceName" | "containerName" => format!("n{salt}"),
        "image" | "reference" => format!("registry.example/app:1.{salt}"),
        "serviceAccountName" | "serviceAccount" => "default".to_owned(),
        "ip" | "clusterIP" | "hostIP" => format!("10.9.8.{}", salt % 250 + 1),
        "cidr" => format!("10.{}.0.0/16", salt % 250),
        "path" | "mountPath" | "devicePath" | "workingDir" | "terminationMessagePath" => format!("/p{salt}"),
        "subPath" | "localhostProfile" | "gmsaCredentialSpecName" => format!("p{salt}"),
        "host" | "nodeName" | "ingressHost" | "server" | "domain" => format!("h{salt}.example.com"),
        "url" | "uri" | "endpoint" => format!("https://h{salt}.example.com/x"),
        "schedule" => format!("{salt} 3 * * *"),
        "timeZone" => ["Etc/UTC", "Europe/Berlin", "Asia/Tokyo"][salt % 3].to_owned(),
        "topologyKey" => format!("example.com/zone{salt}"),
        "apiVersion" => "apps/v1".to_owned(),
        "kind" => ["Deployment", "StatefulSet"][salt % 2].to_owned(),
        "apiGroup" | "group" => "apps".to_owned(),
        "fieldPath" => ["metadata.name", "metadata.namespace", "metadata.uid"][salt % 3].to_owned(),
        "resource" => ["limits.cpu", "requests.memory"][salt % 2].to_owned(),
        "expression" | "messageExpression" if name == "expression" => {
            ["true", "1 == 1", "!false"][salt % 3].to_owned()
        }
        "key"
        | "resourceName"
        | "driver"
        | "driverName"
        | "provisioner"
        | "attacher"
        | "signerName"
        | "conditionType"
        | "controller"
        | "reportingController" => format!("example.com/k{salt}"),
        "operator" => ["In", "NotIn"][salt % 2].to_owned(),
        "duration" | "renewBefore" | "timeout" | "interval" | "for" | "scrapeTimeout" | "refreshInterval"
        | "perTryTimeout" | "maxAge" | "fixedDelay" | "request" | "backendRequest" | "keep_firing_for" => {
            format!("{}m", salt % 50 + 1)
        }
        "holderIdentity" => format!("me{salt}"),
        "regex" | "regexp" => format!("a.*{salt}"),
        _ => format!("text-{salt}"),
    }
}

/// A number for a field of this name, within the schema's bounds.
pub fn number(name: &str, schema: &Value, salt: usize) -> i64 {
    let salt = i64::try_from(salt % 50).unwrap_or_default();
    let lowest = schema["minimum"].as_i64();
    let wanted = match name {
        "containerPort" | "port" | "targetPort" | "number" => 8000 + salt,
        "hostPort" | "nodePort" => return 30_000 + salt,
        "defaultMode" | "mode" => [0o644, 0o600, 0o444][usize::try_from(salt % 3).unwrap_or_default()],
        "weight" | "percent" | "setWeight" => salt + 1,
        "matchingPrecedence" => 9000 + salt,
        _ => salt + 2,
    };
    lowest.map_or(wanted, |lowest| wanted.max(lowest))
}

/// A resource quantity; canonical and not, with and without suffix.
pub fn quantity(salt: usize) -> Value {
    [
        json!("1"),
        json!("500m"),
        json!("2Gi"),
        json!("1500m"),
        json!("100k"),
        json!(2),
        json!("0.5"),
        json!("1024Mi"),
    ][salt % 8]
        .clone()
}

/// A number or a text.
pub fn int_or_string(name: &str, salt: usize) -> Value {
    match name {
        "maxSurge" | "maxUnavailable" | "minAvailable" => {
            [json!("30%"), json!(1), json!("10%"), json!(2)][salt % 4].clone()
        }
        "port" | "targetPort" => json!(8000 + salt),
        "expr" => [json!("up == 0"), json!(1), json!("vector(1)")][salt % 3].clone(),
        _ => [json!(salt + 1), json!(format!("{}", salt + 1)), json!(format!("{}s", salt + 1))][salt % 3]
            .clone(),
    }
}

/// Any value, for a field without a schema.
pub fn anything(random: &mut Random, salt: usize) -> Value {
    match random.below(5) {
        0 => json!({"a": salt, "b": {"c": "d", "on": true}, "list": [{"name": "x", "v": 1}, {"name": "y"}]}),
        1 => json!({"text": format!("t{salt}"), "number": 1.5, "zero": 0, "empty": "", "none": []}),
        2 => {
            json!({"=(x)": "*", "spec": {"containers": [{"(image)": "*:latest", "imagePullPolicy": "Always"}]}})
        }
        3 => json!({"nested": {"deep": {"deeper": [1, 2, 3]}}}),
        _ => json!({"plain": format!("p{salt}")}),
    }
}
