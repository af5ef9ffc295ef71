//! Following runs of a scripted server.

use super::*;
use crate::api::run_events::RunEvent;
use async_trait::async_trait;
use std::sync::Mutex;
use taskledger_terminal::testing::Buffer;

/// Plays a run: each `tasks.get` moves it on by one state.
#[derive(Default)]
struct Script {
    states: Mutex<Vec<Result<&'static str, ApiError>>>,
    calls: Mutex<Vec<String>>,
}

#[async_trait]
impl Api for Script {
    async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
        let id = params
            .get("task_id")
            .map(Value::to_string)
            .unwrap_or_default();
        self.calls.lock().unwrap().push(format!("{method} {id}"));
        let state = |s: &Vec<Result<&'static str, ApiError>>| s.first().cloned();
        let mut states = self.states.lock().unwrap();
        match method {
            "tasks.execute" => Ok(json!({"root_task_id": "r", "status": "started"})),
            "tasks.get" => {
                let now = if states.len() > 1 {
                    states.remove(0)
                } else {
                    state(&states).unwrap()
                };
                now.map(|state| json!({"id": "r", "status": "pending", "run": {"state": state, "counts": states.len()}}))
            }
            "tasks.tree" => {
                let status = match state(&states) {
                    Some(Ok("running")) => "in_progress",
                    Some(Ok(state)) => state,
                    Some(Err(_)) | None => "pending",
                };
                Ok(json!({"task": {"id": "r", "name": "root", "status": status}, "children": []}))
            }
            _ => Ok(Value::Null),
        }
    }
}

struct Played {
    end: Result<End, CliError>,
    shown: String,
    calls: Vec<String>,
}

async fn play(
    states: Vec<Result<&'static str, ApiError>>,
    interrupts: usize,
    params: Value,
    json: bool,
) -> Played {
    let script = Script {
        states: Mutex::new(states),
        ..Script::default()
    };
    let (sender, receiver) = mpsc::channel(2);
    for _ in 0..interrupts {
        sender.send(()).await.unwrap();
    }
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), json, false);
    let follow = Follow {
        api: &script,
        pace: Pace {
            first: Duration::ZERO,
            longest: Duration::ZERO,
            lost_max: Duration::from_secs(1),
        },
        interrupts: receiver,
        screen: Screen::for_output(&out),
        clock: crate::clock(),
    };
    let params = params.as_object().unwrap().clone();
    let end = follow.begin("tasks.execute", params, &mut out).await;
    let shown = buffer.text();
    let calls = script.calls.lock().unwrap().clone();
    Played { end, shown, calls }
}

#[tokio::test]
async fn a_pipe_gets_a_line_for_each_change_and_the_final_tree() {
    let states = vec![Ok("running"), Ok("running"), Ok("completed")];
    let played = play(states, 0, json!({"tasks": []}), false).await;
    assert_eq!(played.end.unwrap(), End::Completed);
    assert_eq!(
        played.shown,
        "flow r\n▸ root  in_progress  (r)\n✓ root  completed  (r)\n✓ root  completed\n"
    );
}

#[tokio::test]
async fn a_program_gets_only_the_final_tree() {
    let played = play(
        vec![Ok("running"), Ok("failed")],
        0,
        json!({"tasks": []}),
        true,
    )
    .await;
    assert_eq!(played.end.unwrap(), End::Failed);
    assert_eq!(
        serde_json::from_str::<Value>(&played.shown).unwrap()["task"]["status"],
        "failed"
    );
}

#[tokio::test]
async fn a_stored_task_is_followed_itself_and_not_the_root_of_its_flow() {
    let played = play(vec![Ok("completed")], 0, json!({"task_id": "t"}), false).await;
    assert_eq!(
        played.calls,
        ["tasks.execute \"t\"", "tasks.get \"t\"", "tasks.tree \"t\""]
    );
}

#[tokio::test]
async fn a_failure_that_passes_is_survived_and_one_that_stays_is_not() {
    let lost = || Err(ApiError::Connection("lost".to_owned()));
    let states = vec![lost(), lost(), Ok("running"), lost(), Ok("cancelled")];
    let played = play(states, 0, json!({"tasks": []}), false).await;
    assert_eq!(played.end.unwrap(), End::Cancelled);
    let played = play(vec![lost()], 0, json!({"tasks": []}), false).await;
    assert!(matches!(
        played.end,
        Err(CliError::Api(ApiError::Connection(_)))
    ));
}

/// A server whose run goes on and whose trees do not come.
struct Stuck;

#[async_trait]
impl Api for Stuck {
    async fn call(&self, method: &str, _params: Value) -> Result<Value, ApiError> {
        match method {
            "tasks.execute" => Ok(json!({"root_task_id": "r"})),
            "tasks.get" => Ok(json!({"id": "r", "run": {"state": "running"}})),
            "tasks.tree" => std::future::pending().await,
            _ => Ok(Value::Null),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_does_not_wait_for_a_server_that_is_asked_why_nothing_runs() {
    let (sender, interrupts) = mpsc::channel(2);
    let mut out = Output::to(Box::new(Buffer::default()), true, false);
    let follow = Follow {
        api: &Stuck,
        pace: Pace::default(),
        interrupts,
        screen: Screen::for_output(&out),
        clock: crate::clock(),
    };
    let begun = Instant::now();
    let pressed = async {
        // In the middle of the look.
        tokio::time::sleep(QUIET + Duration::from_secs(1)).await;
        sender.send(()).await.unwrap();
        sender.send(()).await.unwrap();
    };
    let params = json!({"tasks": []}).as_object().unwrap().clone();
    let (end, ()) = tokio::join!(follow.begin("tasks.execute", params, &mut out), pressed);
    assert_eq!(end.unwrap(), End::Cancelled);
    assert!(begun.elapsed() < QUIET + Duration::from_millis(1_100));
}

#[tokio::test]
async fn an_interrupt_cancels_once_and_a_second_one_leaves() {
    let played = play(vec![Ok("running")], 2, json!({"tasks": []}), false).await;
    assert_eq!(played.end.unwrap(), End::Cancelled);
    let cancels = played
        .calls
        .iter()
        .filter(|call| call.starts_with("tasks.cancel"));
    assert_eq!(cancels.count(), 1);
}

/// A server that tells this of a run, and nothing more.
struct Telling(Mutex<Vec<News>>, bool);

struct Told(Vec<News>);

#[async_trait]
impl RunEvents for Told {
    async fn next(&mut self) -> Result<Option<News>, ApiError> {
        match self.0.is_empty() {
            true => std::future::pending().await,
            false => Ok(Some(self.0.remove(0))),
        }
    }
}

#[async_trait]
impl Api for Telling {
    async fn call(&self, method: &str, _params: Value) -> Result<Value, ApiError> {
        assert_eq!(method, "tasks.tree", "it is told and need not ask");
        let left = json!({"id": "s", "name": "after", "status": "pending", "skipped": true});
        Ok(
            json!({"task": {"id": "r", "name": "root", "status": "failed"}, "children": [{"task": left}]}),
        )
    }

    async fn begin(&self, _method: &str, _params: Value) -> Result<Begun, ApiError> {
        let told = std::mem::take(&mut *self.0.lock().unwrap());
        Ok(Begun {
            answer: json!({"root_task_id": "r"}),
            events: Some(Box::new(Told(told))),
        })
    }

    fn is_in_process(&self) -> bool {
        self.1
    }

    fn options(&self) -> &str {
        " --url http://h:1"
    }
}

async fn told(news: Vec<News>) -> (Result<End, CliError>, String) {
    told_by(news, false).await
}

async fn told_by(news: Vec<News>, is_in_process: bool) -> (Result<End, CliError>, String) {
    told_of(news, is_in_process, json!({"tasks": []})).await
}

async fn told_of(
    news: Vec<News>,
    is_in_process: bool,
    params: Value,
) -> (Result<End, CliError>, String) {
    let api = Telling(Mutex::new(news), is_in_process);
    let (_sender, interrupts) = mpsc::channel(2);
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), false, false);
    out.calls_with(api.options().to_owned());
    let follow = Follow {
        api: &api,
        pace: Pace::default(),
        interrupts,
        screen: Screen::for_output(&out),
        clock: crate::clock(),
    };
    let params = params.as_object().unwrap().clone();
    let end = follow.begin("tasks.execute", params, &mut out).await;
    (end, buffer.text())
}

fn happened(name: &str, data: Value) -> News {
    News::Event(RunEvent {
        name: name.to_owned(),
        data,
    })
}

#[tokio::test(start_paused = true)]
async fn a_pipe_gets_each_change_as_it_happens_and_what_was_skipped_behind_them() {
    let update = |status| json!({"task_id": "r", "name": "root", "status": status});
    let run = json!({"id": "x", "state": "failed"});
    let last = json!({"task_id": "r", "status": "failed", "final": true, "run": run});
    let (end, shown) = told(vec![
        happened("task_status_update", update("in_progress")),
        News::Lost("gone".to_owned()),
        News::Found,
        happened("task_failed", update("failed")),
        happened("task_status_update", last),
    ])
    .await;
    assert_eq!(end.unwrap(), End::Failed);
    assert_eq!(
        shown,
        "flow r\n▸ root  in_progress  (r)\n✗ root  failed  (r)\n○ after  skipped  (s)\n\
         ✗ root  failed\n└─ ○ after  skipped\n"
    );
}

#[tokio::test(start_paused = true)]
async fn who_loses_a_server_for_good_is_told_that_the_run_goes_on_and_how_to_follow_it() {
    let (end, _) = told(vec![News::Lost("cannot reach it".to_owned())]).await;
    let said = end.unwrap_err().to_string();
    assert!(said.starts_with("cannot reach it\n"), "{said}");
    assert!(
        said.contains("the flow r continues")
            && said.ends_with("taskledger watch r --url http://h:1"),
        "{said}"
    );
}

/// A server that tells how a run has ended and stops: the tree does not come before so many questions.
struct Stops {
    told: Mutex<Vec<News>>,
    unanswered: Mutex<u32>,
    error: ApiError,
    is_in_process: bool,
}

#[async_trait]
impl Api for Stops {
    async fn call(&self, method: &str, _params: Value) -> Result<Value, ApiError> {
        match method {
            "tasks.execute" => Ok(json!({"root_task_id": "r"})),
            "tasks.get" => Ok(json!({"id": "r", "run": {"state": "completed"}})),
            "tasks.tree" => {
                let mut left = self.unanswered.lock().unwrap();
                if *left > 0 {
                    *left -= 1;
                    return Err(self.error.clone());
                }
                Ok(json!({"task": {"id": "r", "name": "root", "status": "completed"}}))
            }
            _ => Ok(Value::Null),
        }
    }

    async fn begin(&self, _method: &str, _params: Value) -> Result<Begun, ApiError> {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        Ok(Begun {
            answer: json!({"root_task_id": "r"}),
            events: Some(Box::new(Told(told))),
        })
    }

    fn is_in_process(&self) -> bool {
        self.is_in_process
    }
}

async fn stops(
    state: &str,
    unanswered: u32,
    error: ApiError,
    json: bool,
    is_in_process: bool,
) -> (Result<End, CliError>, String, Duration) {
    let update = json!({"task_id": "r", "name": "root", "status": state});
    let last = json!({"task_id": "r", "status": state, "final": true, "run": {"state": state}});
    let api = Stops {
        told: Mutex::new(vec![
            happened(&format!("task_{state}"), update),
            happened("task_status_update", last),
        ]),
        unanswered: Mutex::new(unanswered),
        error,
        is_in_process,
    };
    let (_sender, interrupts) = mpsc::channel(2);
    let buffer = Buffer::default();
    let mut out = Output::to(Box::new(buffer.clone()), json, false);
    let follow = Follow {
        api: &api,
        pace: Pace::default(),
        interrupts,
        screen: Screen::for_output(&out),
        clock: crate::clock(),
    };
    let begun = Instant::now();
    let params = json!({"tasks": []}).as_object().unwrap().clone();
    let end = follow.begin("tasks.execute", params, &mut out).await;
    (end, buffer.text(), begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_end_is_known_has_ended_so_when_the_server_stops_right_behind_it() {
    let lost = || ApiError::Connection("cannot reach it".to_owned());
    for (state, expected) in [
        ("completed", End::Completed),
        ("failed", End::Failed),
        ("cancelled", End::Cancelled),
    ] {
        let (end, shown, took) = stops(state, u32::MAX, lost(), false, false).await;
        assert_eq!(end.unwrap(), expected);
        assert!(shown.starts_with("flow r\n"), "{shown}");
        assert!(shown.contains(&format!("root  {state}  (r)")), "{shown}");
        let lost_max = Pace::default().lost_max;
        assert!(took >= lost_max && took < lost_max * 2, "{took:?}");
    }
    // A program is given what is known.
    let (end, shown, _) = stops("completed", u32::MAX, lost(), true, false).await;
    assert_eq!(end.unwrap(), End::Completed);
    let value: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(value["task"]["run"]["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_comes_when_the_server_is_back_is_shown() {
    let lost = ApiError::Connection("cannot reach it".to_owned());
    let (end, shown, _) = stops("completed", 3, lost, false, false).await;
    assert_eq!(end.unwrap(), End::Completed);
    assert!(shown.ends_with("(r)\n✓ root  completed\n"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_cannot_come_is_asked_for_once() {
    let lost = ApiError::Connection("the engine has stopped".to_owned());
    let denied = ApiError::Denied {
        status: 401,
        text: "expired".to_owned(),
    };
    for (error, is_in_process) in [(lost, true), (denied, false)] {
        let (end, _, took) = stops("completed", u32::MAX, error, false, is_in_process).await;
        assert_eq!(end.unwrap(), End::Completed);
        assert!(took < Duration::from_millis(1), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_flow_of_a_run_of_a_child_is_that_of_its_root() {
    let last =
        json!({"task_id": "s", "status": "failed", "final": true, "run": {"state": "failed"}});
    let news = || vec![happened("task_status_update", last.clone())];
    let (end, shown) = told_of(news(), false, json!({"task_id": "s"})).await;
    assert_eq!(end.unwrap(), End::Failed);
    assert!(shown.starts_with("flow r\n"), "{shown}");

    let lost = vec![News::Lost("cannot reach it".to_owned())];
    let (end, _) = told_of(lost, false, json!({"task_id": "s"})).await;
    let said = end.unwrap_err().to_string();
    assert!(
        said.ends_with("taskledger watch r --url http://h:1"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_on_of_a_run_inside_the_process() {
    let (end, _) = told_by(vec![News::Lost("no space left".to_owned())], true).await;
    let error = end.unwrap_err();
    assert!(matches!(&error, CliError::Failed(text) if text == "no space left"));
}
