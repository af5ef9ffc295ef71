//! The broker's store, on both engines.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod blocked;
mod events;
mod inbox;
mod intake;
mod world;

use events::ACTOR;
use std::sync::Arc;
use taskledger_broker::{BrokerStore, Outcome, Owner, Published};
use taskledger_domain::{Position, Recorded};
use world::{TENANT, World};

fn text(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn owner_of(tenant: &str, actor: &str) -> Owner {
    Owner {
        tenant: text(tenant),
        actor: text(actor),
    }
}

fn owner() -> Owner {
    owner_of(TENANT, ACTOR)
}

/// Takes in what lies behind `after` and ends with these events. Returns the place afterwards.
async fn take(store: &BrokerStore, after: Position, events: &[Arc<Recorded>]) -> Position {
    let upto = events.last().expect("there are events").position;
    let place = store.intake(after, events, &[], upto).await;
    place.expect("the store works")
}

/// What waits for an agent, as `number id position`.
async fn waiting(store: &BrokerStore, requester: &str) -> Vec<String> {
    let found = store.undelivered(&owner(), &text(requester), 0, 100).await;
    told(&found.expect("the store works"))
}

/// The latest outcomes of these ids.
async fn latest(store: &BrokerStore, requester: &str, ids: &[&str]) -> Vec<String> {
    let ids: Vec<Arc<str>> = ids.iter().map(|id| text(id)).collect();
    let found = store.outcomes_of(&owner(), &text(requester), &ids).await;
    told(&found.expect("the store works").expect("few are asked for"))
}

fn told(outcomes: &[Outcome]) -> Vec<String> {
    let told = outcomes
        .iter()
        .map(|it| format!("{} {} {}", it.number, it.external_id, it.position));
    told.collect()
}

/// The tasks that an owner calls so, by their numbers.
async fn called(
    store: &BrokerStore,
    owner: &Owner,
    requester: Option<&str>,
    id: &str,
) -> Vec<u128> {
    let requester = requester.map(text);
    let found = store
        .by_external_id(owner, requester.as_ref(), &text(id))
        .await;
    let number = |it: Published| it.task_id.0.as_u128();
    found
        .expect("the store works")
        .into_iter()
        .map(number)
        .collect()
}

macro_rules! on_both_engines {
    ($($module:ident::$name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test] async fn $name() { super::$module::$name(super::World::on_sqlite().await).await; })+
        }
        mod on_postgres {
            $(#[tokio::test] async fn $name() { super::$module::$name(super::World::on_postgres().await).await; })+
        }
    };
}

on_both_engines! {
    intake::each_end_is_noted_once_however_often_its_events_come,
    intake::nothing_is_noted_while_events_are_missing,
    intake::two_who_take_in_the_same_events_note_them_once,
    intake::only_what_carries_a_mark_and_is_no_copy_is_published,
    intake::tasks_that_cannot_run_are_told_once_for_each_cause,
    intake::a_task_that_began_after_all_is_told_of_again,
    blocked::a_task_that_is_cancelled_and_run_again_is_told_of_again,
    intake::when_no_task_waits_any_more_those_that_begin_are_not_looked_for,
    blocked::a_server_learns_that_no_task_waits_from_what_another_noted,
    intake::a_failure_that_is_retried_is_no_end,
    intake::a_task_that_runs_again_ends_again,
    intake::tasks_that_share_an_external_id_are_all_found,
    intake::the_place_and_the_numbers_go_on_after_a_restart,
    intake::a_log_that_was_restored_is_taken_in_again,
    intake::a_large_batch_is_taken_in,
    intake::what_brings_nothing_is_passed_over_and_read_again_after_a_restart,
    inbox::strangers_see_nothing,
    inbox::what_was_delivered_is_told_no_more_and_keeps_its_first_time,
    inbox::two_who_deliver_mark_each_outcome_once,
    inbox::named_tasks_are_told_again_whether_delivered_or_not,
    inbox::whoever_waits_is_woken_on_every_server,
    inbox::ids_hold_any_character_up_to_their_limit,
    inbox::swept_flows_are_forgotten,
}
