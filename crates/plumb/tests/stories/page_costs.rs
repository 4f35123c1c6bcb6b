//! What open pages cost the server: memory, and the processor. `page.rs` runs this at its end. Every figure is printed.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{Client, admin};
use crate::stage::Stage;

/// How many pages are open while it is measured.
const PAGES: u64 = 100;
/// What the measurement itself adds: the system counts memory in pages that other work takes, too.
const NOISE: u64 = 4;
/// How often at most so many more are opened.
const ROUNDS: u32 = 3;
/// Memory of the server (in KiB) for an open page.
const MEMORY: u64 = 32;
/// How long the processor is watched: two beats of each stream and more.
const WATCHED: Duration = Duration::from_secs(12);
/// What all pages together may take of a core. The budget is a thousandth with a program that is optimised; a test runs one
/// that is not.
const PROCESSOR: f64 = 0.02;

/// Memory of the process, in KiB.
fn resident(stage: &Stage) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", stage.pid()?.as_raw_nonzero()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
}

/// What the process has taken of the processor so far.
fn processor(stage: &Stage) -> Result<Duration> {
    let mut total = Duration::ZERO;
    for task in std::fs::read_dir(format!("/proc/{}/task", stage.pid()?.as_raw_nonzero()))? {
        // A thread may end meanwhile.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse().ok());
        total += Duration::from_nanos(nanoseconds.unwrap_or_default());
    }
    Ok(total)
}

/// Opens a stream as a page does, and waits for its first beat.
async fn open(address: SocketAddr, token: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("GET /api/plumb/v1/stream HTTP/1.1\r\nhost: plumb\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut seen = String::new();
    while !seen.contains("event: beat") {
        let mut some = [0; 4096];
        let n = stream.read(&mut some).await?;
        ensure!(n > 0, "the stream ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&some[..n]));
    }
    Ok(stream)
}

/// The share of a core that the server takes, while the streams wait in the buffers of their connections.
async fn watched(stage: &Stage) -> Result<f64> {
    let before = processor(stage)?;
    let _ = tokio::time::timeout(WATCHED, std::future::pending::<()>()).await;
    Ok((processor(stage)?.saturating_sub(before)).as_secs_f64() / WATCHED.as_secs_f64())
}

/// All figures.
#[expect(clippy::print_stdout, reason = "the figures are budgets")]
pub(crate) async fn all(stage: &Stage) -> Result<()> {
    let client = admin(stage).await?;
    let Client { address, token } = &client;
    // The first ones pay for what all share.
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(open(*address, token).await?);
    }
    let idle = watched(stage).await?;
    // Other work of the process takes memory, too. What a page costs is in every round; all pages stay open.
    let (mut each, mut n_rounds) = (u64::MAX, 0);
    while each > MEMORY && n_rounds < ROUNDS {
        n_rounds += 1;
        let before = resident(stage)?;
        for _ in 0..PAGES {
            streams.push(open(*address, token).await?);
        }
        each = each.min(resident(stage)?.saturating_sub(before) / PAGES);
    }
    println!("memory of the server for each open page: {each} KiB (budget {MEMORY} KiB)");
    let busy = (watched(stage).await? - idle).max(0.0) / f64::from(n_rounds);
    println!(
        "processor of the server for {PAGES} open pages: {:.2} % of a core (budget 0.1 %, fails above {:.0} %)",
        busy * 100.0,
        PROCESSOR * 100.0
    );
    let (before, headers) = (processor(stage)?, format!("authorization: Bearer {token}\r\n"));
    for _ in 0..20 {
        let (code, _, _) = client.send("GET", "/api/plumb/v1/apps", &headers, &Value::Null).await?;
        ensure!(code == 200, "the snapshot of all apps: {code}");
    }
    let each_snapshot = (processor(stage)?.saturating_sub(before)) / 20;
    println!(
        "processor of the server for a snapshot of the few apps here: {:.1} ms",
        each_snapshot.as_secs_f64() * 1000.0
    );
    drop(streams);
    ensure!(each <= MEMORY + NOISE, "an open page takes {each} KiB of the server");
    ensure!(busy <= PROCESSOR, "{PAGES} open pages take {:.2} % of a core", busy * 100.0);
    Ok(())
}
