//! Jobs that are hit at random times in random places: each ends, and nothing of it is left.

mod common;

use common::{await_until, mark, marked, mpiexec};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// What the job consists of; none of it ends by itself.
const SCRIPTS: [&str; 3] = [
    "exec sleep 300",
    "sleep 300 & (setsid sh -c 'trap \"\" TERM; sleep 301' &); wait",
    "trap 'exit 0' TERM; while :; do sleep 0.05; done",
];

#[derive(Clone, Copy, Debug)]
enum Hit {
    Front,
    Guardian,
    Both,
    Rank,
    Request,
    Interrupts,
}

/// A sequence that looks random and is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn send(process: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(process).unwrap(), signal); // It may have ended already.
}

fn children(process: i32) -> Vec<i32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn hit(hit: Hit, front: i32, numbers: &mut Numbers) {
    let guardian = children(front).first().copied();
    match hit {
        Hit::Front => send(front, Signal::KILL),
        Hit::Guardian => send(guardian.unwrap_or(front), Signal::KILL),
        Hit::Both => {
            // Stopped first, so that neither can clean up after the other.
            send(front, Signal::STOP);
            send(guardian.unwrap_or(front), Signal::KILL);
            send(front, Signal::KILL);
        }
        Hit::Rank => {
            let ranks = guardian.map(children).unwrap_or_default();
            let chosen = ranks.get(numbers.below(ranks.len().max(1) as u64) as usize);
            send(chosen.copied().unwrap_or(front), Signal::KILL);
        }
        Hit::Request => send(front, Signal::TERM),
        Hit::Interrupts => {
            send(front, Signal::INT);
            std::thread::sleep(Duration::from_millis(2));
            send(front, Signal::INT);
        }
    }
}

fn end(mut child: Child, what: &str) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(40), "mpiexec goes on: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_job_ends_and_leaves_nothing() {
    let mut numbers = Numbers(5);
    for round in 0..40 {
        let mark = mark();
        let all = [Hit::Front, Hit::Guardian, Hit::Both, Hit::Rank, Hit::Request, Hit::Interrupts];
        let chosen = all[numbers.below(6) as usize];
        let script = match chosen {
            // Where both die at once only the ranks themselves are sure to die with them.
            Hit::Both => SCRIPTS[0],
            // Every child of the guardian is a rank, none is adopted.
            Hit::Rank => SCRIPTS[[0, 2][numbers.below(2) as usize]],
            _ => SCRIPTS[numbers.below(3) as usize],
        };
        let ranks = [1, 2, 8][numbers.below(3) as usize];
        let what = format!("round {round}, {chosen:?} with {ranks} of {script}");
        let variable = format!("MARK={mark}");
        let mut command = mpiexec(&["-x", &variable, "-n", &ranks.to_string(), "sh", "-c", script]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(numbers.below([200, 3_000, 30_000][round % 3])));
        hit(chosen, child.id() as i32, &mut numbers);
        end(child, &what);
        await_until(&what, || marked(&mark).is_empty());
    }
}
