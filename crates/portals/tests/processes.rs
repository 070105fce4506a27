//! Messages between real processes: this test program starts itself once per rank.

use parnass_base::Scratch;
use parnass_portals::*;
use parnass_transport_shm::{JobMemory, SharedMemory};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};

const MEMORY: &str = "PARNASS_TEST_MEMORY";
const RANK: &str = "PARNASS_TEST_RANK";
const DIRECT: &str = "PARNASS_TEST_DIRECT";
const LENGTHS: [usize; 8] = [0, 8, 40, 100, 5_000, 70_000, 400_000, 3_000_001];

fn start(size: u32, direct: &str) -> Vec<Child> {
    let file: OwnedFd = JobMemory::create(size).unwrap();
    // The children open the file by this name, while this process keeps it.
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let children: Vec<Child> = (0..size)
        .map(|rank| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "rank_of_the_job", "--ignored", "--nocapture", "--test-threads=1"])
                .env(MEMORY, &path)
                .env(RANK, rank.to_string())
                .env(DIRECT, direct)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    finish(children, file)
}

fn finish(mut children: Vec<Child>, file: OwnedFd) -> Vec<Child> {
    let failed = children.iter_mut().filter_map(|child| child.wait().ok()).filter(|status| !status.success());
    assert_eq!(failed.count(), 0);
    drop(file);
    children
}

#[test]
fn processes_exchange_directly() {
    start(3, "on");
}

#[test]
fn processes_exchange_through_pieces() {
    start(3, "off");
}

#[test]
fn more_processes_than_processors_exchange() {
    start(24, "on");
}

/// What each of the processes does: a round for each length, in which each rank sends to its right and to rank 0.
#[test]
#[ignore = "started by the other tests, as a process of its own"]
fn rank_of_the_job() {
    let file =
        std::fs::OpenOptions::new().read(true).write(true).open(std::env::var(MEMORY).unwrap()).unwrap();
    let rank: u32 = std::env::var(RANK).unwrap().parse().unwrap();
    let tuning = parnass_transport_shm::Tuning {
        direct: std::env::var(DIRECT).unwrap() == "on",
        ..Default::default()
    };
    let memory = JobMemory::open(file.into()).unwrap();
    let transport = SharedMemory::attach_with(memory, rank, tuning).unwrap();
    let interface = Interface::new(Box::new(transport)).unwrap();
    let size = interface.size();
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    for (round, length) in LENGTHS.into_iter().enumerate() {
        let bits = round as u64;
        let (source, target) = (pattern(length, rank), Scratch::new(length));
        let mut open = 0;
        let entry = |source, match_bits, memory: &Scratch, length| MatchEntry {
            source,
            match_bits,
            ignore_bits: 0,
            memory: memory.address().into(),
            length,
            user: 0,
        };
        let put = |target, match_bits, length, protocol| Put {
            target: ProcessId(target),
            match_bits,
            header_data: 0,
            source: source.address().into(),
            length,
            protocol,
            blocking: false,
            ack: Ack::None,
            user: 1,
        };
        let protocol = if length > 10_000 { Protocol::Direct } else { Protocol::Buffered };
        open += u32::from(interface.put(&put(right, bits, length, protocol)).unwrap() == PutOutcome::Pending);
        let posted = interface.append(List::Priority, &entry(Some(ProcessId(left)), bits, &target, length));
        open += u32::from(matches!(posted.unwrap(), Appended::Posted(_)));
        // A report to rank 0, which takes them from anybody; and its answer, so that rounds do not overlap.
        let answer = Scratch::new(0);
        let report = put(0, 1_000 + bits, 0, Protocol::Buffered);
        open += u32::from(interface.put(&report).unwrap() == PutOutcome::Pending);
        if rank == 0 {
            for _ in 0..size {
                let posted = interface.append(List::Priority, &entry(None, 1_000 + bits, &answer, 0));
                open += u32::from(matches!(posted.unwrap(), Appended::Posted(_)));
            }
        }
        drain(&interface, &mut open);
        if rank == 0 {
            for peer in 0..size {
                let release = put(peer, 2_000 + bits, 0, Protocol::Buffered);
                open += u32::from(interface.put(&release).unwrap() == PutOutcome::Pending);
            }
        }
        let posted = interface.append(List::Priority, &entry(Some(ProcessId(0)), 2_000 + bits, &answer, 0));
        open += u32::from(matches!(posted.unwrap(), Appended::Posted(_)));
        drain(&interface, &mut open);
        assert_eq!(content(&target, length), content(&pattern(length, left), length), "{length} bytes");
    }
}

fn drain(interface: &Interface, open: &mut u32) {
    while *open > 0 {
        let ticket = interface.ticket();
        let happened = interface.progress(&mut |event: Event| {
            assert_ne!(event.kind, EventKind::Failed);
            *open -= 1;
        });
        if *open > 0 && !happened {
            interface.wait(ticket, None, None, Company::None);
        }
    }
}

fn pattern(length: usize, seed: u32) -> Scratch {
    let scratch = Scratch::new(length);
    let bytes: Vec<u8> =
        (0..length).map(|index| (index as u8).wrapping_mul(7) ^ (index >> 8) as u8 ^ seed as u8).collect();
    scratch.address().write(&bytes);
    scratch
}

fn content(scratch: &Scratch, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    scratch.address().read(&mut bytes);
    bytes
}
