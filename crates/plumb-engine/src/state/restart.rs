//! A request to start the engine over, with everything read anew.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Something changed that only a new engine takes in.
#[derive(Default)]
pub(crate) struct Restart {
    asked: Notify,
    reason: Mutex<Option<String>>,
}

impl Restart {
    /// Asks for a new engine. The first reason stays.
    pub(crate) fn ask(&self, reason: impl Into<String>) {
        self.reason.lock().get_or_insert_with(|| reason.into());
        self.asked.notify_one();
    }

    /// Waits until a new engine is asked for, and returns the reason.
    pub(crate) async fn asked(&self) -> String {
        self.asked.notified().await;
        self.reason.lock().clone().unwrap_or_default()
    }
}
