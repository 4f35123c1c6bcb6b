//! One worker. It runs one app after the other. A run that takes long waits for something outside of plumb, such as an API
//! server whose admission webhook is slow; meanwhile the worker runs other apps.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::cluster::run_slots::{LONG, MOST_LONG};

/// Takes jobs and runs them until there are no more.
pub(super) async fn serve<J, N, R>(mut next: impl FnMut() -> N, run: impl Fn(J) -> R)
where
    N: Future<Output = Option<J>>,
    R: Future<Output = ()> + Unpin,
{
    let mut long = FuturesUnordered::new();
    loop {
        let job = tokio::select! {
            job = next() => job,
            Some(()) = long.next(), if !long.is_empty() => continue,
        };
        let Some(job) = job else { break };
        let mut this = run(job);
        let mut takes_long = Box::pin(tokio::time::sleep(LONG));
        loop {
            tokio::select! {
                () = &mut this => break,
                Some(()) = long.next(), if !long.is_empty() => {}
                () = &mut takes_long, if long.len() < MOST_LONG => {
                    long.push(this);
                    break;
                }
            }
        }
    }
    while long.next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    /// Runs jobs of these lengths in seconds. Returns when each ended.
    async fn ends(lengths: &[u64]) -> Vec<u64> {
        let started = Instant::now();
        let jobs: RefCell<VecDeque<(usize, u64)>> =
            RefCell::new(lengths.iter().copied().enumerate().collect());
        let ends = RefCell::new(vec![0; lengths.len()]);
        let next = || std::future::ready(jobs.borrow_mut().pop_front());
        let run = |(index, seconds): (usize, u64)| {
            let ends = &ends;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                if let Some(end) = ends.borrow_mut().get_mut(index) {
                    *end = started.elapsed().as_secs();
                }
            })
        };
        serve(next, run).await;
        ends.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_run_delays_the_next_ones_for_a_moment_only() {
        assert_eq!(ends(&[1, 2, 1]).await, [1, 3, 4], "one after the other");
        assert_eq!(ends(&[60, 1, 1]).await, [60, 6, 7]);
        assert_eq!(ends(&[60, 60, 1]).await, [60, 65, 11]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_has_a_limited_number_of_long_runs() {
        let ended = ends(&[60, 60, 60, 60, 60, 1]).await;
        assert_eq!(ended, [60, 65, 70, 75, 80, 61], "the fifth becomes a long one when the first ends");
    }
}
