//! Macros that run a test on each backend: one body for each claim.

/// Makes two tests of each claim, a function of the [`Folder`](crate::server::Folder) that it is
/// to be shown on.
#[macro_export]
macro_rules! on_both_backends {
    ($($claim:ident),+ $(,)?) => {
        mod on_sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$claim($crate::server::Folder::new()).await;
                }
            )+
        }
        mod on_postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$claim($crate::server::Folder::with_database().await).await;
                }
            )+
        }
    };
}
