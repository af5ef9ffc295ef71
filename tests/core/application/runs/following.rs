//! Following a run, and waiting for it.

use super::*;

/// A run that asks and goes on to its end.
async fn goes_on(b: &Broker, run: RunId) {
    asks(b, &b.claim("a").await, json!({"question": "First?"})).await;
    asks(
        b,
        &b.claim("b").await,
        json!({"question": "Second?", "asks": "auth"}),
    )
    .await;
    says(b, message(run, "m", "one")).await.unwrap();
    says(b, message(run, "n", "two")).await.unwrap();
    b.complete(&b.claim("b").await, json!({"n": 2}))
        .await
        .unwrap();
    b.complete(&b.claim("a").await, json!({"n": 1}))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stream_begins_at_a_snapshot_and_tells_everything_behind_it_once() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let first = watched(&b, follows(run)).await;
    assert_eq!(
        first.snapshot.as_ref().map(|it| it.status.stage),
        Some(RunStage::Working)
    );
    goes_on(&b, run).await;
    let told = rest(first).await;
    assert_eq!(
        stages(&told),
        [
            RunStage::InputRequired,
            RunStage::AuthRequired,
            RunStage::Working,
            RunStage::Completed
        ]
    );
    let results = told.iter().filter_map(|update| match &update.change {
        RunChange::Artifact(it) => Some((it.artifact.name.to_string(), it.artifact.is_result)),
        RunChange::Status(_) | RunChange::Node(_) => None,
    });
    let results: Vec<_> = results.collect();
    let expected = [("b", false), ("a", false), ("r", true)].map(|(n, is)| (n.to_owned(), is));
    assert_eq!(results, expected);
    assert!(matches!(
        told.last().map(|it| &it.change),
        Some(RunChange::Status(_))
    ));
    // when: it goes on behind each of its places, on the next server, whose stores are opened in real time
    tokio::time::resume();
    let mut w = b.w.restarted().await;
    w.run_read_models();
    let b = Broker::over(w).await.run().await;
    for (at, update) in told.iter().enumerate() {
        let watch = WatchRun {
            behind: Some(Arc::from(update.cursor.to_string())),
            ..follows(run)
        };
        let again = watched(&b, watch).await;
        assert!(again.snapshot.is_none() && again.reset.is_none());
        assert_eq!(rest(again).await, told[at + 1..], "behind update {at}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_behind_its_snapshot() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let first = watched(&b, follows(run)).await;
    let place = first.cursor.to_string();
    goes_on(&b, run).await;
    let watch = WatchRun {
        behind: Some(Arc::from(place)),
        ..follows(run)
    };
    let again = watched(&b, watch).await;
    assert!(again.snapshot.is_none());
    assert_eq!(rest(again).await, rest(first).await);
}

#[tokio::test]
async fn a_place_that_is_none_begins_at_a_snapshot_and_says_so() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let watch = WatchRun {
        behind: Some(Arc::from("nowhere")),
        ..follows(run)
    };
    let begun = watched(&b, watch).await;
    assert!(begun.snapshot.is_some() && begun.reset.is_some());
}

#[tokio::test]
async fn a_stream_may_end_where_input_is_needed_and_goes_on_where_credentials_are() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let watch = || WatchRun {
        until: RunUntil::EndedOrInput,
        nodes: false,
        ..follows(run)
    };
    let stream = watched(&b, watch()).await;
    asks(
        &b,
        &b.claim("a").await,
        json!({"question": "Key?", "asks": "auth"}),
    )
    .await;
    says(&b, message(run, "m", "done")).await.unwrap();
    asks(&b, &b.claim("a").await, json!({"question": "Where?"})).await;
    let told = stages(&rest(stream).await);
    assert_eq!(
        told,
        [
            RunStage::AuthRequired,
            RunStage::Working,
            RunStage::InputRequired
        ]
    );
    let waiting = watched(&b, watch()).await;
    assert_eq!(rest(waiting).await, [], "it waits already");
}

#[tokio::test]
async fn a_run_that_has_ended_is_a_snapshot_alone() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    goes_on(&b, run).await;
    let ended = watched(&b, follows(run)).await;
    let stage = ended.snapshot.as_ref().map(|it| it.status.stage);
    assert_eq!(stage, Some(RunStage::Completed));
    assert_eq!(rest(ended).await, []);
}

#[tokio::test]
async fn whoever_waits_is_answered_at_a_question_and_at_the_end() {
    let b = served().await;
    let run = begun(&b, &caller()).await.run;
    let waits = || {
        let service = b.service.clone();
        let wait = AwaitRun {
            run,
            history: None,
            artifacts: true,
            begun: None,
        };
        tokio::spawn(async move { service.await_run(&caller(), wait).await })
    };
    let first = waits();
    quiet().await;
    assert!(!first.is_finished());
    asks(&b, &b.claim("a").await, json!({"question": "?"})).await;
    let asked = soon(first).await.unwrap().unwrap();
    assert_eq!(asked.status.stage, RunStage::InputRequired);
    says(&b, message(run, "m", "this")).await.unwrap();
    let second = waits();
    quiet().await;
    assert!(
        !second.is_finished(),
        "not for the question that is answered"
    );
    b.complete(&b.claim("a").await, json!({})).await.unwrap();
    b.complete(&b.claim("b").await, json!({})).await.unwrap();
    let ended = soon(second).await.unwrap().unwrap();
    assert_eq!(ended.status.stage, RunStage::Completed);
    assert_eq!(ended.artifacts.len(), 3);
}

#[tokio::test]
async fn whoever_has_begun_a_run_follows_it_from_its_start() {
    let b = served().await;
    let started = begun(&b, &caller()).await;
    let watch = WatchRun {
        begun: Some(started.begun),
        ..follows(started.run)
    };
    // when: it is followed only after it has ended
    goes_on(&b, started.run).await;
    let whole = watched(&b, watch).await;
    let at_start = whole.snapshot.clone().unwrap();
    assert_eq!(at_start.status.stage, RunStage::Submitted);
    assert_eq!(
        (texts(&at_start), at_start.artifacts.len()),
        (vec![json!("Go")], 0)
    );
    let told = rest(whole).await;
    let expected = [
        RunStage::Working,
        RunStage::InputRequired,
        RunStage::AuthRequired,
        RunStage::Working,
        RunStage::Completed,
    ];
    assert_eq!(stages(&told), expected);
    let watch = WatchRun {
        behind: Some(Arc::from(told[0].cursor.to_string())),
        begun: Some(started.begun),
        ..follows(started.run)
    };
    let again = watched(&b, watch).await;
    assert!(again.snapshot.is_none(), "a place comes before the start");
    assert_eq!(rest(again).await, told[1..]);
}

/// Waits for a run that it has begun, and compares what comes with what is read.
async fn waits_and_reads(artifacts: bool, history: Option<usize>) {
    let b = served().await;
    let started = begun(&b, &caller()).await;
    let wait = AwaitRun {
        run: started.run,
        history,
        artifacts,
        begun: Some(started.begun),
    };
    let service = b.service.clone();
    let waiting = tokio::spawn(async move { service.await_run(&caller(), wait).await });
    for (name, n) in [("a", 1), ("b", 2)] {
        let held = b.claim(name).await;
        b.complete(&held, json!({"n": n})).await.unwrap();
    }
    let mut waited = soon(waiting).await.unwrap().unwrap();
    let read = ReadRun {
        run: started.run,
        history,
        artifacts,
    };
    let mut read = soon(b.service.read_run(&caller(), read)).await.unwrap();
    assert_eq!(read.artifacts.len(), if artifacts { 3 } else { 0 });
    (read.position, waited.position) = (0, 0);
    assert_eq!(waited, read);
}

#[tokio::test]
async fn whoever_waits_for_what_it_has_begun_gets_what_is_read() {
    waits_and_reads(true, None).await;
}

#[tokio::test]
async fn whoever_waits_for_what_it_has_begun_gets_no_more_than_it_asks_for() {
    waits_and_reads(false, Some(0)).await;
}
