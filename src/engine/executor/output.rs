//! The parts of an attempt's output, on their way to the log before the attempt ends.

use crate::engine::secrets::Scrubber;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::flow::OutputPart;
use taskledger_domain::limits::{OUTPUT_BYTES_MAX, OUTPUT_PART_BYTES_MAX, OUTPUT_PARTS_MAX, cut};
use tokio::sync::Notify;

/// Where an attempt tells what it has made of its output: streams tell it, and the task shows it before its result.
/// Cheap to call at any rate, and never waits: texts that follow each other become one part. What goes beyond the
/// limits of an attempt, and everything behind that, is not recorded; the result has to say all of it anyway.
#[derive(Clone, Default)]
pub struct Output(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    parts: VecDeque<OutputPart>,
    /// The next part to be recorded, which may be recorded already.
    next: Option<OutputPart>,
    /// How many are recorded.
    recorded: u32,
    /// Bytes of all parts there ever were.
    bytes: usize,
    /// One did not fit.
    is_full: bool,
    /// The attempt has ended: nothing follows.
    is_ended: bool,
    /// What knows the secrets of the attempt.
    scrubber: Scrubber,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl Output {
    /// An output in which texts are told without secrets, those across the border of two texts included.
    #[must_use]
    pub fn without(scrubber: &Scrubber) -> Self {
        let output = Self::default();
        output.waiting().scrubber = scrubber.clone();
        output
    }

    /// Nothing more is recorded than what was added before.
    pub fn close(&self) {
        self.waiting().is_full = true;
    }

    /// The attempt has ended, so that the end of a text need not wait for what might follow.
    pub fn end(&self) {
        self.waiting().is_ended = true;
    }

    /// Adds to the output. An empty text adds nothing.
    pub fn append(&self, part: OutputPart) {
        let mut waiting = self.waiting();
        let bytes = part.bytes();
        let is_large = matches!(part, OutputPart::Data(_)) && bytes > OUTPUT_PART_BYTES_MAX;
        waiting.is_full |= is_large || waiting.bytes + bytes > OUTPUT_BYTES_MAX;
        if waiting.is_full || bytes == 0 {
            return;
        }
        waiting.bytes += bytes;
        waiting.parts.push_back(part);
        drop(waiting);
        self.0.more.notify_one();
    }

    /// The next part and its number, as soon as there is one. The same until [`Self::recorded`] is called.
    pub async fn next(&self) -> (u32, OutputPart) {
        loop {
            if let Some(next) = self.ready() {
                return next;
            }
            self.0.more.notified().await;
        }
    }

    /// The same if there is one now.
    pub fn ready(&self) -> Option<(u32, OutputPart)> {
        let mut waiting = self.waiting();
        if waiting.recorded >= OUTPUT_PARTS_MAX {
            return None;
        }
        if waiting.next.is_none() {
            waiting.next = waiting.take();
        }
        let number = waiting.recorded + 1;
        waiting.next.clone().map(|part| (number, part))
    }

    /// The next part is recorded; how many there are.
    pub fn recorded(&self) -> u32 {
        let mut waiting = self.waiting();
        if waiting.next.take().is_some() {
            waiting.recorded += 1;
        }
        waiting.recorded
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        let waiting = self.0.waiting.lock();
        waiting.expect("no code panics while it holds the parts")
    }
}

impl Waiting {
    /// Takes the secrets out of the texts at the front, and gives back how many bytes of them may be told: behind them
    /// a secret may have begun.
    fn clean(&mut self) -> usize {
        let texts = self.parts.iter();
        let texts = texts
            .take_while(|it| matches!(it, OutputPart::Text(_)))
            .count();
        let is_last = texts == self.parts.len() && !self.is_ended && !self.is_full;
        if self.scrubber.is_idle() || texts == 0 {
            return usize::MAX;
        }
        let mut joined = String::new();
        for part in self.parts.drain(..texts) {
            if let OutputPart::Text(text) = part {
                joined.push_str(&text);
            }
        }
        let clean = self.scrubber.text(&joined).into_owned();
        let told = match is_last {
            true => cut(&clean, clean.len().saturating_sub(self.scrubber.reach())).len(),
            false => usize::MAX,
        };
        self.parts.push_front(OutputPart::Text(clean));
        told
    }

    /// The first part, joined with the texts behind it as far as they have room.
    fn take(&mut self) -> Option<OutputPart> {
        let may_be_told = self.clean();
        if may_be_told == 0 {
            return None;
        }
        let mut joined = match self.parts.pop_front()? {
            OutputPart::Text(text) => text,
            data @ OutputPart::Data(_) => return Some(data),
        };
        while let Some(OutputPart::Text(text)) = self.parts.front_mut() {
            let room = OUTPUT_PART_BYTES_MAX.saturating_sub(joined.len());
            let fits = cut(text, room).len();
            joined.push_str(&text[..fits]);
            if fits < text.len() {
                text.drain(..fits);
                break;
            }
            self.parts.pop_front();
        }
        let fits = cut(&joined, OUTPUT_PART_BYTES_MAX.min(may_be_told)).len();
        if fits < joined.len() {
            let rest = joined.split_off(fits);
            self.parts.push_front(OutputPart::Text(rest));
        }
        Some(OutputPart::Text(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::Payload;

    fn text(text: impl Into<String>) -> OutputPart {
        OutputPart::Text(text.into())
    }

    fn all(output: &Output) -> Vec<OutputPart> {
        let next = || {
            let (_, part) = output.ready()?;
            output.recorded();
            Some(part)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_secret_across_two_texts_is_not_told() {
        let scrubber = Scrubber::new([("key", "sk-abcdefgh")]);
        let output = Output::without(&scrubber);
        output.append(text("the key is sk-abc"));
        let mut told = all(&output);
        output.append(text("defgh, and more follows here"));
        told.extend(all(&output));
        output.end();
        told.extend(all(&output));
        let told: String = told
            .iter()
            .map(|part| match part {
                OutputPart::Text(text) => &**text,
                OutputPart::Data(_) => panic!("it was text"),
            })
            .collect();
        assert_eq!(told, "the key is [secret key], and more follows here");
    }

    #[test]
    fn texts_that_follow_each_other_become_one_part() {
        let output = Output::default();
        let data = || OutputPart::Data(Payload::empty());
        for part in [text("a"), text(""), text("b"), data(), text("c")] {
            output.append(part);
        }
        assert_eq!(all(&output), [text("ab"), data(), text("c")]);
    }

    #[test]
    fn a_part_stays_the_next_one_until_it_is_recorded() {
        let output = Output::default();
        output.append(text("a"));
        assert_eq!(output.ready(), Some((1, text("a"))));
        output.append(text("b"));
        assert_eq!(output.ready(), Some((1, text("a"))));
        assert_eq!(output.recorded(), 1);
        assert_eq!(output.ready(), Some((2, text("b"))));
    }

    #[test]
    fn parts_are_no_larger_than_they_may_be_and_nothing_follows_a_gap() {
        let output = Output::default();
        let long = "é".repeat(OUTPUT_PART_BYTES_MAX);
        output.append(text(&*long));
        output.append(text("x".repeat(OUTPUT_BYTES_MAX)));
        output.append(text("behind the gap"));
        let parts = all(&output);
        assert!(
            parts
                .iter()
                .all(|part| part.bytes() <= OUTPUT_PART_BYTES_MAX)
        );
        let joined = parts.iter().map(|part| match part {
            OutputPart::Text(text) => &**text,
            OutputPart::Data(_) => panic!("it was text"),
        });
        assert_eq!(joined.collect::<String>(), long);
    }
}
