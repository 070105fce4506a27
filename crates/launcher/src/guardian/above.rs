//! What a guardian that is an agent hears from the one above, and says to it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::exit;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Guardian, Source, Work, timespec};
use crate::agent::channel::Channel;
use crate::agent::frames::{Order, Report};
use crate::agent::{self, OUTPUT_WINDOW};
use crate::environment::on_this_machine;
use crate::output::Sink;
use crate::program::{self, NOT_FOUND, Problem};

/// An agent that has heard nothing from above for so long is cut off: its ranks end.
const SILENCE: Duration = Duration::from_secs(20);

/// The guardian above.
#[derive(Debug)]
pub(super) struct Above {
    channel: Channel,
    /// How many more bytes of output it takes.
    credit: i64,
    heard: Instant,
    /// The way to rank 0, where that is here.
    input: Option<RankInput>,
}

/// The standard input of rank 0.
#[derive(Debug)]
struct RankInput {
    pipe: OwnedFd,
    waiting: Vec<u8>,
    /// Nothing comes after what waits.
    ended: bool,
}

impl Above {
    pub(super) fn watch(&self, poll_set: &OwnedFd) -> io::Result<()> {
        let from = epoll::add(poll_set, self.channel.input(), Source::Above.encode(), epoll::EventFlags::IN);
        from.map_err(|_| io::Error::other("an agent's standard input must be a pipe or a socket"))?;
        let edge = epoll::EventFlags::OUT | epoll::EventFlags::ET;
        // A file takes everything at once, and cannot be waited for.
        let _ = epoll::add(poll_set, self.channel.output(), Source::Above.encode(), edge);
        Ok(())
    }

    /// A pipe to rank 0; gives the end that it reads.
    pub(super) fn make_input(&mut self, poll_set: &OwnedFd) -> io::Result<OwnedFd> {
        let (for_rank, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let edge = epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(poll_set, &pipe, Source::RankInput.encode(), edge)?;
        self.input = Some(RankInput { pipe, waiting: Vec::new(), ended: false });
        Ok(for_rank)
    }
}

/// Waits for the plan. `None` when nobody is above any more.
pub(super) fn receive(control: &OwnedFd) -> io::Result<Option<(Work, Option<Problem>, Above)>> {
    let Some((plan, channel)) = agent::receive_plan(control)? else { return Ok(None) };
    let host = plan.roster.node.map_or("", |node| plan.roster.description.nodes.name(node)).to_owned();
    let prepared = enter(&plan.directory, &plan.job).and_then(|()| program::resolve(&plan.job));
    let (programs, problem) = match prepared {
        Ok(programs) => (programs, None),
        Err(problem) => {
            (Vec::new(), Some(Problem { message: format!("{host}: {}", problem.message), ..problem }))
        }
    };
    let work = Work {
        job: plan.job,
        roster: plan.roster,
        programs,
        variables: plan.variables.into_iter().map(on_this_machine).collect(),
        terminals: plan.terminals,
        caller: None,
    };
    let above = Above { channel, credit: OUTPUT_WINDOW, heard: Instant::now(), input: None };
    Ok(Some((work, problem, above)))
}

/// Goes where `mpiexec` was started.
fn enter(directory: &Path, job: &crate::arguments::Job) -> Result<(), Problem> {
    let elsewhere =
        |part: &crate::arguments::Part| part.directory.as_ref().is_some_and(|own| own.is_absolute());
    match std::env::set_current_dir(directory) {
        Err(error) if !job.parts.iter().all(elsewhere) => Err(Problem {
            message: format!(
                "the directory {} cannot be used here: {error}; start mpiexec in one that every host has, or name one \
                 with --wdir",
                directory.display()
            ),
            exit_code: NOT_FOUND,
        }),
        _ => Ok(()),
    }
}

impl Guardian {
    /// Tells the guardian above, if there is one; after what the ranks have written before.
    pub(super) fn report(&mut self, report: Report) {
        self.pass_output();
        if let Some(above) = &mut self.above {
            above.channel.queue(&report);
        }
    }

    /// Hands up what the ranks have written, as far as the guardian above takes it.
    pub(super) fn pass_output(&mut self) {
        let Some(above) = &mut self.above else { return };
        for (stream, sink) in self.sinks.iter_mut().enumerate() {
            while above.credit > 0 {
                let Some((rank, bytes)) = sink.take() else { break };
                above.credit -= bytes.len() as i64;
                above.channel.queue(&Report::Output { rank, stream: stream as u8, bytes });
            }
        }
    }

    pub(super) fn flush_above(&mut self) {
        if let Some(above) = &mut self.above {
            above.channel.flush();
        }
    }

    pub(super) fn read_above(&mut self) {
        loop {
            let Some(above) = &mut self.above else { return };
            let came = above.channel.read();
            if came {
                above.heard = Instant::now();
            }
            while let Some(order) = self.above.as_mut().and_then(|above| above.channel.next()) {
                self.obey_above(order);
            }
            if self.above.as_ref().is_some_and(|above| above.channel.is_closed()) {
                self.leave();
            }
            if !came {
                return;
            }
        }
    }

    /// Nobody is above any more: nobody reads what the ranks say, or waits for them.
    fn leave(&mut self) -> ! {
        self.kill_all();
        exit(1)
    }

    fn obey_above(&mut self, order: Order) {
        match order {
            Order::Plan(_) => self.leave(), // It comes once.
            Order::Start => {
                self.go = true;
                self.order_all(&order);
            }
            Order::Signal(signal) => self.forward(signal),
            Order::End if self.is_ending() => {}
            Order::End => self.end_ranks(1),
            Order::Kill => {
                self.code.get_or_insert(1);
                self.impatient = true;
                self.kill_at.get_or_insert(Instant::now());
                self.term_at = None;
            }
            Order::Finish => {
                self.finishing = true;
                self.order_all(&order);
            }
            Order::Input(bytes) => self.take_input(bytes),
            Order::Credit(bytes) => {
                if let Some(above) = &mut self.above {
                    above.credit += i64::from(bytes);
                }
            }
            Order::Exchanged { wave, round, parts } => self.hand_out(wave, round, parts),
            Order::Ping => self.report(Report::Pong),
            Order::CloseOutput(stream) => {
                self.sinks[usize::from(stream)].close();
                self.close_output(usize::from(stream));
            }
            Order::Explain { thorough } => self.ask_ranks(thorough),
            Order::News { rank, wave, bytes } => self.pass_news(rank, wave, &bytes),
        }
    }

    /// Input for rank 0, which is here or below.
    fn take_input(&mut self, bytes: Vec<u8>) {
        let Some(input) = self.above.as_mut().and_then(|above| above.input.as_mut()) else {
            return self.order_first(&Order::Input(bytes));
        };
        input.ended |= bytes.is_empty();
        input.waiting.extend(bytes);
        self.feed_rank();
    }

    /// Writes what waits for rank 0, as far as it takes it.
    pub(super) fn feed_rank(&mut self) {
        let Some(above) = &mut self.above else { return };
        let Some(input) = &mut above.input else { return };
        let mut taken = 0;
        while taken < input.waiting.len() {
            match rustix::io::write(&input.pipe, &input.waiting[taken..]) {
                Ok(count) => taken += count,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => taken = input.waiting.len(), // Rank 0 reads no more.
            }
        }
        input.waiting.drain(..taken);
        if input.ended && input.waiting.is_empty() {
            above.input = None;
        }
        if taken > 0 {
            self.report(Report::InputTaken(taken as u32));
        }
    }

    pub(super) fn look_above(&mut self, now: Instant, asleep: Duration) {
        let Some(above) = &mut self.above else { return };
        above.heard += asleep; // Time in which this process did not run counts for nobody.
        if above.heard + SILENCE <= now {
            self.leave();
        }
    }

    /// The last turn of an agent: no process is left, but output may be.
    pub(super) fn finish_below(&mut self) -> u8 {
        self.report_accounts();
        self.report(Report::Gone);
        loop {
            self.flush();
            let output_left = self.sinks.iter().any(Sink::is_waiting);
            let waiting = self.above.as_ref().is_some_and(|above| above.channel.is_waiting());
            if !output_left && !waiting || self.impatient {
                return 0; // What has become of the ranks was reported; the agent has done its work.
            }
            let mut events = Vec::with_capacity(8);
            let space = rustix::buffer::spare_capacity(&mut events);
            let _ = epoll::wait(&self.epoll, space, Some(&timespec(Duration::from_secs(1))));
            for event in &events {
                match Source::decode(event.data) {
                    Source::Above => self.read_above(),
                    Source::Control => self.read_control(),
                    Source::Child => while self.children.take().is_some() {},
                    _ => {}
                }
            }
            self.look_above(Instant::now(), Duration::ZERO);
        }
    }
}
