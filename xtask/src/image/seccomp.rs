//! The filter of system calls of a container, as containerd sets it for `RuntimeDefault`.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The profile of Podman and Buildah. It is installed with them.
const PROFILE: &str = "/usr/share/containers/seccomp.json";

/// What containerd refuses to a container without capabilities, and this profile permits.
const REFUSED: [&str; 14] = [
    "clone",
    "clone3",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "setns",
    "umount",
    "umount2",
    "unshare",
];
/// The flags of clone that make a namespace.
const NAMESPACE_FLAGS: u64 = 0x7e02_0000;
const ENOSYS: u32 = 38;
const EPERM: u32 = 1;

/// The filter in the form that runc reads.
pub(super) fn default_filter() -> Result<Value> {
    let text = std::fs::read_to_string(Path::new(PROFILE))
        .with_context(|| format!("cannot read {PROFILE}: install buildah with the packages it recommends"))?;
    Ok(filter(&serde_json::from_str(&text).with_context(|| format!("cannot read {PROFILE}"))?))
}

fn filter(profile: &Value) -> Value {
    let rules = profile["syscalls"].as_array().into_iter().flatten();
    let mut syscalls: Vec<Value> = rules.filter(|rule| applies(rule)).map(narrowed).collect();
    let namespaces =
        json!([{"index": 0, "value": NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]);
    syscalls.push(json!({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": namespaces}));
    // The C library falls back to clone, whose flags a filter can read.
    syscalls.push(json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS}));
    let rest: Vec<_> = REFUSED.iter().filter(|name| !name.starts_with("clone")).collect();
    syscalls.push(json!({"names": rest, "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM}));
    syscalls.retain(|rule| rule["names"].as_array().is_some_and(|names| !names.is_empty()));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": syscalls,
    })
}

/// Is the rule for this machine, and for a process without capabilities?
fn applies(rule: &Value) -> bool {
    let list = |of: &str, what: &str| rule[of][what].as_array().cloned().unwrap_or_default();
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let arches = list("includes", "arches");
    list("includes", "caps").is_empty() && (arches.is_empty() || arches.iter().any(|arch| arch == here))
}

fn narrowed(rule: &Value) -> Value {
    let names = rule["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names: Vec<_> = names.filter(|name| !REFUSED.contains(name)).collect();
    let mut narrowed = json!({"names": names, "action": rule["action"]});
    for key in ["args", "errnoRet"] {
        if !rule[key].is_null() {
            narrowed[key] = rule[key].clone();
        }
    }
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_namespace_is_refused_whatever_the_profile_says() {
        let profile = json!({"syscalls": [
            {"names": ["read", "unshare", "clone3"], "action": "SCMP_ACT_ALLOW", "args": []},
            {"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        ]});
        let filter = filter(&profile).to_string();
        assert!(filter.contains(r#""names":["read"]"#), "{filter}");
        assert!(!filter.contains("bpf"), "{filter}");
        assert_eq!(filter.matches("unshare").count(), 1, "{filter}");
    }
}
