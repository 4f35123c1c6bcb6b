//! Signals that a watch has received its first list.

use tokio::sync::oneshot;

/// Signals once that the first list has ended.
pub(super) struct FirstList(Option<oneshot::Sender<()>>);

impl FirstList {
    pub(super) fn new(waiting: oneshot::Sender<()>) -> Self {
        Self(Some(waiting))
    }

    pub(super) fn signal(&mut self) {
        if let Some(waiting) = self.0.take() {
            let _ = waiting.send(());
        }
    }
}
