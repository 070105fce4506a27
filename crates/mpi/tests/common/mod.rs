//! Several processes in one program, one thread or more each: over one memory for the job, and over two memories with
//! TCP between them, as on two nodes.
#![allow(dead_code)]

use parnass_base::{Scratch, UserAddress};
use parnass_mpi::datatype::{Buffer, Datatype};
use parnass_mpi::process::NoLauncher;
use parnass_mpi::{Process, Settings, ThreadLevel, Tuning};
use parnass_portals::Interface;
use parnass_transport_hybrid::{Duty, Hybrid, waker};
use parnass_transport_shm::{JobMemory, SharedMemory};
use parnass_transport_tcp::{Listener, Selection, Tuning as TcpTuning};
use std::any::Any;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Runs `body` as each rank of a job of `size` processes, and finalizes them: on one node, and dealt out to two.
pub fn run(size: u32, thread_level: ThreadLevel, body: impl Fn(&Arc<Process>) + Sync) {
    let memory = Mappings::new(size);
    run_on(size, thread_level, &[], &body, &|rank| {
        let transport = SharedMemory::attach(memory.next(), rank).unwrap();
        Interface::new(Box::new(transport)).unwrap()
    });
    if size == 1 {
        return;
    }
    let nodes: Vec<u32> = (0..size).map(|rank| rank % 2).collect();
    let memories = [size.div_ceil(2), size / 2].map(Mappings::new);
    let listeners: Vec<_> =
        nodes.iter().map(|_| Mutex::new(Listener::new("here", &Selection::default()).ok())).collect();
    let contacts: Vec<_> =
        listeners.iter().map(|listener| listener.lock().unwrap().as_ref().unwrap().contact()).collect();
    run_on(size, thread_level, &nodes, &body, &|rank| {
        let memory = &memories[rank as usize % 2];
        let near = Arc::new(SharedMemory::attach(memory.next(), rank / 2).unwrap());
        let listener = listeners[rank as usize].lock().unwrap().take().unwrap();
        let lost = Box::new(move |loss| end(rank, &format!("{loss}")));
        let tuning = TcpTuning::default();
        let duty = Duty::default();
        let tcp = listener.join(rank, &[7; 32], &contacts, waker(&near, &duty), lost, tuning).unwrap();
        Interface::new(Box::new(Hybrid::new(near, tcp, &nodes, duty))).unwrap()
    });
}

/// The memory of a job. Each rank has a mapping of its own, as processes have; but the thread sanitizer, which knows memory by its
/// address, would not see what they tell each other, so that under it they share one.
struct Mappings {
    file: OwnedFd,
    shared: JobMemory,
}

impl Mappings {
    fn new(size: u32) -> Mappings {
        let file = JobMemory::create(size).unwrap();
        let shared = JobMemory::open(file.try_clone().unwrap()).unwrap();
        Mappings { file, shared }
    }

    fn next(&self) -> JobMemory {
        match cfg!(tsan) {
            true => self.shared.clone(),
            false => JobMemory::open(self.file.try_clone().unwrap()).unwrap(),
        }
    }
}

fn run_on(
    size: u32,
    thread_level: ThreadLevel,
    nodes: &[u32],
    body: &(impl Fn(&Arc<Process>) + Sync),
    interface: &(dyn Fn(u32) -> Interface + Sync),
) {
    std::thread::scope(|scope| {
        for rank in 0..size {
            std::thread::Builder::new()
                .name(format!("rank {rank}"))
                .spawn_scoped(scope, move || {
                    let process = Process::new(interface(rank), settings(thread_level, nodes));
                    let play = AssertUnwindSafe(|| {
                        body(&process);
                        process.finalize().unwrap();
                    });
                    if let Err(panic) = catch_unwind(play) {
                        end(rank, panic.as_ref());
                    }
                })
                .unwrap();
        }
    });
}

/// The other ranks would wait for ever for one that has failed.
fn end(rank: u32, panic: &(dyn Any + Send)) -> ! {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let _ = writeln!(std::io::stderr(), "rank {rank} has failed: {}", text.unwrap_or("?"));
    std::process::exit(101)
}

fn settings(thread_level: ThreadLevel, nodes: &[u32]) -> Settings {
    Settings {
        app_number: 0,
        universe_size: 1,
        host_name: "here".into(),
        thread_level,
        tuning: Tuning::default(),
        collectives: parnass_mpi::coll::Settings { nodes: nodes.to_vec(), ..Default::default() },
        launcher: Box::new(NoLauncher),
        recovery: None,
        connector: None,
    }
}

/// MPI_BYTE.
pub fn byte(process: &Process) -> &Arc<Datatype> {
    process.datatypes().byte()
}

/// Memory with this content.
pub fn memory(content: &[u8]) -> Scratch {
    let memory = Scratch::new(content.len());
    memory.address().write(content);
    memory
}

/// The first `length` bytes of memory.
pub fn content(memory: &Scratch, length: usize) -> Vec<u8> {
    let mut content = vec![0; length];
    memory.address().read(&mut content);
    content
}

/// A buffer of bytes.
pub fn bytes<'a>(process: &'a Process, memory: &Scratch) -> Buffer<'a> {
    Buffer::new(memory.address(), memory.len() as u64, byte(process))
}

/// A buffer without bytes.
pub fn nothing(process: &Process) -> Buffer<'_> {
    Buffer::new(UserAddress::NULL, 0, byte(process))
}

/// Numbers that look random; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// What message number `sequence` from `source` to `target` with `tag` contains.
pub fn pattern(source: u32, target: u32, tag: i32, sequence: u64, length: usize) -> Vec<u8> {
    let seed = u64::from(source) << 48 | u64::from(target) << 40 | (tag as u64) << 24 | sequence;
    let mut random = Random::new(seed ^ 0x5eed);
    let start = random.next() as u8;
    let step = random.next() as u8 | 1;
    (0..length).map(|index| start.wrapping_add(step.wrapping_mul(index as u8)) ^ (index >> 8) as u8).collect()
}
