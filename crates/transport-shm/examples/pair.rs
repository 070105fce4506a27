//! Two processes over one memory: half round trip and bandwidth, below MPI.
//! `cargo run --release -p parnass-transport-shm --example pair`

use parnass_base::Scratch;
use parnass_base::process::{Fork, fork_alone};
use parnass_portals::{
    Ack, Appended, Company, Event, EventKind, Interface, List, MatchEntry, ProcessId, Protocol, Put,
    PutOutcome,
};
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::time::{Duration, Instant};

struct Side {
    interface: Interface,
    peer: ProcessId,
    sends: u32,
    receives: u32,
}

impl Side {
    fn send(&mut self, memory: &Scratch, length: usize, protocol: Protocol) {
        let put = Put {
            target: self.peer,
            match_bits: 1,
            header_data: 2,
            source: memory.address().into(),
            length,
            protocol,
            blocking: false,
            ack: Ack::None,
            user: 3,
        };
        if self.interface.put(&put).unwrap() == PutOutcome::Pending {
            self.sends += 1;
        }
    }

    fn receive(&mut self, memory: &Scratch, length: usize) {
        let entry = MatchEntry {
            source: Some(self.peer),
            match_bits: 1,
            ignore_bits: 0,
            memory: memory.address().into(),
            length,
            user: 4,
        };
        if let Appended::Posted(_) = self.interface.append(List::Priority, &entry).unwrap() {
            self.receives += 1;
        }
    }

    fn finish(&mut self) {
        while self.sends + self.receives > 0 {
            let ticket = self.interface.ticket();
            let (mut sent, mut received) = (0, 0);
            let happened = self.interface.progress(&mut |event: Event| match event.kind {
                EventKind::Send => sent += 1,
                EventKind::Put => received += 1,
                other => panic!("{other:?}"),
            });
            self.sends -= sent;
            self.receives -= received;
            if self.sends + self.receives > 0 && !happened {
                self.interface.wait(ticket, Some(self.peer), None, Company::None);
            }
        }
    }
}

fn half_round_trip(side: &mut Side, first: bool, length: usize, rounds: u32, protocol: Protocol) -> Duration {
    let (source, target) = (Scratch::new(length), Scratch::new(length));
    let mut best = Duration::MAX;
    for _ in 0..repeats() {
        let start = Instant::now();
        for _ in 0..rounds {
            if first {
                side.send(&source, length, protocol);
                side.finish();
            }
            side.receive(&target, length);
            side.finish();
            if !first {
                side.send(&source, length, protocol);
                side.finish();
            }
        }
        best = best.min(start.elapsed() / (2 * rounds));
    }
    best
}

/// One way; the sender writes its buffer anew before each message. Bytes per second.
fn bandwidth(side: &mut Side, first: bool, length: usize, rounds: u32, protocol: Protocol) -> f64 {
    let memory = Scratch::new(length);
    let content = vec![1u8; length];
    let mut best = 0f64;
    for _ in 0..repeats() {
        let start = Instant::now();
        for _ in 0..rounds {
            if first {
                memory.address().write(&content);
                side.send(&memory, length, protocol);
            } else {
                side.receive(&memory, length);
            }
            side.finish();
        }
        best = best.max(f64::from(rounds) * length as f64 / start.elapsed().as_secs_f64());
    }
    best
}

/// How often each measurement is repeated; the best counts.
fn repeats() -> u32 {
    std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(10)
}

fn main() {
    let file = JobMemory::create(2).unwrap();
    let fork = fork_alone().unwrap();
    let rank = u32::from(fork == Fork::Child);
    let transport = SharedMemory::attach(JobMemory::open(file).unwrap(), rank).unwrap();
    let interface = Interface::new(Box::new(transport)).unwrap();
    let mut side = Side { interface, peer: ProcessId(1 - rank), sends: 0, receives: 0 };
    let first = rank == 0;
    for (length, rounds) in
        [(0, 5_000), (8, 5_000), (40, 5_000), (64, 5_000), (1_024, 2_000), (8_192, 1_000), (65_536, 200)]
    {
        let time = half_round_trip(&mut side, first, length, rounds, Protocol::Buffered);
        if first {
            println!("{length:>8} B buffered  half round trip {:>8.0} ns", time.as_secs_f64() * 1e9);
        }
    }
    for (length, rounds) in [(4_096, 500), (16_384, 500), (65_536, 200), (1 << 20, 30)] {
        let time = half_round_trip(&mut side, first, length, rounds, Protocol::Direct);
        if first {
            println!("{length:>8} B direct    half round trip {:>8.0} ns", time.as_secs_f64() * 1e9);
        }
    }
    for (length, rounds, protocol) in [
        (16_384, 500, Protocol::Buffered),
        (65_536, 200, Protocol::Buffered),
        (16_384, 500, Protocol::Direct),
        (65_536, 200, Protocol::Direct),
        (1 << 20, 50, Protocol::Direct),
        (16 << 20, 4, Protocol::Direct),
    ] {
        let rate = bandwidth(&mut side, first, length, rounds, protocol);
        if first {
            println!("{length:>8} B {protocol:?} {:>8.2} GB/s", rate / 1e9);
        }
    }
}
