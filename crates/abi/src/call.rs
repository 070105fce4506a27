//! One call of an MPI procedure: entering it, and handing its error over (MPI 5.0, section 9.3).

use crate::handles::Class;
use crate::objects::{Communicator, Errhandler, Process, Window};
use crate::state::{self, Running, Stage};
use parnass_mpi::Error;
use parnass_mpi::constants::*;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::io::Write;
use std::sync::Arc;

/// A call under way.
pub struct Call {
    name: &'static str,
    running: Option<&'static Running>,
    /// Whose error handler is to run, where no argument says it. Boxed, so that a call that sets none pays one
    /// comparison at its end.
    raise_on: Cell<Option<Box<RaiseOn>>>,
}

/// Where the error of a call goes.
enum RaiseOn {
    /// To the error handler of this communicator, unless an argument names one (see [`Call::raise_on`]).
    Communicator(Arc<Communicator>),
    /// To this error handler, with the handle and the description of what holds it (see [`Call::raise_with`]).
    Handler(Errhandler, usize, String),
}

impl Call {
    /// Enters a procedure that needs MPI to be running. Otherwise the program ends: there is no error handler.
    #[inline(always)]
    pub fn enter(name: &'static str) -> Call {
        match state::running() {
            Some(running) => Call { name, running: Some(running), raise_on: Cell::new(None) },
            None => outside(name),
        }
    }

    /// Enters a procedure that may be called at any time.
    #[inline(always)]
    pub fn enter_any_time(name: &'static str) -> Call {
        Call { name, running: state::running(), raise_on: Cell::new(None) }
    }

    /// The name of the procedure, as the program called it (without a P in front).
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The process. Only for procedures that need MPI to be running (in the table: without `"when": "any"`).
    #[inline(always)]
    pub fn process(&self) -> &'static Arc<Process> {
        match self.running {
            Some(running) => &running.process,
            None => outside(self.name),
        }
    }

    /// The process, if MPI is running.
    pub fn process_if_running(&self) -> Option<&'static Arc<Process>> {
        self.running.map(|running| &running.process)
    }

    /// The running state, if MPI is running.
    pub fn running(&self) -> Option<&'static Running> {
        self.running
    }

    /// Lets an error of this call go to the error handler of `communicator`. For calls whose arguments name no
    /// communicator, but whose requests belong to one. (A communicator among the arguments needs no such call.)
    pub fn raise_on(&self, communicator: &Arc<Communicator>) {
        self.raise_on.set(Some(Box::new(RaiseOn::Communicator(communicator.clone()))));
    }

    /// Lets an error of this call go to the error handler of a session or file with this handle, which messages describe so.
    pub fn raise_with(&self, errhandler: Errhandler, handle: usize, holder: &str) {
        self.raise_on.set(Some(Box::new(RaiseOn::Handler(errhandler, handle, holder.to_owned()))));
    }

    /// Lets an error of this call go to the error handler of a window with this handle. (A window among the arguments that is
    /// not freed needs no such call.)
    pub fn raise_with_window(&self, window: &Window, handle: usize) {
        self.raise_with(window.errhandler(), handle, "the window");
    }

    /// The error of a procedure that has no body yet.
    #[cold]
    pub fn missing(&self) -> Error {
        Error::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            format!(
                "{} is not implemented in this version of Parnass (`parnass info --missing` lists what is not)",
                self.name
            ),
        )
    }

    /// Ends a call that has succeeded.
    #[inline(always)]
    pub fn succeed(self) -> c_int {
        // Spelled out, so that a call which sets no handler ends without calling a destructor.
        drop(self.raise_on.take());
        std::mem::forget(self);
        MPI_SUCCESS
    }

    /// Hands an error over where no argument names a communicator.
    #[cold]
    pub fn fail(self, error: Error) -> c_int {
        self.raise(None, error)
    }

    /// Hands an error over to the error handler of the communicator with this handle, if it is one.
    #[cold]
    pub fn fail_on(self, communicator: usize, error: Error) -> c_int {
        let communicator = Communicator::table().find(communicator).map(|held| Arc::clone(&held));
        self.raise(communicator, error)
    }

    /// Hands an error over to the error handler of the window with this handle, if it is one.
    #[cold]
    pub fn fail_on_window(self, window: usize, error: Error) -> c_int {
        if let Some(held) = Window::table().find(window) {
            self.raise_with_window(&held, window);
        }
        self.raise(None, error)
    }

    /// Hands an error over to the error handler of the file with this handle; to that of MPI_FILE_NULL if it is none.
    #[cold]
    pub fn fail_on_file(self, file: usize, error: Error) -> c_int {
        let earlier = self.raise_on.take();
        if earlier.is_some() {
            self.raise_on.set(earlier);
        } else {
            let (errhandler, handle, holder) = crate::calls::error::of_file(file);
            self.raise_with(errhandler, handle, &holder);
        }
        self.raise(None, error)
    }

    fn raise(&self, argument: Option<Arc<Communicator>>, error: Error) -> c_int {
        let code = error.class();
        let text = self.describe(&error);
        remember(code, &text);
        let (communicator, errhandler) = match self.raise_on.take().map(|raise_on| *raise_on) {
            Some(RaiseOn::Handler(errhandler, handle, holder)) => (None, Some((errhandler, handle, holder))),
            Some(RaiseOn::Communicator(communicator)) => (argument.or(Some(communicator)), None),
            None => (argument, None),
        };
        let (errhandler, handle, holder) = match (errhandler, self.running) {
            (Some(given), _) => given,
            (None, Some(running)) => {
                // Errors that belong to no object go to MPI_COMM_SELF's handler (MPI 5.0, section 9.3).
                let communicator =
                    communicator.unwrap_or_else(|| running.process.self_communicator().clone());
                let handle = Communicator::table().handle_of(&communicator).unwrap_or(MPI_COMM_SELF);
                (communicator.errhandler(), handle, communicator.describe())
            }
            // Before MPI_Init and after MPI_Finalize the initial error handler holds (MPI 5.0, section 9.3).
            (None, None) => end_program(&text, code),
        };
        match errhandler {
            Errhandler::Return => code,
            Errhandler::User(user) => user.call(handle, code),
            Errhandler::Fatal | Errhandler::Abort => {
                let Some(running) = self.running else { end_program(&text, code) };
                let class = crate::errors::class_name(code);
                let setter = match holder.as_str() {
                    "the session" => "MPI_Session_init",
                    "the window" => "MPI_Win_set_errhandler",
                    file if file == "MPI_FILE_NULL" || file.starts_with("the file ") => {
                        "MPI_File_set_errhandler"
                    }
                    _ => "MPI_Comm_set_errhandler",
                };
                running.process.abort(
                    exit_code(code),
                    &format!(
                        "{text}\n  ({class}; the error handler of {holder} ends the job. To handle errors in the program, \
                         set MPI_ERRORS_RETURN with {setter}.)",
                    ),
                )
            }
        }
    }

    /// The error with the call, the rank and the host.
    pub fn describe(&self, error: &Error) -> String {
        match self.running {
            Some(running) => format!(
                "{}: rank {} on host {}: {}",
                self.name,
                running.process.rank(),
                running.process.host_name(),
                error.message()
            ),
            None => format!("{}: {}", self.name, error.message()),
        }
    }
}

/// The exit code that tells of an error code: never 0, and small enough for a shell.
fn exit_code(code: c_int) -> c_int {
    if (1..=125).contains(&code) { code } else { 1 }
}

/// A call outside of MPI's life: says so and ends the program.
#[cold]
#[inline(never)]
fn outside(name: &'static str) -> ! {
    let text = match state::stage() {
        Stage::After => format!(
            "{name}: called after MPI_Finalize; no communication is possible any more. Move the call before MPI_Finalize."
        ),
        Stage::Starting => format!(
            "{name}: called while another thread is still in MPI_Init; wait until MPI_Init has returned."
        ),
        _ => format!("{name}: called before MPI_Init; call MPI_Init or MPI_Init_thread first."),
    };
    end_program(&text, 1)
}

/// Prints a message and ends this process; the launcher, if there is one, then ends the job.
pub fn end_program(text: &str, code: c_int) -> ! {
    let mut message = format!("parnass: {text}\n").into_bytes();
    crate::errors::flush_c_output();
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(&message);
    let _ = stderr.flush();
    message.clear();
    crate::errors::exit_now(exit_code(code))
}

thread_local! {
    static LAST_ERROR: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

fn remember(code: c_int, text: &str) {
    LAST_ERROR.with(|last| *last.borrow_mut() = Some((code, text.to_owned())));
}

/// The full text of this thread's last error, if it had this code: what MPI_Error_string adds to the text of the class.
pub fn last_error(code: c_int) -> Option<String> {
    LAST_ERROR
        .with(|last| last.borrow().as_ref().filter(|(last, _)| *last == code).map(|(_, text)| text.clone()))
}
