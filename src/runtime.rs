//! Runs work that would block a runtime thread for long: commands on thousands of tasks take tens of milliseconds, in
//! which the thread, and whatever it had queued, would serve nobody.

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

#[cfg(test)]
mod tests {
    use super::{TASKS_INLINE_MAX, maybe_block_in_place};
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

    #[tokio::test]
    async fn one_thread_alone_does_everything_itself() {
        assert_eq!(maybe_block_in_place(TASKS_INLINE_MAX + 1, || 7), 7);
    }
}
