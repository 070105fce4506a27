//! The ranks that `parnass tune` starts: each yardstick ends with one figure, in microseconds, that rank 0 says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mpi_abi::assemble;
use parnass_base::Scratch;
use parnass_mpi::coll::{Call, Collective};
use parnass_mpi::pt2pt::SendMode;
use parnass_mpi::{Buffer, Process, Result, ThreadLevel};

/// How long each figure is measured, at least.
const SPAN: Duration = Duration::from_millis(25);
const TAG: i32 = 1;

/// Runs a yardstick as one of its ranks. What rank 0 has to say.
///
/// # Errors
/// There is no such yardstick, or no job.
pub fn run(yardstick: &str) -> std::result::Result<Option<String>, String> {
    let measure = match yardstick {
        "exchange" => exchange,
        "late" => late,
        "crowd" => crowd,
        other => return Err(format!("there is no yardstick '{other}'")),
    };
    let process = assemble::process(ThreadLevel::Single)?;
    if process.size() < 2 {
        return Err("a yardstick needs two ranks; parnass tune starts them".to_owned());
    }
    let figures = measure(&process).map_err(|error| format!("{error:?}"))?;
    process.finalize().map_err(|error| format!("{error:?}"))?;
    let mean = figures.iter().map(|figure| figure.ln()).sum::<f64>() / figures.len() as f64;
    Ok((process.rank() == 0).then(|| format!("{:.4}\n", mean.exp())))
}

/// The two sides of a yardstick for two ranks, with memory for messages.
struct Pair<'a> {
    process: &'a Arc<Process>,
    peer: i32,
    memory: Scratch,
}

impl Pair<'_> {
    fn new(process: &Arc<Process>, longest: usize) -> Pair<'_> {
        let memory = Scratch::new(longest);
        memory.address().write(&vec![1; longest]);
        Pair { process, peer: 1 - process.rank() as i32, memory }
    }

    fn buffer(&self, length: usize) -> Buffer<'_> {
        Buffer::new(self.memory.address(), length as u64, self.process.datatypes().byte())
    }

    fn send(&self, length: usize) -> Result<()> {
        self.process.send(self.process.world(), self.buffer(length), self.peer, TAG, SendMode::Standard)
    }

    fn receive(&self, length: usize) -> Result<()> {
        self.process.receive(self.process.world(), self.buffer(length), self.peer, TAG).map(drop)
    }
}

/// Whether to go on: rank 0 decides, by its clock, and tells the others.
fn go_on(process: &Arc<Process>, since: Instant) -> Result<bool> {
    let flag = Scratch::new(1);
    flag.address().write(&[u8::from(since.elapsed() < SPAN)]);
    let byte = process.datatypes().byte();
    let side = parnass_mpi::coll::Side::Even { address: flag.address(), count: 1, datatype: byte };
    process.collective(&Call { root: 0, recv: side, ..Call::new(process.world(), Collective::Bcast) })?;
    let mut answer = [0];
    flag.address().read(&mut answer);
    Ok(answer[0] != 0)
}

fn microseconds(time: Duration, times: u32) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(times)
}

/// Half round trips of several lengths; each side writes its buffer anew.
fn exchange(process: &Arc<Process>) -> Result<Vec<f64>> {
    const LENGTHS: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
    const BATCH: u32 = 50;
    let pair = Pair::new(process, LENGTHS[4]);
    let content = vec![7; LENGTHS[4]];
    let mut figures = Vec::new();
    for length in LENGTHS {
        let mut best = f64::INFINITY;
        let begin = Instant::now();
        while go_on(process, begin)? {
            let start = Instant::now();
            for _ in 0..BATCH {
                if process.rank() == 0 {
                    pair.memory.address().write(&content[..length]);
                    pair.send(length)?;
                    pair.receive(length)?;
                } else {
                    pair.receive(length)?;
                    pair.memory.address().write(&content[..length]);
                    pair.send(length)?;
                }
            }
            best = best.min(microseconds(start.elapsed(), 2 * BATCH));
        }
        figures.push(best);
    }
    Ok(figures)
}

/// Rank 1 computes for a while before it answers: by how much the answer takes longer than that.
fn late(process: &Arc<Process>) -> Result<Vec<f64>> {
    let pair = Pair::new(process, 8);
    let begin = Instant::now();
    let (mut beyond, mut rounds) = (0.0, 0);
    let mut pause = 0u64;
    while go_on(process, begin)? || rounds < 400 {
        for _ in 0..20 {
            pause = (pause * 1103 + 77) % 200;
            let pause = Duration::from_micros(pause);
            if process.rank() == 0 {
                let start = Instant::now();
                pair.send(8)?;
                pair.receive(8)?;
                beyond += (start.elapsed().saturating_sub(pause)).as_secs_f64() * 1e6;
            } else {
                pair.receive(8)?;
                let start = Instant::now();
                while start.elapsed() < pause {
                    std::hint::spin_loop();
                }
                pair.send(8)?;
            }
            rounds += 1;
        }
    }
    Ok(vec![beyond / f64::from(rounds)])
}

/// More ranks than processors: a barrier, and an exchange with the neighbour.
fn crowd(process: &Arc<Process>) -> Result<Vec<f64>> {
    const BATCH: u32 = 20;
    let barrier = || process.collective(&Call::new(process.world(), Collective::Barrier));
    let mut figures = Vec::new();
    let mut times = [0u32; 2];
    let mut spent = [Duration::ZERO; 2];
    let pair = Pair { peer: (process.rank() ^ 1) as i32, ..Pair::new(process, 8) };
    let begin = Instant::now();
    while go_on(process, begin)? || times[0] < 5 * BATCH {
        let start = Instant::now();
        for _ in 0..BATCH {
            barrier()?;
        }
        spent[0] += start.elapsed();
        times[0] += BATCH;
        let start = Instant::now();
        for _ in 0..BATCH {
            if pair.peer < process.size() as i32 {
                if process.rank().is_multiple_of(2) {
                    pair.send(8)?;
                    pair.receive(8)?;
                } else {
                    pair.receive(8)?;
                    pair.send(8)?;
                }
            }
        }
        barrier()?;
        spent[1] += start.elapsed();
        times[1] += BATCH;
    }
    for (time, count) in spent.into_iter().zip(times) {
        figures.push(microseconds(time, count));
    }
    Ok(figures)
}
