//! The part of the links that concerns what peers read where it lies.

use crate::link::{Link, Out, Stage, Streams, lock};
use crate::offers::Answer;
use crate::pipe::Carrier;
use crate::wire::{FrameKind, Head, OFFER_WORDS};

/// What is shorter is sent.
const LEAST: usize = 64 << 10;

impl<C: Carrier> Streams<C> {
    /// Offers what is lent, as far as it may be offered now.
    pub(crate) fn offer(&self, link: &Link<C::Pipe>, out: &mut Out<C::Pipe>) {
        if out.reads == 0 || !out.row.is_lending() {
            return;
        }
        out.row.set_apart(LEAST);
        while let Some(piece) = out.row.next_piece(out.reads) {
            match self.carrier.open_region(piece.source, piece.length) {
                Ok(region) => {
                    let (tag, words) = out.row.offer(&piece, &region);
                    let head = Self::head(link, tag, OFFER_WORDS, 0, false);
                    out.row.frame(&Head { kind: FrameKind::Offer, ..head }, &words.encode());
                }
                Err(_) => out.row.send_piece(&piece),
            }
        }
    }

    /// Tells a peer what has become of `count` bytes that it offers.
    pub(crate) fn tell_answer(&self, link: &Link<C::Pipe>, number: u64, answer: Answer, count: usize) {
        let kind = match answer {
            Answer::Taken => FrameKind::Taken,
            Answer::Declined => FrameKind::Declined,
            Answer::Instead => FrameKind::Instead,
        };
        if let Some(books) = self.refusals.books() {
            match answer {
                Answer::Taken => books.took(count),
                Answer::Instead => books.failed_to_take(),
                Answer::Declined => (),
            }
        }
        let mut out = lock(&link.out);
        if let Some(out) = self.ready(link, &mut out) {
            out.row.frame(&Head { kind, ..Self::head(link, 0, 1, 0, false) }, &[number]);
            if !out.blocked {
                self.write(link, out);
            }
        }
    }

    /// A peer says what has become of what it was offered; `false`: it was not.
    pub(crate) fn take_answer(&self, link: &Link<C::Pipe>, number: u64, answer: Answer) -> bool {
        let mut out = lock(&link.out);
        let out = &mut *out;
        if !matches!(out.stage, Stage::Up(..)) {
            return true; // Nothing is offered any more.
        }
        let Some(answered) = out.row.answer(number, answer) else { return false };
        self.carrier.close_region(answered.region);
        answered.then.into_iter().for_each(|then| self.tell(then));
        if !out.blocked {
            self.write(link, out);
        }
        true
    }

    /// Forgets what is not sent to a peer, or offered to it.
    pub(crate) fn clear(&self, out: &mut Out<C::Pipe>) {
        self.withdraw(out);
        out.clear();
    }

    /// From now on a peer reads nothing.
    pub(crate) fn withdraw(&self, out: &mut Out<C::Pipe>) {
        out.row.withdraw().into_iter().for_each(|region| self.carrier.close_region(region));
    }
}
