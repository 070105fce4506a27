//! Sessions: MPI without MPI_COMM_WORLD, from named sets of processes (MPI 5.0, section 11.3).

use crate::constants::MPI_ERR_ARG;
use crate::errhandler::{Errhandler, ErrhandlerSlot};
use crate::group::Group;
use crate::info::Info;
use crate::process::{Process, ThreadLevel};
use crate::{Error, Result};

/// The process sets that every session offers, in the order of MPI_Session_get_nth_pset.
pub const PROCESS_SETS: [&str; 2] = ["mpi://WORLD", "mpi://SELF"];

/// A session.
#[derive(Debug)]
pub struct Session {
    number: u32,
    errhandler: ErrhandlerSlot,
    info: Info,
}

impl Session {
    /// A session of a process that provides `thread_level`. `number` is not 0 and is its own in the process.
    pub fn new(number: u32, errhandler: Errhandler, thread_level: ThreadLevel) -> Session {
        let mut info = Info::new();
        info.set(b"thread_level", thread_level.name().as_bytes()).expect("a short key and value");
        Session { number, errhandler: ErrhandlerSlot::new(errhandler), info }
    }

    /// Its number in the process.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// MPI_Session_get_errhandler.
    pub fn errhandler(&self) -> Errhandler {
        self.errhandler.get()
    }

    /// MPI_Session_set_errhandler.
    pub fn set_errhandler(&self, errhandler: Errhandler) {
        self.errhandler.set(errhandler);
    }

    /// MPI_Session_get_info: the hints in use.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// MPI_Session_get_nth_pset.
    pub fn process_set(&self, index: i32) -> Result<&'static str> {
        usize::try_from(index).ok().and_then(|index| PROCESS_SETS.get(index)).copied().ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                format!(
                    "there is no process set number {index}; the sets are 0 to {}",
                    PROCESS_SETS.len() - 1
                ),
            )
        })
    }

    /// MPI_Group_from_session_pset.
    pub fn group(&self, process: &Process, name: &[u8]) -> Result<Group> {
        // Process set names that start with mpi:// are compared without case (MPI 5.0, section 11.3.2).
        let known = PROCESS_SETS.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        match known {
            Some(0) => Ok(Group::world(process.size()).within_session(self.number)),
            Some(_) => Ok(Group::single(process.me()).within_session(self.number)),
            None => Err(Error::new(
                MPI_ERR_ARG,
                format!(
                    "there is no process set \"{}\"; the sets are {}",
                    name.escape_ascii(),
                    PROCESS_SETS.join(" and ")
                ),
            )),
        }
    }

    /// MPI_Session_get_pset_info.
    pub fn process_set_info(&self, process: &Process, name: &[u8]) -> Result<Info> {
        let mut info = Info::new();
        info.set(b"mpi_size", self.group(process, name)?.size().to_string().as_bytes())?;
        Ok(info)
    }
}

/// The thread level that the hints of MPI_Session_init ask for, if they do (MPI 5.0, section 11.3.1).
pub fn wanted_thread_level(hints: &Info) -> Result<Option<ThreadLevel>> {
    let Some(wanted) = hints.value(b"thread_level") else { return Ok(None) };
    let level = ThreadLevel::ALL.into_iter().find(|level| level.name().as_bytes() == wanted);
    level.map(Some).ok_or_else(|| {
        Error::new(
            MPI_ERR_ARG,
            format!(
                "the info key thread_level is \"{}\"; it must be {}",
                wanted.escape_ascii(),
                ThreadLevel::ALL.map(ThreadLevel::name).join(" or ")
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_the_thread_level() {
        let mut hints = Info::new();
        assert_eq!(wanted_thread_level(&hints), Ok(None));
        hints.set(b"thread_level", b"MPI_THREAD_MULTIPLE").unwrap();
        assert_eq!(wanted_thread_level(&hints), Ok(Some(ThreadLevel::Multiple)));
        hints.set(b"thread_level", b"many").unwrap();
        assert_eq!(wanted_thread_level(&hints).unwrap_err().class(), MPI_ERR_ARG);
        let session = Session::new(1, Errhandler::Return, ThreadLevel::Funneled);
        assert_eq!(session.info().value(b"thread_level"), Some(&b"MPI_THREAD_FUNNELED"[..]));
        assert_eq!(session.process_set(1), Ok("mpi://SELF"));
        assert!(session.process_set(2).is_err() && session.process_set(-1).is_err());
    }
}
