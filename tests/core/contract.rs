//! What every event store must do: one suite, run on each backend. Each test body is a function of
//! a [`fixture::Backend`]; the names are the claims.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod faulty;
mod fixture;
mod postgres;
mod postgres_connections;
mod postgres_faults;
mod postgres_order;
mod postgres_tls;
mod postgres_unknown;
mod sqlite;
mod sqlite_crash;
mod sqlite_damage;
mod sqlite_full;
mod sqlite_retention;
mod suite;

/// Runs the suite on one backend.
macro_rules! contract {
    ($backend:ident: $($module:ident::{$($name:ident),+ $(,)?}),+ $(,)?) => {
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let fixture = crate::contract::fixture::$backend().await;
                    crate::contract::suite::$module::$name(&fixture).await;
                }
            )+)+
        }
    };
}

macro_rules! contract_on {
    ($($backend:ident),+) => {
        $(contract! { $backend:
            appending::{
                a_new_stream_starts_at_version_one,
                a_wrong_version_conflicts_and_names_the_actual_one,
                several_events_are_written_together_in_order,
                an_append_without_events_is_invalid,
                an_append_that_claims_something_twice_is_invalid,
                a_refused_append_does_not_hurt_its_neighbours,
                of_two_appends_on_one_stream_one_wins,
                what_was_appended_reads_back_equal,
                recorded_at_never_runs_backwards,
                an_event_of_one_mebibyte_is_kept,
                a_slow_writer_with_an_old_version_is_refused,
                thirty_two_appenders_and_a_reader_see_every_position_once_in_order,
            },
            reading::{
                a_stream_is_read_in_pages,
                a_stream_is_read_backwards_from_any_version,
                what_is_read_of_a_stream_is_bounded_in_bytes_but_never_nothing,
                a_stream_of_ten_thousand_events_is_read_whole,
                a_stream_that_does_not_exist_is_empty,
                versions_are_read_in_the_order_asked_for,
                the_whole_log_is_read_in_pages,
                the_watch_moves_with_the_head_and_the_event_is_there,
                heads_are_told,
            },
            claiming::{
                a_claim_that_is_taken_is_answered_with_its_value,
                one_taken_claim_refuses_the_whole_append,
                a_version_is_judged_before_claims,
                an_expired_claim_is_absent_and_is_replaced,
                of_two_racing_claimants_one_wins,
                a_task_and_a_request_do_not_share_claims,
                many_expired_claims_do_not_disturb_the_held_ones,
            },
            guarding::{
                an_older_token_is_fenced_and_others_are_not,
                a_fence_is_judged_before_the_version,
                resolve_finds_what_was_written,
                resolve_of_nothing_is_absent,
                the_newest_snapshot_of_a_format_is_kept,
                a_snapshot_of_what_does_not_exist_is_invalid,
            },
            chaining::{
                hashes_are_the_same_on_every_backend,
                what_is_refused_leaves_the_chain_alone,
                the_chain_goes_on_when_events_are_dropped,
            },
            dropping::{
                only_an_archived_stream_is_dropped,
                a_stream_is_dropped_from_its_end_and_its_last_event_stays,
                what_was_dropped_is_passed_over_by_readers_of_the_log,
                ids_and_snapshots_go_with_their_stream_and_others_stay,
                archived_streams_with_events_left_are_told_in_pages,
            },
        })+
    };
}

contract_on!(on_memory, on_sqlite, on_faulty, on_postgres);
