//! Lists of runs.

use super::*;

#[tokio::test]
async fn lists_show_the_newest_status_first_page_by_page() {
    let b = served().await;
    let mut runs = Vec::new();
    for n in 0..5 {
        b.w.clock.advance_ms(10);
        let context = Some(format!("context {}", n % 2));
        let from = RunOrigin {
            context,
            ..origin("Go")
        };
        let start = starts(json!([task(&format!("t{n}"), "resize")]), from);
        runs.push(
            soon(b.service.start_run(&caller(), start))
                .await
                .unwrap()
                .run,
        );
    }
    b.w.clock.advance_ms(10);
    b.complete(&b.claim("t1").await, json!({})).await.unwrap();
    let list = async |list: ListRuns| soon(b.service.list_runs(&caller(), list)).await;
    let ids = |page: &[RunView]| page.iter().map(|it| it.run).collect::<Vec<_>>();
    let newest_first = [1, 4, 3, 2, 0].map(|n: usize| runs[n]);
    let page = list(ListRuns {
        page_size: Some(2),
        ..ListRuns::default()
    });
    let page = page.await.unwrap();
    assert_eq!(
        (ids(&page.runs), page.total),
        (newest_first[..2].to_vec(), 5)
    );
    // Of what has not been shown, one changes: it is shown as it was.
    b.w.clock.advance_ms(10);
    b.complete(&b.claim("t3").await, json!({})).await.unwrap();
    let mut seen = ids(&page.runs);
    let mut next = page.next;
    while let Some(token) = next {
        let page = list(ListRuns {
            page_size: Some(2),
            page_token: Some(Arc::from(token)),
            ..ListRuns::default()
        });
        let page = page.await.unwrap();
        seen.extend(ids(&page.runs));
        next = page.next;
    }
    assert_eq!(seen, newest_first, "none twice, and none left out");
    let of_context = ListRuns {
        context: Some(Arc::from("context 1")),
        stage: Some(RunStage::Completed),
        ..ListRuns::default()
    };
    let of_context = list(of_context).await.unwrap();
    assert_eq!(ids(&of_context.runs), [runs[3], runs[1]]);
    let since = of_context.runs[0].status.at;
    let late = ListRuns {
        since: Some(since),
        ..ListRuns::default()
    };
    let late = list(late).await.unwrap();
    assert_eq!((ids(&late.runs), late.total), (vec![runs[3]], 1));
    for wrong in [
        ListRuns {
            page_size: Some(0),
            ..ListRuns::default()
        },
        ListRuns {
            page_size: Some(101),
            ..ListRuns::default()
        },
        ListRuns {
            page_token: Some(Arc::from("x")),
            ..ListRuns::default()
        },
    ] {
        assert!(matches!(refused(list(wrong).await), Refusal::Invalid(_)));
    }
}
