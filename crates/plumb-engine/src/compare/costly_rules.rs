//! Large objects are judged, and ignore rules whose jq paths may take long are applied, where no other app waits for the
//! thread.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// At most half of the cores, however many apps have such objects or rules.
static SLOTS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores / 2).max(1))
});

/// Does the work at once; if it is costly, in a slot, and on a thread that serves no other app meanwhile.
pub(crate) async fn apart<T>(is_costly: bool, work: impl FnOnce() -> T) -> T {
    if !is_costly {
        return work();
    }
    let _slot = SLOTS.acquire().await;
    // The command line's tests have one thread, which no other app shares.
    let has_threads =
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_threads { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// One thread serves all tasks. Were the work done on it, the other task could not send what the work waits for.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn costly_work_does_not_hold_up_others() {
        let (send, receive) = mpsc::channel();
        let (start, started) = tokio::sync::oneshot::channel();
        let costly = tokio::spawn(apart(true, move || {
            start.send(()).unwrap();
            receive.recv_timeout(Duration::from_secs(10))
        }));
        started.await.unwrap();
        tokio::spawn(async move { send.send("done") }).await.unwrap().unwrap();
        assert_eq!(costly.await.unwrap(), Ok("done"));
    }

    #[tokio::test]
    async fn work_is_done_with_and_without_threads() {
        assert_eq!((apart(false, || 1).await, apart(true, || 2).await), (1, 2));
    }
}
