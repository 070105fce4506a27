//! A message that lies in its lane, and how its bytes are copied out of it.

use crate::address::UserAddress;
use crate::lane::{HEAD, Lane, Message, RUN_BYTES, STEP, WORDS, bytes, write_words};
use crate::slot::{SLOT_BYTES, pour};
use std::ops::Deref;

/// Slots of which the consumer awaits the last before it looks at the others: whoever looks at a line that is just to be written
/// takes it from its writer once more.
const TOGETHER: usize = 4;

/// A message that lies in its lane, with the slots that follow its first.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    pub(crate) message: Message,
    /// How many slots follow, from `first` on in `lane`.
    pub(crate) further: usize,
    pub(crate) first: u64,
    pub(crate) lane: Option<Lane<'a>>,
    /// Where its bytes lie, unless in its slots.
    pub(crate) run: Option<UserAddress>,
}

impl Deref for Arrived<'_> {
    type Target = Message;

    #[inline(always)]
    fn deref(&self) -> &Message {
        &self.message
    }
}

impl Arrived<'_> {
    /// A message of one slot, or one that came another way.
    #[inline(always)]
    pub fn short(message: Message) -> Self {
        Arrived { message, further: 0, first: 0, lane: None, run: None }
    }

    /// Whether not all of its bytes are in its first slot.
    #[inline(always)]
    pub fn is_long(&self) -> bool {
        self.further != 0 || self.run.is_some()
    }

    /// Its bytes, if it is long; `last`: see [`crate::lane::last_bytes`].
    #[inline(always)]
    pub fn bytes(&self, last: usize) -> usize {
        match self.run {
            Some(_) => (self.words[HEAD] as usize).min(RUN_BYTES),
            None => bytes(self.further, last),
        }
    }

    /// Whether its bytes lie in its slots, and its producer has written all of them.
    #[inline]
    pub fn lies_in_slots_whole(&self) -> bool {
        self.run.is_none() && self.is_whole()
    }

    /// Whether its producer has written all of it.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.further == 0
            || self.lane.is_some_and(|lane| lane.peek(self.first + self.further as u64 - 1).is_some())
    }

    /// Whether its producer has written all of it, or soon has.
    #[inline]
    pub fn is_soon_whole(&self) -> bool {
        self.further == 0 || self.lane.is_some_and(|lane| lane.awaits(self.first + self.further as u64 - 1))
    }

    /// Copies the first `length` of its bytes to `target`; they start at word `skip`. `false`: its producer has not
    /// written all of it yet, and what lies at `target` is undefined.
    ///
    /// # Panics
    /// If the message has fewer bytes.
    #[inline]
    pub fn copy_to(&self, skip: usize, target: UserAddress, length: usize) -> bool {
        if let (Some(lane), Some(run)) = (self.lane, self.run) {
            let copy = |at, part, length| target.offset(at as i64).copy_apart(part, length);
            return self.copy_run(lane, run, length, copy);
        }
        let here = length.min((WORDS - skip) * 8);
        let (Some(lane), further @ 1..) = (self.lane, self.further) else {
            assert!(here == length, "{length} bytes of a message of one slot");
            write_words(&self.words[skip..], target, length);
            return true;
        };
        // Out of the slot itself: what has just been read out of it word by word would be slow to read in longer parts.
        lane.slot(self.first - 1).pour(skip, target, here);
        if further == 1 {
            if !lane.awaits(self.first) {
                return false;
            }
            lane.slot(self.first).pour(0, target.offset(here as i64), length - here);
            return true;
        }
        let (mut position, end, mut done) = (self.first, self.first + further as u64, here);
        while done < length && position < end {
            let group = lane.row(position, TOGETHER.min((end - position) as usize));
            // Slots are committed in their order.
            if !lane.awaits(position + group.len() as u64 - 1) {
                return false;
            }
            let whole = group.len().min((length - done) / SLOT_BYTES);
            pour(&group[..whole], target.offset(done as i64));
            done += whole * SLOT_BYTES;
            if whole < group.len() && done < length {
                group[whole].pour(0, target.offset(done as i64), length - done);
                done = length;
            }
            position += group.len() as u64;
        }
        assert!(done == length, "{length} bytes of a message of {done}");
        // Nobody gets the slots back before they are written: a message may be received in part.
        lane.awaits(self.first + further as u64 - 1)
    }

    /// As [`Arrived::copy_to`], by `read`, which is told for each part that is there where it starts in the message, where it lies, and how
    /// long it is. `None`: its bytes do not lie in a row, and nothing was done.
    #[inline]
    pub fn copy_by(&self, length: usize, read: impl FnMut(usize, UserAddress, usize)) -> Option<bool> {
        Some(self.copy_run(self.lane?, self.run?, length, read))
    }

    fn copy_run(
        &self,
        lane: Lane<'_>,
        run: UserAddress,
        length: usize,
        mut read: impl FnMut(usize, UserAddress, usize),
    ) -> bool {
        assert!(length <= RUN_BYTES, "{length} bytes of a run");
        for step in 0..=self.further {
            // The first slot is there already.
            if step > 0 && !lane.awaits(self.first + step as u64 - 1) {
                return false;
            }
            let (at, end) = (step * STEP, length.min((step + 1) * STEP));
            if at < end {
                read(at, run.offset(at as i64), end - at);
            }
        }
        true
    }
}
