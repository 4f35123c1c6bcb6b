//! Whether repositories can be reached, as they were tested last.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use plumb_core::text::without_logins;
use serde_json::{Value, json};

/// How long the result of a test counts, and how long if a user asks for a new one.
const COUNTS_FOR: Duration = Duration::from_mins(3);
const COUNTS_AT_LEAST: Duration = Duration::from_secs(10);

/// The results of the last tests, by the repository's Secret and its version.
#[derive(Default)]
pub(crate) struct Connections(Mutex<HashMap<String, Tested>>);

#[derive(Clone)]
struct Tested {
    at: Instant,
    shown: Value,
}

impl Connections {
    /// The state of the connection to a repository. It is tested if the last test is too old, or with `is_forced` if it is
    /// not quite new. `None` if the test does not end in time.
    pub(crate) async fn state(
        &self,
        key: &str,
        is_forced: bool,
        until: tokio::time::Instant,
        test: impl Future<Output = Result<(), String>>,
    ) -> Option<Value> {
        let most = if is_forced { COUNTS_AT_LEAST } else { COUNTS_FOR };
        if let Some(known) = self.0.lock().get(key).filter(|known| known.at.elapsed() < most) {
            return Some(known.shown.clone());
        }
        let result = tokio::time::timeout_at(until, test).await.ok()?;
        let (status, message) = match result {
            Ok(()) => ("Successful", String::new()),
            // The error of a server may quote an address with a login.
            Err(why) => ("Failed", without_logins(&why).into_owned()),
        };
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let shown = json!({"status": status, "message": message, "attemptedAt": now.to_string()});
        let mut known = self.0.lock();
        known.retain(|_, tested| tested.at.elapsed() < COUNTS_FOR);
        known.insert(key.to_owned(), Tested { at: Instant::now(), shown: shown.clone() });
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_counts_for_a_while() {
        let connections = Connections::default();
        let until = tokio::time::Instant::now() + Duration::from_mins(1);
        let broken = async || Err::<(), _>("cannot fetch https://u:s3cr3t@h/x".to_owned());
        let first = connections.state("a", false, until, broken()).await.unwrap();
        assert_eq!(first["status"], "Failed");
        assert!(!first.to_string().contains("s3cr3t"), "{first}");
        // It was tested just now, so this is not waited for.
        let again = connections.state("a", true, until, std::future::pending());
        assert_eq!(again.await, Some(first));
        let fine = connections.state("b", false, until, async { Ok(()) }).await.unwrap();
        assert_eq!(fine["status"], "Successful");
        let now = tokio::time::Instant::now();
        assert_eq!(connections.state("c", false, now, std::future::pending()).await, None);
    }
}
