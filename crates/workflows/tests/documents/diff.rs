//! Differences between two versions.

use super::{document, sound};
use taskledger_workflows::limits::CHANGES_MAX;
use taskledger_workflows::{Change, ChangeKind, Diff};

fn diff(before: &str, after: &str) -> Diff {
    sound(&document(before)).diff(&sound(&document(after)))
}

/// `!path kind: reason` of each change that breaks somebody, `path kind` of the others.
fn told(diff: &Diff) -> Vec<String> {
    let one = |it: &Change| match it.breaking {
        Some(reason) => format!("!{} {}: {reason}", it.path, it.kind.as_str()),
        None => format!("{} {}", it.path, it.kind.as_str()),
    };
    diff.changes.iter().map(one).collect()
}

const BASE: &str = "  a: {assign: x, inputs: {q: $trigger.q}, outputs: {n: number, s: {type: string, required: false}}}\n  b: {assign: y, depends_on: [a], inputs: {n: {from: a.n, type: number}}}\n";

#[test]
fn a_version_is_not_different_from_itself_however_its_types_are_written() {
    assert_eq!(diff(BASE, BASE).count, 0);
    let other = BASE.replace("n: number,", "n: \"integer|number\",");
    assert_eq!(told(&diff(BASE, &other)), [] as [String; 0]);
}

#[test]
fn what_breaks_nobody_is_told_last() {
    let after = format!("{BASE}  c: {{assign: z, depends_on: [b]}}\n")
        .replace("assign: y", "title: Why, assign: z")
        .replace(
            "required: false}",
            "required: false}, extra: {type: any, required: false}",
        );
    assert_eq!(
        told(&diff(BASE, &after)),
        [
            "!workflow.b.assign changed: other workers are needed",
            "workflow.a.outputs.extra added",
            "workflow.b.title changed",
            "workflow.c added",
        ]
    );
}

#[test]
fn callers_break_when_runs_need_more_of_them() {
    let required = BASE.replace(
        "n: {from: a.n, type: number}",
        "n: {from: a.n, type: number}, r: $trigger.r",
    );
    assert_eq!(
        told(&diff(BASE, &required)),
        ["!workflow.b.inputs.r added: runs that were started without it wait for it",]
    );
    for harmless in [
        "{from: $trigger.r, required: false}",
        "{from: $trigger.r, default: 1}",
        "$trigger.q",
    ] {
        let after = required.replace("$trigger.r", harmless);
        assert_eq!(
            told(&diff(BASE, &after)),
            ["workflow.b.inputs.r added"],
            "{harmless}"
        );
    }
    let deeper = BASE.replace("q: $trigger.q", "q: \"$trigger.q#/a\"");
    assert_eq!(
        told(&diff(BASE, &deeper)),
        ["!workflow.a.inputs.q.from changed: runs that were started without it wait for it"]
    );
    let typed =
        format!("{BASE}  c: {{assign: z, inputs: {{q: {{from: $trigger.q, type: string}}}}}}\n");
    assert_eq!(
        told(&diff(BASE, &typed)),
        ["!workflow.c added: triggers that were accepted may be refused"]
    );
    let skipped = BASE.replace("assign: x", "assign: x, skip_when: $trigger.fast");
    assert_eq!(
        told(&diff(
            BASE,
            &skipped.replace("n: {from: a.n", "n: {default: 0, from: a.n")
        )),
        [
            "!workflow.a.skip_when added: it may be left out of runs that had it",
            "workflow.b.inputs.n.default added",
        ]
    );
    assert_eq!(
        told(&diff(&skipped, BASE)),
        ["workflow.a.skip_when removed"]
    );
    let narrow = BASE.replace("q: $trigger.q", "q: {from: $trigger.q, type: string}");
    assert_eq!(
        told(&diff(BASE, &narrow)),
        ["!workflow.a.inputs.q.type changed: triggers that were accepted may be refused"]
    );
}

#[test]
fn workers_and_readers_break_when_types_change_either_way() {
    let change = |from: &str, to: &str| {
        assert!(BASE.contains(from), "{from}");
        told(&diff(BASE, &BASE.replace(from, to)))
    };
    assert_eq!(
        change("outputs: {n: number", "outputs: {n: integer"),
        ["!workflow.a.outputs.n changed: outputs that were accepted may be refused"]
    );
    assert_eq!(
        change("outputs: {n: number", "outputs: {n: any"),
        ["!workflow.a.outputs.n changed: readers may find values of other types"]
    );
    assert_eq!(
        change("s: {type: string, required: false}", "s: string"),
        ["!workflow.a.outputs.s.required changed: workers must give it"]
    );
    assert_eq!(
        change("n: number, ", "n: {type: number, required: false}, "),
        ["!workflow.a.outputs.n.required changed: readers may not find it"]
    );
    assert_eq!(
        change(", s: {type: string, required: false}", ""),
        ["!workflow.a.outputs.s removed: readers may not find it"]
    );
    assert_eq!(
        change("outputs: {n: number", "outputs: {t: string, n: number"),
        ["!workflow.a.outputs.t added: workers must give it"]
    );
    assert_eq!(
        change("{from: a.n, type: number}", "{from: a.n, required: false}"),
        [
            "!workflow.b.inputs.n.required changed: workers may not get it",
            "!workflow.b.inputs.n.type changed: workers may get values of other types",
        ]
    );
    assert_eq!(
        change(
            "{n: {from: a.n, type: number}}",
            "{m: {from: a.n, type: number}}"
        ),
        [
            "!workflow.b.inputs.n removed: workers do not get it any more",
            "workflow.b.inputs.m added",
        ]
    );
}

#[test]
fn a_phase_that_is_gone_and_another_depth_of_checks_are_told() {
    let after = "  a: {assign: x, inputs: {q: $trigger.q}, outputs: {n: number, s: {type: string, required: false}}, retry: {max_attempts: 2}}\nvalidation: shallow\n";
    let found = diff(BASE, after);
    assert_eq!(
        told(&found),
        [
            "!validation changed: members of outputs are not checked",
            "!workflow.b removed: its results are gone, and its workers get nothing more",
            "workflow.a.retry added",
        ]
    );
    let retry = &found.changes[2];
    assert_eq!((retry.kind, &retry.before), (ChangeKind::Added, &None));
    assert!(
        retry
            .after
            .as_ref()
            .is_some_and(|text| text.contains("max_attempts"))
    );
}

#[test]
fn a_diff_is_bounded_and_counts_what_it_leaves_out() {
    let phases = |assign: &str| -> String {
        let lines = (0..CHANGES_MAX + 5)
            .map(|i| format!("  p{i}: {{title: {assign}, assign: {assign}}}\n"));
        lines.collect()
    };
    let found = diff(&phases("x"), &phases("y"));
    assert_eq!(found.changes.len(), CHANGES_MAX);
    assert_eq!(
        (found.count, found.breaking),
        (2 * (CHANGES_MAX + 5), CHANGES_MAX + 5)
    );
    assert!(found.changes.iter().all(|it| it.breaking.is_some()));
}
