//! Collective access in two phases (MPI 5.0, section 14.4): processes whose pieces of the file lie between each other hand them to
//! a few aggregators, each of which writes or reads one part of the file in long runs.
//!
//! ```text
//!   process 0   [0  3  6  9 ]  \   aggregator 0  [0 1 2 3 4 5]    one run of the file
//!   process 1   [1  4  7  10]   >
//!   process 2   [2  5  8  11]  /   aggregator 1  [6 7 8 9 10 11]  another
//! ```
//!
//! A message to an aggregator is a count of pieces, their places and lengths as 8-byte words, and for a write their data.
//! Before it goes its length, in a message of its own. An aggregator answers a read with the place where the file ended (or
//! the greatest word) and the data.

use super::access::move_data;
use super::disk::Disk;
use super::hints::{Buffering, Hints, Sieving};
use super::shared::SharedPointer;
use super::transfer::Transfer;
use super::worker::perform;
use super::{Direction, agree_on};
use crate::comm::exchange::Channel;
use crate::process::Process;
use crate::request::Status;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_io::{Domains, Run};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD: u64 = 8;
/// Where a file does not end.
const NO_END: u64 = u64::MAX;
/// Holes up to this length are read with the data around them.
const GAP: u64 = 32 << 10;

/// A collective access of one process.
pub(super) struct CollectiveAccess {
    pub(super) process: Arc<Process>,
    pub(super) channel: Channel,
    pub(super) direction: Direction,
    /// An error of this process's arguments is told to all.
    pub(super) transfer: Result<Transfer>,
    /// The shared pointer, for an access in the order of the ranks.
    pub(super) ordered: Option<Arc<SharedPointer>>,
    pub(super) hints: Hints,
    /// Nobody waits for it in the call that has begun it.
    pub(super) background: bool,
    /// How many bytes of the stream there were, when it is over.
    pub(super) done: Arc<AtomicU64>,
}

/// What the processes tell each other first.
#[derive(Clone, Copy)]
struct Extent {
    bytes: u64,
    low: u64,
    high: u64,
    contiguous: bool,
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.chunks_exact(WORD as usize).map(word).collect()
}

fn encoded(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn word_at(memory: &Scratch, index: u64) -> u64 {
    let mut bytes = [0; WORD as usize];
    memory.address().offset((index * WORD) as i64).read(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Whether the pieces of some processes lie between those of others. Contiguous pieces never gain by aggregation.
fn interleaved(extents: &[Extent]) -> bool {
    let mut used: Vec<&Extent> = extents.iter().filter(|extent| extent.bytes > 0).collect();
    used.sort_by_key(|extent| extent.low);
    let crossing = used.windows(2).any(|pair| pair[1].low < pair[0].high);
    crossing && used.iter().any(|extent| !extent.contiguous)
}

impl CollectiveAccess {
    /// Does it all.
    pub(super) async fn run(mut self) -> Result<Status> {
        if let Some(pointer) = self.ordered.take() {
            self.take_turns(&pointer).await?;
        }
        let own = self.transfer.as_ref().map(|_| ()).map_err(Error::clone);
        agree_on(&self.channel, own).await?;
        let transfer = Arc::new(self.transfer?);
        let plan = Plan {
            process: self.process,
            channel: self.channel,
            transfer: Arc::clone(&transfer),
            hints: self.hints,
            background: self.background,
        };
        let done = match (plan.in_phases(self.direction).await?, self.direction) {
            (None, direction) => {
                let moved = Arc::clone(&transfer);
                perform(&plan.process, plan.background, move || move_data(&moved, direction)).await
            }
            (Some(extents), Direction::Write) => plan.write(&extents).await,
            (Some(extents), Direction::Read) => plan.read(&extents).await,
        }?;
        self.done.store(done, Ordering::Relaxed);
        match self.direction {
            Direction::Read => transfer.reconvert(done),
            Direction::Write => Ok(transfer.written()),
        }
    }

    /// Places the accesses behind each other from the shared pointer on, in the order of the ranks.
    async fn take_turns(&mut self, pointer: &SharedPointer) -> Result<()> {
        let own = self.transfer.as_ref().map_or(0, |transfer| transfer.bytes);
        let sizes = words(&self.channel.allgather(&own.to_le_bytes()).await?);
        let rank = self.channel.rank() as usize;
        let base = match rank {
            0 => pointer.advance(sizes.iter().sum()),
            _ => Ok(0),
        };
        let told = base.as_ref().map_or(0, |base| *base).to_le_bytes().to_vec();
        agree_on(&self.channel, base.map(|_| ())).await?;
        let base = words(&self.channel.broadcast(0, told).await?)[0];
        let placed =
            self.transfer.as_mut().map(|transfer| transfer.place(base + sizes[..rank].iter().sum::<u64>()));
        if let Ok(Err(error)) = placed {
            self.transfer = Err(error);
        }
        Ok(())
    }
}

/// An access whose arguments are right at all processes.
struct Plan {
    process: Arc<Process>,
    channel: Channel,
    transfer: Arc<Transfer>,
    hints: Hints,
    background: bool,
}

/// Who handles what, and in how many rounds.
struct Deal {
    domains: Domains,
    aggregators: u64,
    rounds: u64,
    /// Bytes of each process for each aggregator.
    shares: Vec<Vec<u64>>,
    /// Which aggregator this process is.
    mine: Option<u64>,
    size: u64,
}

impl Deal {
    /// The rank of an aggregator: they are spread evenly.
    fn rank_of(&self, aggregator: u64) -> u64 {
        aggregator * self.size / self.aggregators
    }
}

impl Plan {
    /// What all processes access, if aggregators are used; the same at all processes.
    async fn in_phases(&self, direction: Direction) -> Result<Option<Vec<Extent>>> {
        let mode = match direction {
            Direction::Read => self.hints.buffered_reads,
            Direction::Write => self.hints.buffered_writes,
        };
        if mode == Buffering::Never || self.transfer.disk().is_atomic() || self.channel.size() == 1 {
            return Ok(None);
        }
        let extents = self.extents().await?;
        let any = extents.iter().any(|extent| extent.bytes > 0);
        Ok((any && (mode == Buffering::Always || interleaved(&extents))).then_some(extents))
    }

    async fn extents(&self) -> Result<Vec<Extent>> {
        let (low, high) = self.transfer.range().unwrap_or((0, 0));
        let bytes = self.transfer.bytes;
        let told = self.channel.allgather(&encoded(&[bytes, low, high])).await?;
        let extent = |row: &[u64]| {
            let (bytes, low, high) = (row[0], row[1], row[2]);
            Extent { bytes, low, high, contiguous: high - low == bytes }
        };
        Ok(words(&told).chunks_exact(3).map(extent).collect())
    }

    /// The part of this process's stream that lies in a range of the file, as (first, one past the last).
    fn part(&self, (first, end): (u64, u64)) -> (u64, u64) {
        let (view, transfer) = (&self.transfer.mapping().view, &self.transfer);
        let inside = |offset| view.position_at(offset).clamp(transfer.start, transfer.start + transfer.bytes);
        (inside(first), inside(end))
    }

    async fn deal(&self, extents: &[Extent]) -> Result<Deal> {
        let used = || extents.iter().filter(|extent| extent.bytes > 0);
        let low = used().map(|extent| extent.low).min().unwrap_or(0);
        let high = used().map(|extent| extent.high).max().unwrap_or(0);
        let size = self.channel.size() as u64;
        let aggregators = u64::from(self.hints.aggregators).clamp(1, size);
        // Hints may differ; the first process's count.
        let chosen =
            words(&self.channel.broadcast(0, encoded(&[aggregators, self.hints.buffer_bytes])).await?);
        let (aggregators, buffer) = (chosen[0], chosen[1].max(1));
        let whole = Domains::new(low, high, aggregators, 1);
        let own: Vec<u64> = (0..aggregators)
            .map(|aggregator| {
                let (first, end) = self.part(whole.of(aggregator));
                end - first
            })
            .collect();
        let told = words(&self.channel.allgather(&encoded(&own)).await?);
        let shares: Vec<Vec<u64>> = told.chunks_exact(aggregators as usize).map(<[u64]>::to_vec).collect();
        let most =
            (0..aggregators as usize).map(|index| shares.iter().map(|row| row[index]).sum::<u64>()).max();
        let rounds = most.unwrap_or(0).div_ceil(buffer).max(1);
        let rank = self.channel.rank() as u64;
        let domains = Domains::new(low, high, aggregators, rounds);
        let mut deal = Deal { domains, aggregators, rounds, shares, mine: None, size };
        deal.mine = (0..aggregators).find(|&aggregator| deal.rank_of(aggregator) == rank);
        Ok(deal)
    }

    /// The message for an aggregator about a part of the stream, with or without its data.
    fn message(&self, (first, end): (u64, u64), with_data: bool) -> Scratch {
        let mut list = vec![0];
        self.transfer.mapping().view.visit(first, end - first, &mut |run| {
            list.extend([run.offset, run.length]);
            true
        });
        list[0] = (list.len() as u64 - 1) / 2;
        let head = encoded(&list);
        let data = if with_data { end - first } else { 0 };
        let message = Scratch::new(head.len() + data as usize);
        message.address().write(&head);
        if data > 0 {
            let target = message.address().offset(head.len() as i64);
            self.transfer.memory().pack(first - self.transfer.start, target, data);
        }
        message
    }

    /// Sends to all aggregators what concerns them in a round and receives, if this process is one, what all have sent. The
    /// parts of the stream that the messages were about, by aggregator, and the messages that came, by rank.
    async fn exchange(
        &self,
        deal: &Deal,
        round: u64,
        with_data: bool,
    ) -> Result<(Vec<(u64, u64)>, Vec<(u64, Scratch)>)> {
        let rank = self.channel.rank() as u64;
        let (mut parts, mut sends, mut own) = (Vec::new(), Vec::new(), None);
        for aggregator in 0..deal.aggregators {
            if deal.shares[rank as usize][aggregator as usize] == 0 {
                parts.push((0, 0));
                continue;
            }
            let part = self.part(deal.domains.window(aggregator, round));
            let message = self.message(part, with_data);
            parts.push(part);
            if deal.mine == Some(aggregator) {
                own = Some(message);
            } else {
                let target = deal.rank_of(aggregator) as i32;
                sends.push(self.channel.send(target, &(message.len() as u64).to_le_bytes())?);
                sends.push(self.channel.send_memory(target, message)?);
            }
        }
        let mut came = Vec::new();
        if let Some(mine) = deal.mine {
            for source in (0..deal.size).filter(|&source| deal.shares[source as usize][mine as usize] > 0) {
                if source == rank {
                    came.extend(own.take().map(|message| (source, message)));
                    continue;
                }
                let length = word_at(&self.channel.receive(source as i32, WORD as usize)?.await?, 0);
                came.push((source, self.channel.receive(source as i32, length as usize)?.await?));
            }
        }
        for send in sends {
            send.await?;
        }
        Ok((parts, came))
    }

    async fn write(&self, extents: &[Extent]) -> Result<u64> {
        let deal = self.deal(extents).await?;
        let mut result = Ok(());
        for round in 0..deal.rounds {
            let (_, came) = self.exchange(&deal, round, true).await?;
            if came.is_empty() || result.is_err() {
                continue;
            }
            let disk = Arc::clone(self.transfer.disk());
            let sieving = self.hints.sieving;
            result =
                perform(&self.process, self.background, move || write_pieces(&disk, sieving, &came)).await;
        }
        agree_on(&self.channel, result).await?;
        Ok(self.transfer.bytes)
    }

    async fn read(&self, extents: &[Extent]) -> Result<u64> {
        let deal = self.deal(extents).await?;
        let (mut result, mut end) = (Ok(()), NO_END);
        for round in 0..deal.rounds {
            let (parts, came) = self.exchange(&deal, round, false).await?;
            let (mut own, mut sends) = (None, Vec::new());
            if !came.is_empty() {
                let disk = Arc::clone(self.transfer.disk());
                let (answers, read) =
                    perform(&self.process, self.background, move || read_pieces(&disk, &came)).await;
                if let Err(error) = read {
                    result = result.and(Err(error));
                }
                for (target, answer) in answers {
                    if target == self.channel.rank() as u64 {
                        own = Some(answer);
                    } else {
                        sends.push(self.channel.send_memory(target as i32, answer)?);
                    }
                }
            }
            for (aggregator, part) in parts.into_iter().enumerate() {
                let length = part.1 - part.0;
                if deal.shares[self.channel.rank() as usize][aggregator] == 0 {
                    continue;
                }
                let answer = match deal.mine == Some(aggregator as u64) {
                    true => own.take(),
                    false => {
                        let source = deal.rank_of(aggregator as u64) as i32;
                        Some(self.channel.receive(source, (WORD + length) as usize)?.await?)
                    }
                };
                let Some(answer) = answer else { continue };
                let here = word_at(&answer, 0);
                end = end.min(here);
                let valid = self.part((0, here)).1.clamp(part.0, part.1) - part.0;
                let skip = part.0.saturating_sub(self.transfer.start);
                self.transfer.memory().unpack(skip, answer.address().offset(WORD as i64), valid);
            }
            for send in sends {
                send.await?;
            }
        }
        agree_on(&self.channel, result).await?;
        Ok(match end {
            NO_END => self.transfer.bytes,
            end => self.part((0, end)).1 - self.transfer.start,
        })
    }
}

/// A piece of the file and where its data lies: in which message, how far from its start.
struct Piece {
    run: Run,
    message: usize,
    skip: u64,
}

/// The pieces of all messages, sorted by their places; `skip` counts from where data begins in a message with a head of words,
/// or from the start.
fn pieces(messages: &[(u64, Scratch)], head: impl Fn(u64) -> u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (message, (_, memory)) in messages.iter().enumerate() {
        let count = word_at(memory, 0);
        let mut skip = head(count);
        for index in 0..count {
            let run = Run { offset: word_at(memory, 1 + 2 * index), length: word_at(memory, 2 + 2 * index) };
            pieces.push(Piece { run, message, skip });
            skip += run.length;
        }
    }
    // Stable: where pieces overlap, that of the higher rank is written last.
    pieces.sort_by_key(|piece| piece.run.offset);
    pieces
}

/// Splits sorted pieces into groups in which no hole is longer than `gap`; calls `each` with a group and its range.
fn groups(pieces: &[Piece], gap: u64, mut each: impl FnMut(&[Piece], Run) -> Result<bool>) -> Result<()> {
    let mut rest = pieces;
    while let Some(first) = rest.first() {
        let (mut end, mut count) = (first.run.end(), 1);
        while let Some(next) = rest.get(count).filter(|next| next.run.offset <= end.saturating_add(gap)) {
            end = end.max(next.run.end());
            count += 1;
        }
        let (group, behind) = rest.split_at(count);
        if !each(group, Run { offset: first.run.offset, length: end - first.run.offset })? {
            return Ok(());
        }
        rest = behind;
    }
    Ok(())
}

fn write_pieces(disk: &Disk, sieving: Sieving, messages: &[(u64, Scratch)]) -> Result<()> {
    let pieces = pieces(messages, |count| (1 + 2 * count) * WORD);
    let data = |piece: &Piece| messages[piece.message].1.address().offset(piece.skip as i64);
    groups(&pieces, sieving.of_writes().hole_bytes, |group, range| {
        let (mut runs, mut bytes) = (0, 0);
        groups(group, 0, |_, run| {
            (runs, bytes) = (runs + 1, bytes + run.length);
            Ok(true)
        })?;
        let last = group.iter().rfind(|piece| piece.run.end() == range.end());
        bytes -= last.map_or(0, |last| last.run.length.min(bytes));
        let write_last = || match last {
            Some(last) => disk.write(data(last), last.run.length, last.run.offset),
            None => Ok(()),
        };
        let store = |file: UserAddress| {
            for piece in group {
                file.offset(piece.run.offset as i64).copy_apart(data(piece), piece.run.length as usize);
            }
        };
        if sieving.maps(runs, range.length)
            && disk.write_mapped((range.offset, range.end()), bytes, write_last, store)?
        {
            return Ok(true);
        }
        groups(group, 0, |group, range| write_group(disk, group, range, data)).map(|()| true)
    })
}

/// Writes pieces without holes between them as one run.
fn write_group(
    disk: &Disk,
    group: &[Piece],
    range: Run,
    data: impl Fn(&Piece) -> UserAddress,
) -> Result<bool> {
    if let [piece] = group {
        return disk.write(data(piece), range.length, range.offset).map(|()| true);
    }
    let whole = Scratch::new(range.length as usize);
    for piece in group {
        let target = whole.address().offset((piece.run.offset - range.offset) as i64);
        target.copy_apart(data(piece), piece.run.length as usize);
    }
    disk.write(whole.address(), range.length, range.offset).map(|()| true)
}

/// The answers to all messages, by rank. Where reading fails they say that the file ends before.
fn read_pieces(disk: &Disk, messages: &[(u64, Scratch)]) -> (Vec<(u64, Scratch)>, Result<()>) {
    let pieces = pieces(messages, |_| WORD);
    let mut lengths = vec![WORD; messages.len()];
    for piece in &pieces {
        lengths[piece.message] += piece.run.length;
    }
    let answers: Vec<Scratch> = lengths.iter().map(|&length| Scratch::new(length as usize)).collect();
    let mut end = NO_END;
    let result = groups(&pieces, GAP, |group, range| {
        let whole = Scratch::new(range.length as usize);
        let there =
            disk.read(whole.address(), range.length, range.offset).inspect_err(|_| end = range.offset)?;
        for piece in group {
            let skip = piece.run.offset - range.offset;
            let valid = piece.run.length.min(there.saturating_sub(skip));
            let target = answers[piece.message].address().offset(piece.skip as i64);
            target.copy_apart(whole.address().offset(skip as i64), valid as usize);
        }
        if there < range.length {
            end = range.offset + there;
        }
        Ok(there == range.length)
    });
    for answer in &answers {
        answer.address().write(&end.to_le_bytes());
    }
    (messages.iter().zip(answers).map(|((rank, _), answer)| (*rank, answer)).collect(), result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_that_cross_are_interleaved() {
        let extent = |low, high, bytes| Extent { bytes, low, high, contiguous: high - low == bytes };
        assert!(!interleaved(&[extent(0, 10, 10), extent(10, 20, 10)]));
        assert!(!interleaved(&[extent(10, 20, 5), extent(0, 10, 3), extent(0, 0, 0)]));
        assert!(interleaved(&[extent(0, 10, 5), extent(1, 11, 5)]));
        assert!(!interleaved(&[extent(0, 10, 10), extent(0, 10, 10)]), "contiguous pieces gain nothing");
    }

    #[test]
    fn groups_end_at_holes() {
        let piece = |offset, length| Piece { run: Run { offset, length }, message: 0, skip: 0 };
        let pieces = [piece(0, 4), piece(4, 4), piece(6, 1), piece(9, 1), piece(30, 2)];
        let ranges = |gap| {
            let mut ranges = Vec::new();
            groups(&pieces, gap, |group, range| {
                ranges.push((group.len(), range.offset, range.length));
                Ok(true)
            })
            .unwrap();
            ranges
        };
        assert_eq!(ranges(0), [(3, 0, 8), (1, 9, 1), (1, 30, 2)]);
        assert_eq!(ranges(1), [(4, 0, 10), (1, 30, 2)]);
        assert_eq!(ranges(100), [(5, 0, 32)]);
    }
}
