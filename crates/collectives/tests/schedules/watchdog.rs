//! The simulator finds what it is there to find.

use crate::simulator::{MARGIN, Process, Random, run};
use parnass_collectives::{Builder, Element, Kind, Peer, Region, Span};

const BYTES: Span = Span { region: Region::Recv, kind: Kind::Bytes, offset: 0, count: 4 };

fn simulate(write: [fn(&mut Builder<'_>); 2]) {
    for seed in 0..20 {
        let mut processes: Vec<Process> = write
            .iter()
            .map(|write| {
                let mut builder = Builder::new();
                write(&mut builder);
                let memory = vec![0; 2 * MARGIN];
                Process::new(builder.finish(), memory.clone(), memory, [Element::of_size(1); 2])
            })
            .collect();
        run(&mut processes, [2, 0], 0, seed % 2 == 0, &mut Random::new(seed), &|_, _| {});
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn two_sends_that_wait_for_each_other() {
    simulate([
        |builder| {
            builder.send(Peer::Local(1), BYTES);
            builder.wait();
            builder.receive(Peer::Local(1), BYTES);
        },
        |builder| {
            builder.send(Peer::Local(0), BYTES);
            builder.wait();
            builder.receive(Peer::Local(0), BYTES);
        },
    ]);
}

#[test]
#[should_panic(expected = "under way")]
fn a_copy_out_of_what_is_still_arriving() {
    simulate([
        |builder| builder.send(Peer::Local(1), BYTES),
        |builder| {
            builder.receive(Peer::Local(0), BYTES);
            builder.copy(BYTES, Span { offset: 8, ..BYTES });
        },
    ]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_receive_that_nobody_serves() {
    simulate([|_| {}, |builder| builder.receive(Peer::Local(0), BYTES)]);
}

#[test]
#[should_panic(expected = "length of a message")]
fn two_processes_that_disagree_on_a_length() {
    simulate([
        |builder| builder.send(Peer::Local(1), BYTES),
        |builder| builder.receive(Peer::Local(0), Span { count: 3, ..BYTES }),
    ]);
}
