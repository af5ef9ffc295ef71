//! Scripts with wired inputs, declared outputs and questions to people, each of which shows a rule.

use crate::differential::regressions::agrees;

#[tokio::test]
async fn inputs_are_taken_from_results_by_key_pointer_and_default() {
    agrees(
        r##"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"far","type":"remote"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a"}],"inputs":{"n":1},"schemas":{"method":"far","type":"remote","wiring":{"k":"a.list#/0/k","all":"a#","n2":{"from":"a.none","default":2},"left":{"from":"a.none","required":false}}}},{"id":"c","name":"c","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"free","wiring":{"k":"a#/list/0/k"}}}]}
        2 tasks.claim {"methods":["far"]}
        3 tasks.complete {"task_id":"@1a","lease":"@l1-1a","output":{"list":[{"k":7}]}}
        4 tasks.claim {"methods":["far"]}
        5 tasks.complete {"task_id":"@1b","lease":"@l1-1b","output":{}}
        6 return @1c {}
        "##,
    )
    .await;
}

#[tokio::test]
async fn workers_are_kept_off_a_task_whose_inputs_are_not_there_until_others_are_given() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"far","type":"remote","wiring":{"n":"a.n"}}}]}
        2 return @1a {"m":3}
        3 tasks.claim {"task_id":"@1b"}
        4 tasks.claim {"methods":["far"],"max":9}
        5 restart
        6 tasks.claim {"task_id":"@1b"}
        7 tasks.update {"task_id":"@1b","updates":{"dependencies":[]}}
        8 tasks.update {"task_id":"@1b","updates":{"schemas":{"method":"far","type":"remote","wiring":{"n":"@1a:.m"}}}}
        9 tasks.claim {"task_id":"@1b"}
        10 tasks.complete {"task_id":"@1b","lease":"@l1-1b","output":{}}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_task_fails_that_is_wired_to_what_a_result_was_known_to_lack() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"far","type":"remote"},"params":{"retry_count":3}},{"id":"c","name":"c","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"free","wiring":{"n":"a.n"}},"params":{"retry_count":3}}]}
        2 return @1a {}
        3 tasks.update {"task_id":"@1b","updates":{"schemas":{"method":"far","type":"remote","wiring":{"n":"@1a:.n"}}}}
        4 tasks.claim {"methods":["far"]}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_copy_keeps_references_to_what_was_not_copied() {
    agrees(
        r#"
        1 tasks.create {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"free"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"far","type":"remote","wiring":{"n":{"from":"a.n","required":true}}}}]}
        2 tasks.copy {"task_id":"@1b"}
        3 tasks.execute {"task_id":"@2~1b"}
        4 tasks.claim {"task_id":"@2~1b"}
        5 tasks.update {"task_id":"@2~1b","updates":{"inputs":{"m":1}}}
        6 tasks.copy {"task_id":"@1b","copy_children":true}
        7 tasks.execute {"task_id":"@6~1b"}
        8 return @6~1a {"n":1}
        9 tasks.claim {"task_id":"@6~1b"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_result_that_is_not_as_declared_is_refused_to_workers_and_fails_attempts() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"far","type":"remote","outputs":{"n":"integer","s":{"type":"string?","required":false}}}},{"id":"b","name":"b","parent_id":"r","schemas":{"method":"free","outputs":{"n":"number"}},"params":{"retry":{"max_attempts":2,"initial_delay_ms":0}}}]}
        2 tasks.claim {"task_id":"@1a"}
        3 tasks.complete {"task_id":"@1a","lease":"@l1-1a","output":{"s":1}}
        4 tasks.complete {"task_id":"@1a","lease":"@l1-1a","output":{"n":1,"s":1}}
        5 restart
        6 tasks.complete {"task_id":"@1a","lease":"@l1-1a","output":{"n":true}}
        7 tasks.complete {"task_id":"@1a","lease":"@l1-1a","output":{"n":1.0,"s":null,"more":[]}}
        8 return @1b {}
        9 return @1b {"n":"1"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn the_first_answer_counts_and_the_task_goes_on_with_it() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"far","type":"remote"}},{"id":"b","name":"b","parent_id":"r","dependencies":[{"id":"a"}],"schemas":{"method":"far","type":"remote","wiring":{"n":"a.n"}}}]}
        2 tasks.claim {"task_id":"@1a","lease_seconds":5}
        3 tasks.suspend {"task_id":"@1a","lease":"@l1-1a","request":{"question":"Which?","response_type":"choice","choices":[{"value":"a","label":"The first"},{"value":"b"}]}}
        4 tasks.suspend {"task_id":"@1a","lease":"@l1-1a","request":{"question":"Which?","response_type":"choice","choices":[{"value":"a","label":"The first"},{"value":"b"}]}}
        5 tasks.renew {"task_id":"@1a","lease":"@l1-1a"}
        6 advance 60000
        7 restart
        8 tasks.list {"suspended":true}
        9 tasks.claim {"task_id":"@1b"}
        10 tasks.respond {"task_id":"@1a","suspension_id":"@q1-1a","value":"c"}
        11 tasks.respond {"task_id":"@1a","suspension_id":"@nobody","value":"a"}
        12 tasks.respond {"task_id":"@1a","suspension_id":"@q1-1a","value":"a"}
        13 tasks.respond {"task_id":"@1a","suspension_id":"@q1-1a","value":"b"}
        14 tasks.claim {"task_id":"@1a"}
        15 tasks.respond {"task_id":"@1a","suspension_id":"@q1-1a","value":"a"}
        16 tasks.suspend {"task_id":"@1a","lease":"@l2-1a","request":{"question":"Why?"}}
        17 tasks.respond {"task_id":"@1a","suspension_id":"@q2-1a","value":"so"}
        18 tasks.claim {"task_id":"@1a"}
        19 tasks.complete {"task_id":"@1a","lease":"@l3-1a","output":{"n":1}}
        20 tasks.claim {"task_id":"@1b"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_wait_ends_with_its_time_or_with_its_task() {
    agrees(
        r#"
        1 tasks.execute {"tasks":[{"id":"r","name":"r"},{"id":"a","name":"a","parent_id":"r","schemas":{"method":"far","type":"remote"}},{"id":"b","name":"b","parent_id":"r","schemas":{"method":"far","type":"remote","outputs":{"n":"integer"}}},{"id":"c","name":"c","parent_id":"r","schemas":{"method":"far","type":"remote"},"params":{"retry_count":2}},{"id":"d","name":"d","parent_id":"r","schemas":{"method":"far","type":"remote"}}]}
        2 tasks.claim {"methods":["far"],"max":9}
        3 tasks.suspend {"task_id":"@1a","lease":"@l1-1a","request":{"question":"Go?","response_type":"confirm","timeout_seconds":3,"fallback_policy":"use_default_and_continue","fallback_value":true}}
        4 tasks.suspend {"task_id":"@1b","lease":"@l1-1b","request":{"question":"Go?","timeout_seconds":3,"fallback_policy":"complete_with_fallback","fallback_value":{}}}
        5 tasks.suspend {"task_id":"@1b","lease":"@l1-1b","request":{"question":"Go?","timeout_seconds":3,"fallback_policy":"complete_with_fallback","fallback_value":{"n":1}}}
        6 tasks.suspend {"task_id":"@1c","lease":"@l1-1c","request":{"question":"Go?","timeout_seconds":3}}
        7 tasks.suspend {"task_id":"@1d","lease":"@l1-1d","request":{"question":"Go?"}}
        8 advance 2000
        9 restart
        10 advance 5000
        11 tasks.respond {"task_id":"@1a","suspension_id":"@q1-1a","value":true}
        12 tasks.claim {"task_id":"@1a"}
        13 tasks.complete {"task_id":"@1a","lease":"@l2-1a","output":{}}
        14 tasks.cancel {"task_id":"@1d"}
        15 tasks.respond {"task_id":"@1d","suspension_id":"@q1-1d","value":"late"}
        16 tasks.suspend {"task_id":"@1d","lease":"@l1-1d","request":{"question":"Go?"}}
        17 tasks.retry {"task_id":"@1c"}
        18 tasks.claim {"task_id":"@1c"}
        "#,
    )
    .await;
}
