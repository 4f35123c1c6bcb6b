//! What needs an API server to answer: the names that shells complete, and the server's version.

use anyhow::Result;

use crate::bench::Bench;

#[tokio::test]
async fn shells_complete_the_names_of_the_cluster() -> Result<()> {
    let bench = Bench::new().await?;
    let whole = bench.quietly("plumb version", &[], "")?;
    assert!(whole.stdout.contains("kubernetes: v1."), "{}", whole.stdout);
    bench.application("payments", |_| {}).await?;
    bench.application("parking", |_| {}).await?;
    // As the scripts call it: the words of the line, and the index of the one that is being typed.
    let asked = |line: &str, index: &str| {
        bench.quietly(
            &format!("plumb -- {line}"),
            &[("PLUMB_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", index), ("_CLAP_IFS", "\n")],
            "",
        )
    };
    let apps = asked("plumb app get pa", "3")?;
    let mut found: Vec<&str> = apps.stdout.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["parking", "payments"]);
    let projects = asked("plumb proj get def", "3")?;
    assert_eq!(projects.stdout.lines().collect::<Vec<_>>(), ["default"]);
    let verbs = asked("plumb app pat", "2")?;
    assert_eq!(verbs.stdout.lines().collect::<Vec<_>>(), ["patch", "patch-resource"]);
    Ok(())
}
