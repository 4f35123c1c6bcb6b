//! Returns memory to the system after a burst of runs.
//!
//! A thousand apps that sync at once take half as much memory again as the same apps when idle. The allocator would keep it
//! for the next burst, which may be days away.

use std::sync::Arc;

use crate::engine::Engine;

/// Returns unused memory to the system after every burst of runs.
pub(super) async fn give_memory_back(engine: Arc<Engine>) {
    loop {
        engine.bursts.end().await;
        // It blocks its thread for some milliseconds.
        let _ = tokio::task::spawn_blocking(plumb_heap::give_back).await;
    }
}
