//! Inside the core a module uses only modules that are listed above it in `lib.rs`.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Violation, tracked_files};

const CORE: &str = "crates/plumb-core/src";

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let lib = std::fs::read_to_string(root.join(CORE).join("lib.rs")).context("read the core's lib.rs")?;
    let order = listed_modules(&lib);
    let mut found = Vec::new();
    for file in tracked_files(root)? {
        let Ok(inside) = file.strip_prefix(CORE) else { continue };
        if inside.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let Some(first) = inside.components().next() else { continue };
        let module = first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        let Some(position) = order.iter().position(|name| *name == module) else { continue };
        let text = std::fs::read_to_string(root.join(&file)).with_context(|| file.display().to_string())?;
        for used in used_modules(&text) {
            if order.iter().position(|name| *name == used).is_some_and(|other| other > position) {
                let what = format!("`{module}` uses `{used}`, which is listed below it in lib.rs");
                found.push(Violation::new(file.display().to_string(), what));
            }
        }
    }
    found.dedup();
    Ok(found)
}

fn listed_modules(lib: &str) -> Vec<String> {
    lib.lines()
        .filter_map(|line| line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

/// The modules named as `crate::module` outside of comments and tests.
fn used_modules(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_uses_are_read() {
        assert_eq!(listed_modules("//! x\npub mod object;\nmod app;\n"), ["object", "app"]);
        assert_eq!(
            used_modules("use crate::app::App;\n// crate::no\nfn f(x: crate::live::L) {}\n"),
            ["app", "live"]
        );
    }
}
