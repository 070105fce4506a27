//! Which calls ranks are in, and from where in the program: read from outside, by a process that does nothing else.
//!
//! It is one of its own since it reads what programs have on their stacks and in their files: whatever that leads to, the job goes on; and it ends when
//! it takes too long. What has come until then counts.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use parnass_base::process::{Fork, fork_alone};
use parnass_stacks::{Frame, Observer, Place, Thread};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::timespec;

/// Functions that are named of those that have called one another.
const CALLERS: usize = 3;
/// Characters of a function's name that are shown; those of templates are long.
const NAME: usize = 60;
/// Threads of a rank that are told of besides the first.
const OTHERS: usize = 2;

/// What a rank is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Doing {
    /// The procedure of MPI.
    pub(super) procedure: Option<String>,
    /// From where: "called by f at a.c:3, main at a.c:9"; outside MPI where it is: "in f at a.c:3". Empty where that is not known.
    pub(super) place: String,
    /// Other threads that are in MPI, with all that is told of them.
    pub(super) others: Vec<String>,
}

/// What these processes are in, by rank, as far as it was found out within `limit`.
pub(super) fn of(processes: &[(usize, i32)], limit: Duration) -> BTreeMap<usize, Doing> {
    let mut text = Vec::new();
    if !processes.is_empty()
        && let Ok((from, to)) = pipe_with(PipeFlags::CLOEXEC)
    {
        match fork_alone() {
            Ok(Fork::Child) => {
                drop(from);
                tell(processes, to);
                std::process::exit(0);
            }
            Ok(Fork::Parent(child)) => {
                drop(to);
                text = read(from, Instant::now() + limit);
                if let Some(child) = Pid::from_raw(child) {
                    let _ = kill_process(child, Signal::KILL);
                    let _ = waitpid(Some(child), WaitOptions::empty());
                }
            }
            Err(_) => {}
        }
    }
    String::from_utf8_lossy(&text).split_inclusive('\n').filter_map(parse).collect()
}

/// What comes until its end, or until it is time.
fn read(from: OwnedFd, until: Instant) -> Vec<u8> {
    let mut file = std::fs::File::from(from);
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let left = timespec(until.saturating_duration_since(Instant::now()));
        let ready = poll(&mut [PollFd::new(&file.as_fd(), PollFlags::IN)], Some(&left));
        match ready {
            Ok(0) => return all,
            Ok(_) => match file.read(&mut bytes) {
                Ok(0) | Err(_) => return all,
                Ok(count) => all.extend_from_slice(&bytes[..count]),
            },
            Err(_) if Instant::now() < until => {}
            Err(_) => return all,
        }
    }
}

/// A line for each process: its rank and what it is in, with tabs between.
fn tell(processes: &[(usize, i32)], to: OwnedFd) {
    let mut observer = Observer::default();
    let mut to = std::fs::File::from(to);
    for &(rank, process) in processes {
        let Ok(threads) = observer.threads(process) else { continue };
        let Doing { procedure, place, others } = doing(&threads);
        let fields = [rank.to_string(), procedure.unwrap_or_default(), place].into_iter().chain(others);
        let fields: Vec<String> = fields.map(|field| field.replace(['\t', '\n'], " ")).collect();
        if to.write_all((fields.join("\t") + "\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn parse(line: &str) -> Option<(usize, Doing)> {
    let mut fields = line.strip_suffix('\n')?.split('\t');
    let rank = fields.next()?.parse().ok()?;
    let procedure = fields.next().filter(|name| !name.is_empty()).map(str::to_owned);
    let place = fields.next()?.to_owned();
    Some((rank, Doing { procedure, place, others: fields.map(str::to_owned).collect() }))
}

fn doing(threads: &[Thread]) -> Doing {
    let mut inside = threads.iter().filter_map(in_procedure);
    match (inside.next(), threads.first()) {
        (Some((procedure, place)), _) => {
            let others = inside
                .take(OTHERS)
                .map(|(name, place)| if place.is_empty() { name } else { format!("{name}, {place}") });
            Doing { procedure: Some(procedure), place, others: others.collect() }
        }
        (None, Some(first)) => Doing { place: outside(first), ..Doing::default() },
        (None, None) => Doing::default(),
    }
}

/// The procedure of MPI that a stack leads through, and from where it was called. The outermost one counts: it is what the program has called.
fn in_procedure(thread: &Thread) -> Option<(String, String)> {
    let frames = &thread.frames[..];
    let end = frames.iter().rposition(|frame| is_ours(frame) || procedure(frame).is_some())?;
    let name = frames[..=end].iter().rev().find_map(procedure)?;
    let of_fortran = |frame: &&Frame| frame.symbol().is_some_and(|symbol| wraps(symbol, &name));
    let wrappers = frames[end + 1..].iter().take_while(of_fortran).count();
    let callers = chain(&frames[end + 1 + wrappers..], &thread.python);
    Some((name, if callers.is_empty() { callers } else { format!("called by {callers}") }))
}

/// Where a stack is that leads through no procedure.
fn outside(thread: &Thread) -> String {
    let frames = &thread.frames[..];
    let is_program = |frame: &Frame| {
        frame.is_own() || frame.is_python() || frame.places().iter().any(|place| place.line.is_some())
    };
    let start = frames.iter().position(is_program).unwrap_or(0);
    let callers = chain(&frames[start..], &thread.python);
    if callers.is_empty() {
        return callers;
    }
    // Of a library, the function that the program has called.
    match frames[..start].iter().rev().find_map(Frame::name) {
        Some(function) => format!("in {}, called by {callers}", shortened(&function)),
        None => format!("in {callers}"),
    }
}

/// Whether it is of a library of this project.
fn is_ours(frame: &Frame) -> bool {
    frame.file_name().is_some_and(|name| name.starts_with("libmpi") && name.contains(".so"))
}

/// Whether it is of the library of C.
fn is_of_system(frame: &Frame) -> bool {
    frame.file_name().is_some_and(|name| name.starts_with("libc.") || name.starts_with("libpthread"))
}

/// The procedure whose export or body a frame is of.
fn procedure(frame: &Frame) -> Option<String> {
    let name = frame.name()?;
    let exported = name.strip_prefix('P').unwrap_or(&name);
    if exported.starts_with("MPI_") { Some(exported.to_owned()) } else { of_body(&name) }
}

/// The procedure whose body a function of our libraries is: the export itself has left to it.
fn of_body(function: &str) -> Option<String> {
    let path = ["mpi_abi::generated::", "mpi_mpich::generated::"]
        .iter()
        .find_map(|module| function.strip_prefix(module))?;
    let name = path.split("::").nth(1)?;
    // A body is in two parts where there is a quicker way than to look at all arguments.
    let name = name.strip_suffix("_checked").unwrap_or(name);
    let (first, rest) = name.split_at_checked(1)?;
    Some(format!("MPI_{}{rest}", first.to_ascii_uppercase()))
}

/// Whether a symbol is that of a Fortran interface to this procedure, as mpi_recv_ and mpi_recv_f08ts_ are to MPI_Recv.
fn wraps(symbol: &str, procedure: &str) -> bool {
    let symbol = symbol.strip_prefix('p').unwrap_or(symbol);
    let rest = symbol.strip_prefix(&*procedure.to_ascii_lowercase());
    rest.is_some_and(|rest| rest.starts_with('_') && rest.ends_with('_'))
}

/// The innermost functions of a stack, up to the program's main one: "f at a.c:3, main at a.c:9". Where an interpreter runs the program, those that it
/// runs follow those that it has called.
fn chain(frames: &[Frame], python: &[Place]) -> String {
    let mut names = native(frames);
    names.extend(python.iter().take(CALLERS).filter_map(named));
    names.join(", ")
}

fn native(frames: &[Frame]) -> Vec<String> {
    let mut names = Vec::new();
    for frame in frames {
        // What has begun the program, or a thread of it, is none of its own.
        if frame.is_python() || !names.is_empty() && is_of_system(frame) {
            break;
        }
        for place in frame.places() {
            let function = place.function.as_deref().unwrap_or_default();
            // What Cython has made says nothing to who wrote Python.
            if function.starts_with("__pyx_") {
                continue;
            }
            names.push(named(&place).unwrap_or_else(|| frame.address()));
            if names.len() == CALLERS || ["main", "MAIN__"].contains(&function) {
                return names;
            }
        }
    }
    names
}

/// "f at a.c:3", or "f".
fn named(place: &Place) -> Option<String> {
    let function = shortened(place.function.as_deref()?);
    Some(match &place.line {
        Some((file, line)) => format!("{function} at {file}:{line}"),
        None => function,
    })
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_interfaces_are_known_by_their_names() {
        assert_eq!(of_body("mpi_abi::generated::pt2pt::recv").as_deref(), Some("MPI_Recv"));
        assert_eq!(of_body("mpi_abi::generated::coll::ibcast_c::h0123").as_deref(), Some("MPI_Ibcast_c"));
        assert_eq!(of_body("mpi_abi::generated::pt2pt::irecv_c_checked").as_deref(), Some("MPI_Irecv_c"));
        assert_eq!(of_body("mpi_abi::calls::requests::waitall"), None);
        assert!(wraps("mpi_recv_", "MPI_Recv") && wraps("pmpi_recv_f08ts_", "MPI_Recv"));
        assert!(!wraps("mpi_receive_all_", "MPI_Recv") && !wraps("mpi_recv", "MPI_Recv"));
    }

    #[test]
    fn names_are_cut() {
        assert_eq!(shortened("main"), "main");
        assert_eq!(shortened(&"\u{e9}".repeat(100)).chars().count(), NAME + 3);
    }

    #[test]
    fn what_is_told_is_read_again() {
        let doing = Doing {
            procedure: Some("MPI_Recv".to_owned()),
            place: "called by main at a.c:3".to_owned(),
            others: vec!["MPI_Send".to_owned()],
        };
        assert_eq!(parse("3\tMPI_Recv\tcalled by main at a.c:3\tMPI_Send\n"), Some((3, doing)));
        assert_eq!(parse("4\t\t\n"), Some((4, Doing::default())));
        assert_eq!(parse("4\tMPI_Recv\tcut o"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_is_looked_at_from_a_process_of_its_own() {
        // The tests have several threads, of which none may fork: nothing is found out, and nothing fails.
        assert!(of(&[(0, std::process::id() as i32)], Duration::from_secs(1)).is_empty());
        assert!(of(&[], Duration::from_secs(1)).is_empty());
    }
}
