//! Checks of a chain, and of changes in it.

use super::*;

fn remains(position: Position) -> Remains {
    Remains {
        position,
        recorded_at: Timestamp(1_000 + position.cast_signed()),
        flow_id: FlowId(Uuid::from_u128(1)),
        version: position,
        body: Hash([u8::try_from(position).unwrap(); 32]),
    }
}

/// Events at `from..=to`, chained.
fn chained(from: Position, to: Position) -> Vec<Step> {
    let mut hash = Hash::BEFORE_FIRST;
    let step = |position| {
        let remains = remains(position);
        hash = hash.link(position, remains.recorded_at, remains.content());
        Step::Event {
            remains,
            stored: Some(hash),
        }
    };
    (from..=to).map(step).collect()
}

fn faults(chain: &mut Chain, steps: &[Step]) -> Vec<(Position, String)> {
    let told = steps
        .iter()
        .filter_map(|s| Some((s.position(), chain.step(s).err()?)));
    told.collect()
}

fn mark(step: &Step) -> Mark {
    match step {
        Step::Event {
            remains,
            stored: Some(hash),
        } => Mark {
            position: remains.position,
            hash: *hash,
        },
        Step::Event { stored: None, .. } | Step::Dropped(_) | Step::Damaged(_) => {
            panic!("it has no hash")
        }
    }
}

#[test]
fn a_chain_begins_behind_events_without_hashes_and_goes_over_dropped_ones() {
    let mut steps: Vec<_> = (1..=2)
        .map(|p| Step::Event {
            remains: remains(p),
            stored: None,
        })
        .collect();
    steps.extend(chained(3, 8));
    let head = mark(&steps[7]);
    for dropped in [2, 4, 5] {
        steps[dropped] = Step::Dropped(remains(dropped as Position + 1));
    }
    // What was dropped before the chain has left nothing.
    steps.remove(1);
    let mut chain = Chain::with(Some(head));

    assert_eq!(faults(&mut chain, &steps), []);
    assert_eq!(chain.finish(), Ok(()));
    assert_eq!(chain.followed(), Some(Followed { from: 3, head }));
}

#[test]
fn what_was_changed_is_told_once_where_it_was() {
    let changes: [fn(&mut Vec<Step>); 6] = [
        |steps| {
            // A dropped event is given to another flow.
            let flow_id = FlowId(Uuid::from_u128(2));
            steps[1] = Step::Dropped(Remains {
                flow_id,
                ..remains(2)
            });
        },
        |steps| {
            if let Step::Event { remains, .. } = &mut steps[2] {
                remains.body = Hash([99; 32]);
            }
        },
        |steps| {
            if let Step::Event { remains, .. } = &mut steps[2] {
                remains.recorded_at = Timestamp(0);
            }
        },
        |steps| {
            if let Step::Event { stored, .. } = &mut steps[2] {
                *stored = None;
            }
        },
        |steps| {
            let mut remains = remains(2);
            remains.body = Hash([99; 32]);
            steps[1] = Step::Dropped(remains);
        },
        |steps| {
            steps.remove(1);
        },
    ];
    for change in changes {
        let mut steps = chained(1, 5);
        change(&mut steps);
        let told = faults(&mut Chain::default(), &steps);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, 3, "{told:?}");
    }
}

#[test]
fn a_log_that_was_forged_from_its_beginning_is_found_by_a_hash_that_was_kept() {
    let kept = mark(&chained(1, 5)[3]);
    let first = Remains {
        body: Hash([99; 32]),
        ..remains(1)
    };
    let mut hash = Hash::BEFORE_FIRST.link(1, first.recorded_at, first.content());
    let mut forged = vec![Step::Dropped(first)];
    for position in 2..=5 {
        let remains = remains(position);
        hash = hash.link(position, remains.recorded_at, remains.content());
        forged.push(Step::Event {
            remains,
            stored: Some(hash),
        });
    }
    assert_eq!(faults(&mut Chain::default(), &forged), []);

    let told = faults(&mut Chain::with(Some(kept)), &forged);

    assert_eq!(told.len(), 1);
    assert!(told[0].1.contains("was changed here or before"), "{told:?}");
}

#[test]
fn a_kept_hash_behind_the_end_or_before_the_chain_is_told() {
    let kept = mark(&chained(1, 5)[4]);
    let mut cut = Chain::with(Some(kept));
    faults(&mut cut, &chained(1, 3));
    assert!(cut.finish().unwrap_err().contains("its end is missing"));
    let mut late = Chain::with(Some(kept));
    faults(&mut late, &chained(6, 7));
    let told = late.finish().unwrap_err();
    assert!(told.contains("begins at position 6"), "{told}");
}

#[test]
fn a_damaged_row_hides_the_hash_and_the_next_is_taken_as_it_stands() {
    let mut steps = chained(1, 5);
    let head = mark(&steps[4]);
    steps[1] = Step::Damaged(2);
    let mut chain = Chain::default();
    assert_eq!(faults(&mut chain, &steps), []);
    assert_eq!(chain.followed(), Some(Followed { from: 1, head }));
}

#[test]
fn marks_are_read_as_they_are_written_and_refused_with_the_reason() {
    let kept = mark(&chained(1, 1)[0]);
    assert_eq!(kept.to_string().parse(), Ok(kept));
    for (text, reason) in [
        ("12", "has no `@`"),
        ("12@1", "expected 64 hexadecimal digits"),
        (&format!("{}@0", kept.hash), "from 1 on"),
    ] {
        let told = text.parse::<Mark>().unwrap_err();
        assert!(told.contains(reason), "{told}");
    }
}
