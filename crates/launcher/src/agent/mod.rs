//! Agents: a guardian on each host of a job, started by one above it, with which it talks over the starter's
//! standard input and output. No port is opened for it.

pub mod channel;
pub mod frames;
pub mod plan;
pub mod start;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};

use channel::Channel;
use frames::{Order, VERSION};
use plan::Plan;

/// Bytes of output that an agent may send before the guardian above has passed them on.
pub const OUTPUT_WINDOW: i64 = 1 << 20;

/// What an agent says first, in a line of its own: what a login shell may have said before is skipped.
const GREETING: &str = "parnass-agent";

/// The line that an agent begins with.
fn greeting() -> String {
    format!("{GREETING} {VERSION} {}", env!("CARGO_PKG_VERSION"))
}

/// What stands before the first frame of an agent.
#[derive(Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Not all of it is there yet.
    Incomplete,
    /// It is an agent of this version.
    Known,
    /// It is an agent of this other version.
    Other(String),
}

/// Takes the greeting, and what stands before it, from the bytes that have come.
pub fn take_greeting(arrived: &mut Vec<u8>) -> Greeting {
    let mut start = 0;
    while let Some(end) = memchr::memchr(b'\n', &arrived[start..]).map(|at| start + at) {
        let line = String::from_utf8_lossy(&arrived[start..end]).trim().to_owned();
        start = end + 1;
        if line.starts_with(GREETING) {
            arrived.drain(..start);
            let version = line.split(' ').nth(1).and_then(|version| version.parse().ok());
            return if version == Some(VERSION) { Greeting::Known } else { Greeting::Other(line) };
        }
    }
    Greeting::Incomplete
}

/// Greets whoever has started this process, and waits for its plan. `None` when it goes away instead.
///
/// # Errors
/// Standard input and output are no pipes, or what comes is no plan.
pub fn receive_plan(control: &OwnedFd) -> io::Result<Option<(Plan, Channel)>> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    // What a shell has begun on the line is not part of the greeting.
    File::from(output.try_clone()?).write_all(format!("\n{}\n", greeting()).as_bytes())?;
    let mut channel = Channel::new(input, output)?;
    loop {
        if let Some(order) = channel.next() {
            let Order::Plan(bytes) = order else { return Err(malformed("it does not begin with a plan")) };
            let plan = Plan::decode(&bytes).ok_or_else(|| malformed("the plan makes no sense"))?;
            return Ok(Some((plan, channel)));
        }
        if channel.is_closed() {
            return Ok(None);
        }
        let (from_above, from_front) = {
            let mut set = [
                PollFd::from_borrowed_fd(channel.input(), PollFlags::IN),
                PollFd::new(control, PollFlags::IN),
            ];
            match poll(&mut set, None) {
                Ok(_) => (!set[0].revents().is_empty(), !set[1].revents().is_empty()),
                Err(_) => (false, false),
            }
        };
        if from_front {
            return Ok(None); // Killed, or told to end, before there was anything to do.
        }
        if from_above {
            channel.read();
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{AGENT_MEANING}: {what}"))
}

const AGENT_MEANING: &str = "an agent is started by mpiexec and takes orders from its standard input";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_login_shell_says_is_skipped() {
        let mut bytes = format!("Welcome!\r\nyou have mail\n{}\nrest", greeting()).into_bytes();
        assert_eq!(take_greeting(&mut bytes), Greeting::Known);
        assert_eq!(bytes, b"rest");
        let mut bytes = b"parnass-agent 1000 9.9\n".to_vec();
        assert!(matches!(take_greeting(&mut bytes), Greeting::Other(line) if line.contains("9.9")));
        let mut bytes = b"Welcome!\nparnass-ag".to_vec();
        assert_eq!(take_greeting(&mut bytes), Greeting::Incomplete);
    }
}
