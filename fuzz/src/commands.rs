//! Bytes as a sequence of commands on a flow, watched by the naive model of the domain's property
//! tests: a refusal changes nothing, every event is allowed, nothing that could happen is left
//! undone, and replay, snapshot and rebuilt indexes give the same state. At the end every run ends.
//!
//! Each step is one byte for its kind and the bytes of its arguments; what is missing reads as 0,
//! so every file means something and every cut of it too.

#[path = "../../domain/tests/properties/model.rs"]
mod model;
#[path = "../../domain/tests/properties/outside.rs"]
mod outside;
#[path = "../../domain/tests/properties/steps.rs"]
mod steps;
#[path = "../../domain/tests/properties/world.rs"]
mod world;

use steps::{Draft, Step};
use world::World;

/// More make a run slow and show nothing new: a flow of the model holds few tasks.
const STEPS_MAX: usize = 100;
/// Tasks of one `Step::Create`.
const DRAFTS_MAX: u8 = 7;
/// The kind of a task that workers claim; all others are below it.
const REMOTE: u8 = 11;
/// Dependencies of one task.
const DEPENDENCIES_MAX: u8 = 4;

/// Takes every step that `bytes` spell.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    let mut reader = Reader { rest: bytes };
    let outcomes: Vec<bool> = (0..16)
        .map(|bit| reader.peek(bit / 8) >> (bit % 8) & 1 == 1)
        .collect();
    reader.byte();
    reader.byte();
    let mut world = World::default();
    for _ in 0..STEPS_MAX {
        if reader.rest.is_empty() {
            break;
        }
        world.take(&reader.step());
    }
    world.check_full_replay();
    world.drive_to_the_end(&outcomes);
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn peek(&self, at: usize) -> u8 {
        self.rest.get(at).copied().unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        let (first, rest) = self
            .rest
            .split_first()
            .map_or((0, &[][..]), |(b, r)| (*b, r));
        self.rest = rest;
        first
    }

    /// 0 to `below` - 1.
    fn below(&mut self, below: u8) -> u8 {
        self.byte() % below
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True for one byte in eight.
    fn seldom(&mut self) -> bool {
        self.byte() >= 0xE0
    }

    fn dependencies(&mut self) -> Vec<(u8, bool)> {
        let count = self.below(DEPENDENCIES_MAX + 1);
        (0..count).map(|_| (self.byte(), self.flag())).collect()
    }

    fn deadline(&mut self) -> Option<u8> {
        self.seldom().then(|| self.below(40))
    }

    fn draft(&mut self) -> Draft {
        let mut draft = Draft {
            parent: self.byte(),
            kind: match self.byte() {
                0xF8..=0xFF => REMOTE,
                byte => byte % REMOTE,
            },
            dependencies: self.dependencies(),
            priority: self.below(4),
            deadline: self.deadline(),
            attempts: self.byte(),
            timer: None,
        };
        // The high values of the byte, so that inputs from before there were timers mean the same.
        draft.timer = draft.attempts.checked_sub(0xE0);
        draft.attempts %= 4;
        draft
    }

    fn step(&mut self) -> Step {
        match self.below(18) {
            0 => {
                let count = 1 + self.below(DRAFTS_MAX);
                Step::Create((0..count).map(|_| self.draft()).collect())
            }
            1 => Step::Execute {
                task: self.byte(),
                unknown: !self.seldom(),
                wait: self.below(30),
                retry: self.seldom(),
            },
            2 => Step::Rename(self.byte()),
            3 => Step::Reprioritize(self.byte(), self.below(4)),
            4 => Step::Rewire(self.byte(), self.dependencies()),
            5 => Step::Move(self.byte(), self.byte()),
            6 => Step::ChangeUser(self.byte(), self.below(3)),
            7 => Step::ChangeKind(self.byte(), self.below(11)),
            8 => Step::ChangeDeadline(self.byte(), self.deadline()),
            9 => Step::Delete(self.byte(), self.flag()),
            10 => Step::Cancel(self.byte(), self.flag()),
            11 => Step::Complete(self.byte(), self.seldom()),
            12 => Step::Fail(self.byte(), self.seldom(), self.byte()),
            13 => Step::Report(self.byte(), self.seldom(), self.byte()),
            14 => Step::Recover(self.byte()),
            15 => Step::Wait(self.below(20)),
            16 => Step::Slots(self.below(6)),
            _ => match self.byte() {
                byte @ 0..0xA8 => Step::Ghost(byte & 1 == 1),
                0xA8..0xB0 => Step::Append(self.byte(), self.seldom(), self.below(4)),
                0xB0..0xC0 => Step::ChangeTimer(self.byte(), self.seldom().then(|| self.below(30))),
                0xC0..0xE0 => Step::Claim(self.byte(), self.seldom().then(|| self.below(20))),
                0xE0..0xF0 => Step::Release(self.byte(), self.seldom()),
                0xF0..0xF8 => Step::EndLease(self.byte(), self.seldom()),
                0xF8..0xFA => Step::Ask(self.byte(), self.seldom(), self.byte()),
                0xFA..0xFC => Step::Answer(self.byte(), self.seldom(), self.byte()),
                0xFC..0xFE => Step::Reject(self.byte(), self.seldom(), self.below(3)),
                0xFE => Step::Say(self.byte(), self.seldom(), self.byte()),
                0xFF => match self.flag() {
                    true => Step::CancelRun(self.byte()),
                    false => Step::Relabel(self.byte(), self.below(3)),
                },
            },
        }
    }
}
