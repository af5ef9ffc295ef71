//! Scripts that the server once got wrong, or that show a rule that is easily got wrong.

use crate::differential::place::Backend;
use crate::differential::{PATIENCE, play, script};

pub(super) async fn agrees(text: &str) {
    for backend in Backend::BOTH {
        let played = play(backend, script::parse(text), PATIENCE).await;
        if let Some((played, difference)) = played {
            panic!("{backend:?}, after step {played}: {difference}");
        }
    }
}

#[tokio::test]
async fn a_tree_runs_in_order_of_its_dependencies() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"a"}]}]}
        2 return @1a {"x":1}
        3 report @1b 0.5
        4 return @1b {}
        "#,
    )
    .await;
}

#[tokio::test]
async fn names_of_one_executor_share_its_slots_by_priority() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"one"}},{"id":"b","name":"b","parent_id":"r","priority":1,"schemas":{"method":"uno"}}]}
        2 return @1b {}
        3 return @1a {}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_retry_leaves_alone_what_only_waits_for_something_completed() {
    agrees(
        r#"
        1 tasks.create {"tasks":[{"id":"r","name":"r"},{"id":"done","name":"done","parent_id":"r"},{"id":"fails","name":"fails","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"done"}]},{"id":"other","name":"other","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"done"}]}]}
        2 tasks.execute {"task_id":"@1fails"}
        3 fail @1fails broke
        4 tasks.retry {"task_id":"@1fails"}
        5 return @1fails {}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_retry_runs_what_is_below_a_group_behind_the_failed_task() {
    agrees(
        r#"
        1 tasks.create {"tasks":[{"id":"r","name":"r"},{"id":"fails","name":"fails","parent_id":"r","schemas":{"method":"free"}},{"id":"g","name":"g","parent_id":"r","dependencies":[{"id":"fails"}]},{"id":"c","name":"c","parent_id":"g","schemas":{"method":"free"}}]}
        2 tasks.execute {"task_id":"@1fails"}
        3 fail @1fails broke
        4 tasks.retry {"task_id":"@1fails"}
        5 return @1fails {}
        6 return @1c {}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_run_forgives_a_task_three_interruptions_and_not_a_fourth() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"name":"a","schemas":{"method":"free"},"params":{"retry_count":5}}]}
        2 restart
        3 restart
        4 restart
        5 restart
        "#,
    )
    .await;
}

#[tokio::test]
async fn what_a_restart_interrupts_costs_no_retry_when_it_may_be_repeated() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"name":"a","schemas":{"method":"free"},"params":{"retry":{"max_attempts":2,"initial_delay_ms":0}}}]}
        2 restart
        3 fail @1 broke
        4 fail @1 broke
        "#,
    )
    .await;
}

#[tokio::test]
async fn what_a_restart_interrupts_costs_a_retry_when_it_may_not_be_repeated() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"once"},"params":{"retry_count":1}},{"id":"b","name":"b","parent_id":"r","schemas":{"method":"once"}}]}
        2 restart
        3 advance 1000
        4 fail @1a broke
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_task_below_what_two_runs_share_joins_the_one_that_is_still_on() {
    agrees(
        r#"
        1 tasks.create {"tasks":[{"id":"r","name":"r"},{"id":"d","name":"d","parent_id":"r","schemas":{"method":"free"}},{"id":"x","name":"x","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"d"}]},{"id":"y","name":"y","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"d"}]}]}
        2 tasks.execute {"task_id":"@1d"}
        3 return @1d {}
        4 tasks.execute {"task_id":"@1x"}
        5 tasks.execute {"task_id":"@1y"}
        6 return @1y {}
        7 tasks.create {"name":"c","parent_id":"@1d","schemas":{"method":"free"}}
        8 return @7 {}
        9 return @1x {}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_failed_child_is_tolerated_only_when_nobody_requires_it() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a","required":false}]}]}
        2 fail @1a broke
        3 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"g","name":"g","parent_id":"r"},{"id":"a","name":"a","parent_id":"g","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a","required":false}]},{"id":"c","name":"c","parent_id":"r","dependencies":[{"id":"a"}]}]}
        4 fail @3a broke
        "#,
    )
    .await;
}

#[tokio::test]
async fn what_is_wrong_in_itself_is_told_before_faults_of_the_tree() {
    agrees(
        r#"
        1 tasks.create {"id":"@mine","name":"a"}
        2 tasks.create {"tasks":[{"id":"@mine","name":"a"},{"name":"b"}]}
        3 tasks.execute {"tasks":[{"name":"a","params":{"deadline":"2020-01-01T00:00:00Z"}},{"name":"b"}]}
        4 tasks.create {"name":"other","tasks":[7,{"name":""}]}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_deadline_that_is_moved_into_the_past_ends_what_is_below() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"one"},"params":{"retry_count":2}},{"id":"b","name":"b","parent_id":"a","schemas":{"method":"one"}},{"id":"c","name":"c","parent_id":"r","schemas":{"method":"one"}},{"id":"d","name":"d","parent_id":"r","dependencies":[{"id":"a","required":false}]}]}
        2 fail @1a broke
        3 tasks.update {"task_id":"@1a","updates":{"params":{"deadline":"2020-01-01T00:00:00Z"}}}
        4 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"x","name":"x","parent_id":"r","schemas":{"method":"free"}},{"id":"g","name":"g","parent_id":"r","dependencies":[{"id":"x"}]},{"id":"a","name":"a","parent_id":"g","schemas":{"method":"free"}}]}
        5 tasks.update {"task_id":"@4g","updates":{"params":{"deadline":"2020-01-01T00:00:00Z"}}}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_task_has_the_deadline_of_the_task_above_it() {
    agrees(
        r#"
        1 tasks.create {"name":"a","schemas":{"method":"free"},"params":{"deadline":"2020-01-01T00:00:00Z"}}
        2 tasks.create {"name":"b","parent_id":"@1","schemas":{"method":"free"}}
        3 tasks.execute {"task_id":"@2"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_lease_outlives_a_restart_and_not_its_time() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"name":"a","schemas":{"method":"far","type":"remote"},"params":{"retry_count":1}}]}
        2 tasks.claim {"task_id":"@1"}
        3 restart
        4 advance 30000
        5 tasks.renew {"task_id":"@1","lease":"@l1-1"}
        6 advance 50000
        7 advance 10000
        8 tasks.complete {"task_id":"@1","lease":"@l1-1","output":{}}
        9 tasks.claim {"methods":["far"],"max":9}
        10 advance 1000
        11 tasks.claim {"methods":["far"],"max":9}
        12 tasks.fail {"task_id":"@1","lease":"@l2-1","error":"once"}
        13 restart
        14 tasks.fail {"task_id":"@1","lease":"@l2-1","error":"once"}
        15 tasks.fail {"task_id":"@1","lease":"@l2-1","error":"twice"}
        16 advance 5000
        17 tasks.claim {"task_id":"@1","lease_seconds":5}
        18 tasks.cancel {"task_id":"@1"}
        19 tasks.renew {"task_id":"@1","lease":"@l3-1"}
        20 tasks.complete {"task_id":"@1","lease":"@l3-1","output":{}}
        21 advance 30000
        22 tasks.renew {"task_id":"@1","lease":"@l3-1"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn no_task_waits_for_a_group_above_it() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"r"}]}]}
        2 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"g","name":"g","parent_id":"r"},{"id":"a","name":"a","parent_id":"g","schemas":{"method":"free"},"dependencies":[{"id":"x","when":"always"}]},{"id":"x","name":"x","parent_id":"r","dependencies":[{"id":"g","required":false}]}]}
        3 tasks.create {"tasks":[{"id":"r","name":"r"},{"id":"g","name":"g","parent_id":"r"},{"id":"x","name":"x","parent_id":"r","schemas":{"method":"free"},"dependencies":[{"id":"g"}]},{"id":"m","name":"m","parent_id":"r","schemas":{"method":"free"}},{"id":"c","name":"c","parent_id":"m","schemas":{"method":"free"},"dependencies":[{"id":"m"}]}]}
        4 tasks.update {"task_id":"@3x","updates":{"parent_id":"@3g"}}
        5 tasks.create {"name":"late","parent_id":"@3g","schemas":{"method":"free"},"dependencies":[{"id":"@3x"}]}
        6 tasks.update {"task_id":"@3m","updates":{"schemas":null}}
        7 tasks.copy {"task_id":"@3x","parent_id":"@3g"}
        8 tasks.update {"task_id":"@3x","updates":{"parent_id":"@3g","dependencies":[]}}
        9 tasks.copy {"task_id":"@3r","copy_children":true}
        10 tasks.execute {"task_id":"@3r"}
        11 return @3x {}
        12 tasks.cancel {"task_id":"@3r"}
        "#,
    )
    .await;
}
