//! The types of the page's scripts agree. `PLUMB_REQUIRE_TSC=1` makes it a failure if they cannot be checked here.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use plumb_testkit::browser::typescript;

#[test]
fn the_types_of_the_page_agree() -> Result<()> {
    let compiler = match typescript(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(compiler) => compiler,
        Err(why) => return plumb_testkit::skipped("TSC", &format!("the compiler of TypeScript: {why:#}")),
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tsconfig.json");
    let run =
        Command::new("node").arg(compiler).arg("-p").arg(project).output().context("cannot run node")?;
    let said = String::from_utf8_lossy(&run.stdout);
    ensure!(run.status.success(), "the types of the page do not agree:\n{said}");
    Ok(())
}
