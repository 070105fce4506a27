//! Everybody sends to process 0, which sends everything to everybody.
//! Cost: 2 rounds, `2 (n - 1)` messages: the fewest, for when every message costs a change of process on a core.

use crate::algorithm::{Algorithm, Groups, Needs};
use crate::problem::{Operation, Problem};
use crate::schedule::{Builder, Peer, Schedule};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    operations: &[Operation::Allgather, Operation::Allgatherv],
    name: "gather_bcast",
    cost: "2 rounds, 2 (n - 1) messages, n (n - 1) m bytes out of process 0",
    groups: Groups::One,
    needs: Needs::Nothing,
    build,
};

fn build(problem: &Problem<'_>) -> Schedule {
    let mut builder = Builder::new();
    let (rank, size) = (problem.rank, problem.size);
    let even = problem.recv.is_none();
    if rank == 0 {
        for source in 1..size {
            builder.receive(Peer::Local(source), problem.recv_block(source));
        }
        builder.copy(problem.contribution(), problem.recv_block(0));
        builder.wait();
    } else {
        builder.send(Peer::Local(0), problem.contribution());
    }
    if even {
        let everything = problem.recv_blocks(0, size);
        if rank == 0 {
            (1..size).for_each(|target| builder.send(Peer::Local(target), everything));
        } else {
            if problem.in_place {
                // The own block comes back too, to where it is being sent from.
                builder.wait();
            }
            builder.receive(Peer::Local(0), everything);
        }
        return builder.finish();
    }
    let lengths: Vec<u64> = (0..size).map(|index| problem.recv_block_bytes(index)).collect();
    let packed = builder.scratch(lengths.iter().sum());
    let pieces = lengths.iter().scan(0, |first, length| {
        let piece = packed.bytes(*first, *length);
        *first += length;
        Some(piece)
    });
    if rank == 0 {
        (0..size).zip(pieces).for_each(|(index, piece)| builder.copy(problem.recv_block(index), piece));
        (1..size).for_each(|target| builder.send(Peer::Local(target), packed));
    } else {
        builder.receive(Peer::Local(0), packed);
        builder.wait();
        (0..size).zip(pieces).for_each(|(index, piece)| builder.copy(piece, problem.recv_block(index)));
    }
    builder.finish()
}
