//! Blocks that differ, on the board: what the vector forms of gather, scatter and alltoall have in common.
//!
//! How long a block is only the two processes know that give and get it, and the rounds on the board must be the same number at all.
//! So there is one round: short blocks stand in it, long ones are announced there and go by messages behind it.

use crate::board::{NOTHING, Rounds, whole};
use crate::problem::{Operation, Problem};
use crate::schedule::{Peer, Share, Span, Step, Wake};

/// Longer blocks go by messages, in which both sides work at once.
const LONGEST: u64 = 32 << 10;
/// The same where there are more processes than cores.
const LONGEST_OVERSUBSCRIBED: u64 = 4 << 10;

/// Whether a problem can be solved so, where there is a board. The same answer at every process.
pub(crate) fn can(problem: &Problem<'_>) -> bool {
    Share::table_bytes(problem.size as usize) <= problem.board
}

/// The longest block that stands on the board. The same at every process.
pub(crate) fn longest(problem: &Problem<'_>) -> u64 {
    let room = match problem.operation {
        Operation::Gatherv => problem.board,
        // One process posts blocks for all others.
        _ => {
            let others = u64::from(problem.size - 1).max(1);
            (problem.board - Share::table_bytes(problem.size as usize)) / others / 8 * 8
        }
    };
    room.min(if problem.oversubscribed { LONGEST_OVERSUBSCRIBED } else { LONGEST })
}

impl Rounds<'_> {
    /// Deals a block to each other process, of as many bytes; `wake` those who wait for it.
    pub(crate) fn deal(&mut self, round: u32, block: impl Fn(u32) -> (Span, u64), wake: Wake) {
        let (rank, longest) = (self.problem.rank, longest(self.problem));
        let shares = (0..self.problem.size).map(|to| {
            if to == rank {
                return Share { data: NOTHING, away: false };
            }
            let (span, bytes) = block(to);
            Share { data: whole(span, bytes), away: bytes > longest }
        });
        let shares = shares.collect();
        self.builder.deal(round, shares, wake);
    }

    /// Takes what a process has dealt to this one, unless that goes by message.
    pub(crate) fn pick(&mut self, round: u32, from: u32, (block, bytes): (Span, u64)) {
        let share = Share { data: whole(block, bytes), away: bytes > longest(self.problem) };
        self.builder.board(Step::Pick { round, from, share });
    }

    /// Sends a block to a process if it is too long for the board.
    pub(crate) fn send_long(&mut self, to: u32, (block, bytes): (Span, u64)) {
        if bytes > longest(self.problem) {
            self.builder.send(Peer::Local(to), block);
        }
    }

    /// Receives a block from a process if it is too long for the board.
    pub(crate) fn receive_long(&mut self, from: u32, (block, bytes): (Span, u64)) {
        if bytes > longest(self.problem) {
            self.builder.receive(Peer::Local(from), block);
        }
    }
}
