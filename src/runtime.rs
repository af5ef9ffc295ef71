//! Runs work that would block a runtime thread for long: commands on thousands of tasks take tens of milliseconds, in
//! which the thread, and whatever it had queued, would serve nobody.

use std::future::{Future, poll_fn};
use std::pin::pin;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Tasks that are worked on where one is: about a millisecond.
const TASKS_INLINE_MAX: usize = 1_000;

/// Does `work`, which is about so many tasks. When they are many, what else this thread would have
/// done moves to another one first (tens of microseconds).
pub fn maybe_block_in_place<T>(tasks: usize, work: impl FnOnce() -> T) -> T {
    let may_move =
        || Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
    if tasks > TASKS_INLINE_MAX && may_move() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Bytes of a request that is read and carried out where it arrives: about a millisecond.
pub const REQUEST_BYTES_INLINE_MAX: usize = 256 * 1024;

/// Carries out `work` for a request of so many bytes. When they are many, what else the thread would have done moves to
/// another one whenever the work goes on: reading parameters takes time in proportion to them.
pub async fn unblocking<F: Future>(request_bytes: usize, work: F) -> F::Output {
    let mut work = pin!(work);
    let tasks = match request_bytes {
        0..=REQUEST_BYTES_INLINE_MAX => 0,
        _ => usize::MAX,
    };
    poll_fn(|cx| maybe_block_in_place(tasks, || work.as_mut().poll(cx))).await
}

#[cfg(test)]
mod tests {
    use super::{REQUEST_BYTES_INLINE_MAX, TASKS_INLINE_MAX, maybe_block_in_place, unblocking};
    use std::sync::mpsc;

    /// Two long works that wait for each other end only if neither keeps the other's thread.
    #[test]
    fn many_tasks_leave_the_thread_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (sender, receiver) = mpsc::channel();
        runtime.block_on(async move {
            let waits = tokio::spawn(async move {
                maybe_block_in_place(TASKS_INLINE_MAX + 1, || receiver.recv())
            });
            tokio::task::yield_now().await;
            let sends = tokio::spawn(async move { sender.send("done") });
            assert!(sends.await.unwrap().is_ok());
            assert_eq!(waits.await.unwrap(), Ok("done"));
        });
    }

    /// The same for two large requests.
    #[test]
    fn a_large_request_leaves_the_thread_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (sender, receiver) = mpsc::channel();
        let bytes = REQUEST_BYTES_INLINE_MAX + 1;
        runtime.block_on(async move {
            let waits = tokio::spawn(unblocking(bytes, async move { receiver.recv() }));
            tokio::task::yield_now().await;
            let sends = tokio::spawn(async move { sender.send("done") });
            assert!(sends.await.unwrap().is_ok());
            assert_eq!(waits.await.unwrap(), Ok("done"));
        });
    }

    #[tokio::test]
    async fn one_thread_alone_does_everything_itself() {
        assert_eq!(maybe_block_in_place(TASKS_INLINE_MAX + 1, || 7), 7);
        assert_eq!(unblocking(usize::MAX, async { 7 }).await, 7);
    }
}
